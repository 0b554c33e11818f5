package main

// loadRun is the board to have open while the load runs: from the symptom, at
// the top, down to its causes, on one screen.
var loadRun = board{
	name:  "load-run",
	title: "Load run",
	about: "One server under load, from symptom to cause on one screen: what clients get, who is turned away, what is full.",
	rows: []row{
		{panels: []panel{
			{
				title: "Is the server up?", kind: number, unit: "none", w: 4, h: 4,
				what: "Whether the server's process is there.",
				next: "If it is down: read the end of its log, look for hs_err_pid files, and see whether target_oom_kills_total grew.",
				none: "unknown",
				bad:  1, low: true,
				words:   []word{{"0", "down", red}, {"1", "up", green}},
				queries: []query{{expr: `target_up{}`}},
				more:    "own",
			},
			{
				title: "How much is answered?", kind: number, unit: "reqps", w: 4, h: 4,
				what:    "Requests that were answered and logged, a second. Those turned away by a full pool are not among them.",
				next:    "If it stands still while the load grows, the server is at its limit: look which of the panels below is at its own.",
				none:    "no access log",
				queries: []query{{expr: `sum(rate(accesslog_requests_total{}[$__rate_interval]))`}},
				more:    "requests",
			},
			{
				title: "How many are turned away?", kind: number, unit: "reqps", w: 4, h: 4,
				what: "Requests that the thread pool rejected, a second. Their clients get no answer, and none of them is in the access log.",
				next: "See what the pool's threads wait for. More threads or a longer queue help only when the CPU is idle and the wait is for others.",
				none: "no log of the server",
				bad:  0.001,
				queries: []query{
					{expr: `sum(rate(applog_events_total{,event="executor_rejected"}[$__rate_interval]))`},
				},
				more: "threads",
			},
			{
				title: "How many fail?", kind: number, unit: "percentunit", w: 4, h: 4,
				what: "Share of the answers with a status of 500 and above. Rejected requests have no status and don't count here.",
				next: "Read the first exceptions of the log, not the last ones.",
				none: "no answers",
				warn: 0.001, bad: 0.01,
				queries: []query{{expr: `sum(rate(accesslog_requests_total{,code=~"5.*"}[$__rate_interval])) / (sum(rate(accesslog_requests_total{}[$__rate_interval])) > 0)`}},
				more:    "requests",
			},
			{
				title: "How full is the CPU?", kind: number, unit: "percentunit", w: 4, h: 4,
				what: "CPU time of the JVM as a share of what it may use: 1 is all of its cores.",
				next: "At the ceiling, take a profile. Far below it and slow, look at pools, locks, pauses and the network.",
				none: "no /proc",
				warn: 0.8, bad: 0.95,
				queries: []query{{expr: `process_cpu_usage_ratio{}`}},
				more:    "threads",
			},
			{
				title: "When is the disk full?", kind: number, unit: "s", w: 4, h: 4,
				what: "Time until the server's user can write nothing more to the disk of its logs, at the rate of the last seconds to minutes; the soonest of them.",
				next: "Stop the load, or truncate the file that grows. Deleting it frees nothing while the server holds it open.",
				none: "not in sight",
				warn: 3600, bad: 900, low: true,
				queries: []query{{expr: `min(logfs_full_seconds{})`}},
				more:    "logs",
			},
		}},
		{panels: []panel{
			{
				title: "What do clients get?", kind: stacks, unit: "reqps", w: 8, h: 7,
				what: "Answers a second by class of status, and above them the requests that were turned away without an answer.",
				next: "Errors: read the log's first exceptions. Rejections: look at the pool's threads in the next line.",
				none: "no access log",
				queries: []query{
					{expr: `sum by (code) (rate(accesslog_requests_total{}[$__rate_interval])) > 0`, legend: "{{code}}"},
					{expr: `sum(rate(applog_events_total{,event="executor_rejected"}[$__rate_interval]))`, legend: "turned away"},
				},
				more: "requests",
			},
			{
				title: "How long do answers take?", kind: lines, unit: "s", w: 8, h: 7,
				what: "Time the server took for an answer, by its own access log: half of the answers are faster than p50, one in a hundred is slower than p99. Waiting for a thread is mostly not in it.",
				next: "If p99 rises alone, look for pauses and locks; if all rise together, for a resource that is full.",
				none: "no duration in the access log: add %D to its pattern",
				queries: []query{
					{expr: `histogram_quantile(0.5, sum by (le) (rate(accesslog_request_duration_seconds_bucket{}[$__rate_interval])))`, legend: "p50"},
					{expr: `histogram_quantile(0.9, sum by (le) (rate(accesslog_request_duration_seconds_bucket{}[$__rate_interval])))`, legend: "p90"},
					{expr: `histogram_quantile(0.99, sum by (le) (rate(accesslog_request_duration_seconds_bucket{}[$__rate_interval])))`, legend: "p99"},
				},
				more: "requests",
			},
			{
				title: "How are the durations spread?", kind: heat, unit: "s", w: 8, h: 7,
				what:    "Answers by duration over time: two bands are two kinds of requests, or some that wait and some that don't.",
				next:    "A band that climbs is a queue that grows. Find its routes on the board Requests.",
				none:    "no duration in the access log: add %D to its pattern",
				queries: []query{{expr: `sum by (le) (increase(accesslog_request_duration_seconds_bucket{}[$__rate_interval]))`, legend: "{{le}}"}},
				more:    "requests",
			},
		}},
		{panels: []panel{
			{
				title: "Is the thread pool full?", kind: lines, unit: "none", w: 8, h: 7,
				what: "Threads of each pool that has a limit, the limit, and at the right the requests turned away a second.",
				next: "A pool at its limit with an idle CPU waits for something: a database, a lock, another server. Take a thread dump and read what most threads do.",
				none: "no pool with a limit is known",
				queries: []query{
					{expr: `jvm_threadpool_threads{} and on (instance, target, pool) jvm_threadpool_max_threads{}`, legend: "{{pool}}"},
					{expr: `jvm_threadpool_max_threads{}`, legend: "limit of {{pool}}", dashed: true},
					{expr: `sum(rate(applog_events_total{,event="executor_rejected"}[$__rate_interval]))`, legend: "turned away", right: "reqps"},
				},
				more: "threads",
			},
			{
				title: "Do clients wait at the door?", kind: lines, unit: "none", w: 8, h: 7,
				what: "Requests that wait for a thread, connections that the server has not accepted yet, and the length at which the kernel begins to drop them.",
				next: "A queue at its limit: raise acceptCount and net.core.somaxconn together, or let fewer clients in. Waiting requests: see the pool.",
				none: "sockets can't be seen",
				queries: []query{
					{expr: `connector_requests_waiting{}`, legend: "requests waiting, port {{port}}"},
					{expr: `tcp_listen_queue{}`, legend: "not accepted, port {{port}}"},
					{expr: `tcp_listen_limit{}`, legend: "limit, port {{port}}", dashed: true},
				},
				more: "threads",
			},
			{
				title: "Who takes the CPU?", kind: lines, unit: "percentunit", w: 8, h: 7,
				what: "CPU of the JVM as a share of what it may use, of the whole machine, time stopped by the cgroup's quota, and time the hypervisor gave to others.",
				next: "Throttling: raise the quota, the host may be idle meanwhile. Steal: move the machine. A busy machine and a quiet JVM: somebody else works here, perhaps the load generator itself.",
				none: "no /proc",
				warn: 0.95, max: 1,
				queries: []query{
					{expr: `process_cpu_usage_ratio{}`, legend: "JVM"},
					{expr: `host_cpu_busy_ratio{own}`, legend: "machine"},
					{expr: `host_cpu_steal_ratio{own}`, legend: "stolen"},
					{expr: `rate(cgroup_cpu_throttled_periods_total{}[$__rate_interval]) / (rate(cgroup_cpu_periods_total{}[$__rate_interval]) > 0)`, legend: "periods throttled"},
				},
				more: "threads",
			},
		}},
		{panels: []panel{
			{
				title: "Does the heap cope?", kind: lines, unit: "bytes", w: 8, h: 7,
				what: "Heap in use, what was left after the last collection, and the limit; at the right, the share of time that collections stop the server.",
				next: "If what is left after collections comes near the limit, the heap is too small or something leaks: take a class histogram. Pauses above 5 % of the time cost answers.",
				none: "the JVM's counters can't be read",
				queries: []query{
					{expr: `jvm_memory_used_bytes{,area="heap"}`, legend: "in use"},
					{expr: `gclog_heap_after_bytes{,generation="heap"}`, legend: "after collection"},
					{expr: `jvm_memory_max_bytes{,area="heap"}`, legend: "limit", dashed: true},
					{expr: `sum(rate(jvm_gc_collection_seconds_sum{}[$__rate_interval]))`, legend: "stopped", right: "percentunit"},
				},
				more: "jvm",
			},
			{
				title: "Do the logs grow too fast?", kind: lines, unit: "Bps", w: 8, h: 7,
				what: "Bytes a second written to each log folder, and at the right what the disk has left.",
				next: "Find who writes on the board Logs and disk: in a rejection storm each request turned away writes about 1 kB, twice.",
				none: "no log folder is known",
				warn: 1e6, bad: 2e7,
				queries: []query{
					{expr: `rate(logdir_written_bytes_total{}[$__rate_interval])`, legend: "{{dir}}"},
					{expr: `logfs_avail_bytes{}`, legend: "left on {{mountpoint}}", right: "bytes"},
				},
				more: "logs",
			},
			{
				title: "Which alerts fire?", kind: states, unit: "none", w: 8, h: 7,
				what:    "Alerts of this server and its sidecar: pending while their condition has not held for long enough, then firing.",
				next:    "Each alert's annotations say what was seen, why it matters and what to look at next.",
				none:    "none, or this Prometheus has not loaded rules/load or rules/steady",
				words:   []word{{"1", "pending", yellow}, {"2", "firing", red}},
				queries: []query{{expr: `max by (alertname) (ALERTS{alertstate="pending",severity!="none",instance="$instance",target=~"$target|"} or 2 * ` + alerts + `)`, legend: "{{alertname}}"}},
			},
		}},
		// The words behind what the rows above count, without leaving the board.
		{title: "Logs", panels: []panel{lokiByEvent.size(8, 12), lokiTexts.size(16, 12)}},
	},
}
