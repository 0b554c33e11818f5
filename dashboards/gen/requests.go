package main

var requests = board{
	name:  "requests",
	title: "Requests",
	about: "What the access log tells: how many, how long, how many fail, by status, method and route.",
	rows: []row{
		{title: "How many", panels: []panel{
			{
				title: "How many requests, with which status?", kind: stacks, unit: "reqps", w: 12, h: 8,
				what:    "Answers a second by class of status. A request that a full pool turned away is in no access log.",
				next:    "4xx: look what the clients ask for. 5xx: read the server's log. A drop without errors: see whether requests are turned away or wait.",
				none:    "no access log",
				queries: []query{{expr: `sum by (code) (rate(accesslog_requests_total{}[$__rate_interval])) > 0`, legend: "{{code}}"}},
			},
			{
				title: "How many fail?", kind: lines, unit: "percentunit", w: 6, h: 8,
				what: "Share of answers with a status of 4xx and of 5xx.",
				next: "Take a 5xx ratio of 0 for health only when nothing is turned away: rejected requests have no status.",
				none: "no answers",
				bad:  0.01,
				queries: []query{
					{expr: `sum(rate(accesslog_requests_total{,code=~"4.*"}[$__rate_interval])) / (sum(rate(accesslog_requests_total{}[$__rate_interval])) > 0)`, legend: "4xx"},
					{expr: `sum(rate(accesslog_requests_total{,code=~"5.*"}[$__rate_interval])) / (sum(rate(accesslog_requests_total{}[$__rate_interval])) > 0)`, legend: "5xx"},
				},
			},
			{
				title: "With which methods?", kind: stacks, unit: "reqps", w: 6, h: 8,
				what:    "Requests a second by method.",
				next:    "A method that the load should not send is a mistake of the test, or somebody else's traffic.",
				none:    "no requests",
				queries: []query{{expr: `sum by (method) (rate(accesslog_requests_total{}[$__rate_interval])) > 0`, legend: "{{method}}"}},
			},
		}},
		{title: "How long", panels: []panel{
			{
				title: "How long do answers take?", kind: lines, unit: "s", w: 8, h: 8,
				what: "Percentiles of the time the server took for an answer, as it logged it.",
				next: "Compare with what the load tool says: the difference is the wait before the server took the request up, which no access log sees.",
				none: "no duration in the access log: add %D to its pattern",
				queries: []query{
					{expr: `histogram_quantile(0.5, sum by (le) (rate(accesslog_request_duration_seconds_bucket{}[$__rate_interval])))`, legend: "p50"},
					{expr: `histogram_quantile(0.9, sum by (le) (rate(accesslog_request_duration_seconds_bucket{}[$__rate_interval])))`, legend: "p90"},
					{expr: `histogram_quantile(0.99, sum by (le) (rate(accesslog_request_duration_seconds_bucket{}[$__rate_interval])))`, legend: "p99"},
					{expr: `histogram_quantile(0.999, sum by (le) (rate(accesslog_request_duration_seconds_bucket{}[$__rate_interval])))`, legend: "p99.9"},
				},
			},
			{
				title: "How are the durations spread?", kind: heat, unit: "s", w: 8, h: 8,
				what:    "Answers by duration over time.",
				next:    "Two bands are two kinds of requests: tell them apart by route.",
				none:    "no duration in the access log: add %D to its pattern",
				queries: []query{{expr: `sum by (le) (increase(accesslog_request_duration_seconds_bucket{}[$__rate_interval]))`, legend: "{{le}}"}},
			},
			{
				title: "How long until the first byte?", kind: lines, unit: "s", w: 8, h: 8,
				what: "Time until the server committed the answer. What is left up to the whole duration is writing it out, to a slow client perhaps.",
				next: "If the first byte is quick and the whole is slow, look at the size of answers and at the clients' network.",
				none: "no %F in the access log's pattern",
				queries: []query{
					{expr: `histogram_quantile(0.5, sum by (le) (rate(accesslog_first_byte_seconds_bucket{}[$__rate_interval])))`, legend: "p50"},
					{expr: `histogram_quantile(0.99, sum by (le) (rate(accesslog_first_byte_seconds_bucket{}[$__rate_interval])))`, legend: "p99"},
				},
			},
			{
				title: "Do failures take longer than successes?", kind: lines, unit: "s", w: 8, h: 8,
				what:    "Mean duration by class of status.",
				next:    "Slow 5xx are timeouts of something behind the server; fast ones are refusals of the server itself.",
				none:    "no duration in the access log: add %D to its pattern",
				queries: []query{{expr: `sum by (code) (rate(accesslog_request_duration_seconds_sum{}[$__rate_interval])) / (sum by (code) (rate(accesslog_request_duration_seconds_count{}[$__rate_interval])) > 0)`, legend: "{{code}}"}},
			},
			{
				title: "How many requests are served at once?", kind: lines, unit: "none", w: 8, h: 8,
				what:    "The sum of the durations a second, which by Little's law is the mean number of requests in work.",
				next:    "When it equals the threads of the pool, the pool is what bounds the server.",
				none:    "no duration in the access log: add %D to its pattern",
				queries: []query{{expr: `sum(rate(accesslog_request_duration_seconds_sum{}[$__rate_interval]))`, legend: "in work"}, {expr: `sum(jvm_threadpool_max_threads{})`, legend: "threads allowed", dashed: true}},
				more:    "threads",
			},
			{
				title: "How much is sent?", kind: lines, unit: "Bps", w: 8, h: 8,
				what:    "Bytes of the answers a second, and at the right the mean size of one.",
				next:    "Near the capacity of the network, compress or test from nearer.",
				none:    "no size in the access log",
				queries: []query{{expr: `sum(rate(accesslog_response_bytes_total{}[$__rate_interval]))`, legend: "sent"}, {expr: `sum(rate(accesslog_response_bytes_total{}[$__rate_interval])) / (sum(rate(accesslog_requests_total{}[$__rate_interval])) > 0)`, legend: "mean answer", right: "bytes"}},
			},
		}},
		{title: "By route", panels: []panel{
			{
				title: "Which routes are asked for most?", kind: stacks, unit: "reqps", w: 8, h: 8,
				what:    "The ten routes with the most requests a second.",
				next:    "Compare with what the test is meant to ask for.",
				none:    "routes are off: set accesslog.routes",
				queries: []query{{expr: `topk(10, sum by (route) (rate(accesslog_requests_total{,route!=""}[$__rate_interval])) > 0)`, legend: "{{route}}"}},
			},
			{
				title: "Which routes are slow?", kind: lines, unit: "s", w: 8, h: 8,
				what:    "The ten routes whose slowest hundredth of answers is slowest.",
				next:    "Start with the route whose p99 times its rate is largest: it holds the most threads.",
				none:    "routes are off: set accesslog.routes",
				queries: []query{{expr: `topk(10, histogram_quantile(0.99, sum by (le, route) (rate(accesslog_request_duration_seconds_bucket{,route!=""}[$__rate_interval]))) > 0)`, legend: "{{route}}"}},
			},
			{
				title: "Which routes fail?", kind: lines, unit: "reqps", w: 8, h: 8,
				what:    "Answers of 500 and above a second, by route.",
				next:    "Look for the route's exceptions in the log.",
				none:    "no failures, or routes are off: set accesslog.routes",
				queries: []query{{expr: `topk(10, sum by (route) (rate(accesslog_requests_total{,route!="",code=~"5.*"}[$__rate_interval])) > 0)`, legend: "{{route}}"}},
			},
		}},
		{title: "How far to trust it", panels: []panel{
			{
				title: "Do clients give up?", kind: lines, unit: "cps", w: 8, h: 7,
				what:    "Connections after an answer: kept alive, closed, or aborted by the client before the answer was complete.",
				next:    "Aborted ones are clients whose patience is shorter than the server's answers. Many closed ones cost a connection each.",
				none:    "no %X in the access log's pattern",
				queries: []query{{expr: `sum by (status) (rate(accesslog_connection_status_total{}[$__rate_interval]))`, legend: "{{status}}"}},
			},
			{
				title: "Are lines of the access log refused?", kind: lines, unit: "cps", w: 8, h: 7,
				what: "Lines a second that don't follow the pattern, by reason. They are in no other figure.",
				next: "The sidecar's page shows the last refused line; compare it with the pattern in the server's settings.",
				none: "no access log",
				bad:  0.001,
				queries: []query{
					{expr: `sum by (reason) (rate(accesslog_parse_errors_total{}[$__rate_interval]))`, legend: "{{reason}}"},
				},
			},
			{
				title: "How late do lines come?", kind: lines, unit: "s", w: 8, h: 7,
				what: "The longest delay of late between the end of a request and the reading of its line. A buffered valve writes in lumps.",
				next: "Switch off the valve's buffer (buffered=\"false\") for a test; else wait for the lump before you read figures.",
				none: "no access log with a time",
				warn: 2, bad: 15,
				queries: []query{{expr: `accesslog_event_lag_seconds{}`, legend: "lag"}},
			},
		}},
	},
}
