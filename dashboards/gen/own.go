package main

// own is of the sidecar and of all servers it sees; the chosen server matters
// only where a panel says so.
var own = board{
	name:  "own",
	title: "The sidecar itself",
	about: "Which servers the sidecar sees, what it can't see, whether it keeps up, and what it costs.",
	rows: []row{
		{title: "What it sees", panels: []panel{
			{
				title: "Which servers does it see?", kind: states, unit: "none", w: 8, h: 7,
				what:    "Each server's process: there, or gone within the last 24 hours.",
				next:    "A server that is missing altogether: run sidecar discover, it says what it looked at.",
				none:    "no JVM is seen",
				words:   []word{{"0", "down", red}, {"1", "up", green}},
				queries: []query{{expr: `target_up{own}`, legend: "{{target}}"}},
			},
			{
				title: "Which sources work?", kind: states, unit: "none", w: 8, h: 7,
				what:    "Whether the last look at each source of each server worked.",
				next:    "The table to the right says why one does not.",
				none:    "no JVM is seen",
				words:   []word{{"0", "failed", red}, {"1", "seen", green}},
				queries: []query{{expr: `sidecar_source_up{own}`, legend: "{{target}} {{source}}"}},
			},
			{
				title: "What can't it see, and why?", kind: rows, w: 8, h: 7,
				what:    "Lasting reasons why a part of a source can't be seen: a right is missing, or the fact is not there.",
				next:    "The sidecar's page says for each what is needed.",
				none:    "nothing: all is seen",
				queries: []query{{expr: `sidecar_source_blind{own} == 1`}},
			},
			{
				title: "What are the servers?", kind: rows, w: 12, h: 7,
				what:    "Kind, version, Java and base folder of each server.",
				next:    "A wrong version or base: correct what sidecar discover prints, and give it as settings.",
				none:    "no JVM is seen",
				queries: []query{{expr: `target_info{own}`}},
			},
			{
				title: "Which settings will hurt?", kind: rows, w: 12, h: 7,
				what:    "Settings of the servers that will hurt under load.",
				next:    "The sidecar's page and sidecar discover give the reason of each.",
				none:    "none was found",
				queries: []query{{expr: `target_finding{own} == 1`}},
			},
			{
				title: "Which looks fail?", kind: lines, unit: "cps", w: 12, h: 7,
				what:    "Looks at a source that failed, a second, by reason.",
				next:    "Passing errors while a server starts or ends are usual. Lasting ones stand in the sidecar's own log.",
				none:    "none",
				queries: []query{{expr: `sum by (target, source, reason) (rate(sidecar_source_errors_total{own}[$__rate_interval])) > 0`, legend: "{{target}} {{source}} {{reason}}"}},
			},
			{
				title: "Have servers come back, or been killed?", kind: lines, unit: "none", w: 12, h: 7,
				what: "Restarts, and processes of the cgroup that the kernel killed for their memory, since the sidecar came.",
				next: "A restart nobody asked for: read the end of the log before it, and dmesg.",
				none: "no JVM is seen",
				queries: []query{
					{expr: `target_restarts_total{own}`, legend: "{{target}} restarted"},
					{expr: `target_oom_kills_total{own}`, legend: "{{target}} killed for memory"},
				},
			},
		}},
		{title: "Does it keep up?", panels: []panel{
			{
				title: "Is it behind with a log?", kind: lines, unit: "s", w: 8, h: 7,
				what: "How long the oldest unread byte of each log has been there; 0 when all is read.",
				next: "A lag that grows: the machine has no CPU left for it, or a limit of the settings holds it back. Figures of that log are late, not wrong.",
				none: "no log is followed",
				warn: 5, bad: 30,
				queries: []query{{expr: `logfile_lag_seconds{own}`, legend: "{{target}} {{file}}"}},
			},
			{
				title: "Does it lose or skip bytes?", kind: lines, unit: "Bps", w: 8, h: 7,
				what: "Bytes a second that were gone before they could be read, or were left out on purpose.",
				next: "Lost: rotation removes files too soon, keep one more. Skipped: over-long lines, or a storm beyond the limits.",
				none: "no log is followed",
				bad:  1,
				queries: []query{
					{expr: `rate(logfile_lost_bytes_total{own}[$__rate_interval])`, legend: "{{target}} {{file}} lost"},
					{expr: `rate(logfile_skipped_bytes_total{own}[$__rate_interval])`, legend: "{{target}} {{file}} skipped"},
				},
			},
			{
				title: "Is a log read in part only?", kind: states, unit: "none", w: 8, h: 7,
				what:    "Logs that grow faster than the limits allow to read, so that blocks are skipped.",
				next:    "Counts of that log are too low while it lasts. Raise the limits if the machine has CPU to spare.",
				none:    "no log is followed",
				words:   []word{{"0", "whole", green}, {"1", "in part", red}},
				queries: []query{{expr: `logfile_storm_mode{own}`, legend: "{{target}} {{file}}"}},
			},
			{
				title: "Are there gaps in the logs?", kind: lines, unit: "none", w: 8, h: 7,
				what:    "Places where lines are missing or may be, in each interval, by reason.",
				next:    "Rotate by renaming instead of copytruncate, and keep the old file for a minute.",
				none:    "none so far",
				queries: []query{{expr: `sum by (target, file, reason) (increase(logfile_gaps_total{own}[$__rate_interval]))`, legend: "{{target}} {{file}} {{reason}}"}},
			},
			{
				title: "How long does a tick take?", kind: lines, unit: "s", w: 8, h: 7,
				what: "Polling, checkpoint and snapshot of one tick, of which there is one a second.",
				next: "Near a second: a hung mount or very many threads. The sidecar's log says which source is slow.",
				none: "the sidecar is not scraped",
				warn: 0.5, bad: 1,
				queries: []query{{expr: `sidecar_tick_seconds{own}`, legend: "tick"}},
			},
			{
				title: "Is what it counted safe?", kind: states, unit: "none", w: 8, h: 7,
				what: "Whether the checkpoint can be written, and whether the last reload of the settings worked.",
				next: "Stale: look for room and rights at --storage.path. A failed reload: sidecar check says where the mistake is.",
				none: "the sidecar is not scraped",
				words: []word{
					{"0", "good", green}, {"1", "bad", red},
				},
				queries: []query{
					{expr: `sidecar_checkpoint_stale{own}`, legend: "checkpoint"},
					{expr: `1 - sidecar_config_reload_successful{own}`, legend: "settings"},
				},
			},
		}},
		{title: "What it costs", panels: []panel{
			{
				title: "How much CPU does it take?", kind: lines, unit: "percentunit", w: 8, h: 7,
				what: "CPU of the sidecar as a share of one core.",
				next: "In a log storm it reads as fast as it may; the settings' limits bound it.",
				none: "the sidecar is not scraped",
				warn: 0.25, bad: 1,
				queries: []query{{expr: `rate(sidecar_process_cpu_seconds_total{own}[$__rate_interval])`, legend: "sidecar"}},
			},
			{
				title: "How much memory?", kind: lines, unit: "bytes", w: 8, h: 7,
				what:    "Memory of the sidecar that is in RAM, and at the right its goroutines.",
				next:    "A line that rises for hours is a fault of the sidecar: please report it.",
				none:    "the sidecar is not scraped",
				warn:    2.5e8,
				queries: []query{{expr: `sidecar_process_resident_memory_bytes{own}`, legend: "in RAM"}, {expr: `sidecar_goroutines{own}`, legend: "goroutines", right: "none"}},
			},
			{
				title: "How many descriptors?", kind: lines, unit: "none", w: 8, h: 7,
				what: "Open file descriptors of the sidecar.",
				next: "A line that rises for hours is a fault of the sidecar: please report it.",
				none: "the sidecar is not scraped",
				queries: []query{
					{expr: `sidecar_process_open_fds{own}`, legend: "open"},
					{expr: `sidecar_process_max_fds{own}`, legend: "limit", dashed: true},
				},
			},
			{
				title: "How many series does it serve?", kind: lines, unit: "none", w: 8, h: 7,
				what: "Samples of one scrape. One server has up to 1,500 series at the defaults.",
				next: "Too many: bound routes and loggers in the settings.",
				none: "this Prometheus does not scrape it",
				queries: []query{
					{expr: `scrape_samples_scraped{own}`, legend: "samples"},
				},
			},
			{
				title: "Is a metric too wide?", kind: lines, unit: "cps", w: 8, h: 7,
				what:    "Look-ups a second that ended in the label value other, because a metric has as many series as it may.",
				next:    "For accesslog_*: group routes by patterns. Else nothing is lost but the names.",
				none:    "none",
				queries: []query{{expr: `sum by (metric) (rate(sidecar_series_refused_total{own}[$__rate_interval]))`, legend: "{{metric}}"}},
			},
			{
				title: "Which version is it?", kind: rows, w: 8, h: 7,
				what:    "The sidecar's version and the Go it was built with.",
				next:    "Name it when you report a fault.",
				none:    "the sidecar is not scraped",
				queries: []query{{expr: `sidecar_build_info{own}`}},
			},
		}},
	},
}
