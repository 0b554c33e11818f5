package main

var logs = board{
	name:  "logs",
	title: "Logs and disk",
	about: "What the logs say, who fills the disk, and for how long it will last.",
	rows: []row{
		{title: "The disk", panels: []panel{
			{
				title: "How fast do the logs grow?", kind: lines, unit: "Bps", w: 8, h: 8,
				what: "Bytes a second written to the files of each log folder.",
				next: "See to the right which file it is, and below which message.",
				none: "no log folder is known",
				warn: 1e6, bad: 2e7,
				queries: []query{{expr: `rate(logdir_written_bytes_total{}[$__rate_interval])`, legend: "{{dir}}"}},
			},
			{
				title: "Which file grows?", kind: stacks, unit: "Bps", w: 8, h: 8,
				what:    "Bytes a second that appeared in each followed log, over all its rotations.",
				next:    "catalina.out and catalina.DATE.log carry the same records: one of them can be switched off.",
				none:    "no log is followed",
				queries: []query{{expr: `rate(logfile_written_bytes_total{}[$__rate_interval])`, legend: "{{file}}"}},
			},
			{
				title: "What fills them?", kind: lines, unit: "percentunit", w: 8, h: 8,
				what:    "Share of all bytes lately logged that went into a file, or into the records of one event in it. The largest few.",
				next:    "Mend the cause of that event; until then a higher level for its logger keeps the disk.",
				none:    "nothing was logged lately",
				queries: []query{{expr: `topk(8, logdir_growth_share{})`, legend: "{{file}} {{event}}"}},
			},
			{
				title: "When is the disk full?", kind: lines, unit: "s", w: 8, h: 8,
				what: "Time until nothing is left for the server, at the rate of the last 10 s, 60 s or 10 min. It speaks only of ends within ten times its window.",
				next: "Stop the load, or truncate the file that grows (: > catalina.out).",
				none: "not in sight at the rate of the last seconds to minutes",
				warn: 3600, bad: 900, low: true,
				queries: []query{{expr: `logfs_full_seconds{}`, legend: "{{mountpoint}} at the rate of {{window}}"}},
			},
			{
				title: "How much room is left?", kind: lines, unit: "percentunit", w: 8, h: 8,
				what: "Share of the file system that the server's user may still write, and share of the inodes that is free.",
				next: "Remove old rotated logs and heap dumps. Without an inode no file can be made, however many bytes are free.",
				none: "no log folder is known",
				warn: 0.1, bad: 0.02, low: true, max: 1,
				queries: []query{
					{expr: `logfs_avail_bytes{} / logfs_size_bytes{}`, legend: "bytes of {{mountpoint}}"},
					{expr: `logfs_inodes_free{} / logfs_inodes{}`, legend: "inodes of {{mountpoint}}"},
				},
			},
			{
				title: "How large are the log folders?", kind: lines, unit: "bytes", w: 8, h: 8,
				what: "Bytes that each folder takes on its disk, and bytes of deleted files that are still open, which no du shows.",
				next: "Deleted and open: restart the holder, or truncate through /proc/PID/fd/N.",
				none: "no log folder is known",
				queries: []query{
					{expr: `logdir_size_bytes{}`, legend: "{{dir}}"},
					{expr: `logfile_deleted_open_bytes{}`, legend: "deleted, open in the {{holder}}"},
				},
			},
			{
				title: "Can the disk be written?", kind: states, unit: "none", w: 12, h: 5,
				what:    "Whether the file system is mounted read-only, as ext4 does by itself after an error.",
				next:    "Look at dmesg for errors of the device before mounting it for writing again.",
				none:    "no log folder is known",
				words:   []word{{"0", "writable", green}, {"1", "read-only", red}},
				queries: []query{{expr: `logfs_readonly{}`, legend: "{{mountpoint}}"}},
			},
			{
				title: "Are the logs rotated?", kind: lines, unit: "none", w: 12, h: 5,
				what: "Rotations and truncations of each log, in each interval.",
				next: "A log that is never rotated fills the disk one day: give catalina.out to logrotate.",
				none: "no log is followed",
				queries: []query{
					{expr: `increase(logfile_rotations_total{}[$__rate_interval])`, legend: "{{file}} rotated"},
					{expr: `increase(logfile_truncations_total{}[$__rate_interval])`, legend: "{{file}} truncated"},
				},
			},
		}},
		{title: "What the server's log says", panels: []panel{
			{
				title: "How many records, of which level?", kind: stacks, unit: "cps", w: 8, h: 8,
				what:    "Records a second in the server's own logs by level. A record that two files carry counts once.",
				next:    "Errors: see the exceptions. A flood of INFO costs disk and CPU: raise the level.",
				none:    "no log of the server",
				queries: []query{{expr: `rate(applog_records_total{}[$__rate_interval])`, legend: "{{level}}"}},
			},
			{
				title: "Which signs of trouble?", kind: lines, unit: "cps", w: 8, h: 8,
				what:    "Known signs of trouble a second, such as executor_rejected or out_of_memory_heap.",
				next:    "executor_rejected: board Threads and connectors. out_of_memory: board JVM and GC. too_many_open_files: raise LimitNOFILE.",
				none:    "none",
				queries: []query{{expr: `sum by (event) (rate(applog_events_total{}[$__rate_interval])) > 0`, legend: "{{event}}"}},
			},
			{
				title: "Which exceptions?", kind: lines, unit: "cps", w: 8, h: 8,
				what:    "Exceptions a second by the class of their deepest cause; the ten most frequent.",
				next:    "Read the first of them in the log, not the last: later ones are often only its consequence.",
				none:    "none",
				queries: []query{{expr: `topk(10, sum by (class) (rate(applog_exceptions_total{,role="root"}[$__rate_interval])) > 0)`, legend: "{{class}}"}},
			},
			{
				title: "Which logger writes?", kind: stacks, unit: "cps", w: 8, h: 8,
				what:    "Records a second by logger and level; the ten most frequent.",
				next:    "A logger that tells nothing useful can be silenced by its name.",
				none:    "no log of the server",
				queries: []query{{expr: `topk(10, sum by (logger, level) (rate(applog_logger_records_total{}[$__rate_interval])) > 0)`, legend: "{{level}} {{logger}}"}},
			},
			{
				title: "Which events take the disk?", kind: stacks, unit: "Bps", w: 8, h: 8,
				what:    "Bytes a second of the records that told an event, with their stack traces, and at the right all bytes of the logs.",
				next:    "A shorter stack trace saves most: a formatter without it for this logger.",
				none:    "none",
				queries: []query{{expr: `sum by (event) (rate(applog_event_bytes_total{}[$__rate_interval])) > 0`, legend: "{{event}}"}, {expr: `rate(applog_bytes_total{}[$__rate_interval])`, legend: "all", dashed: true}},
			},
			{
				title: "Is anything new in the log?", kind: lines, unit: "none", w: 8, h: 8,
				what: "Message patterns and exception classes seen for the first time, in each interval.",
				next: "Something new under load is often the first sign of a limit that was reached: read it.",
				none: "no log of the server",
				queries: []query{
					{expr: `increase(applog_new_patterns_total{}[$__rate_interval])`, legend: "patterns"},
					{expr: `increase(applog_new_exceptions_total{}[$__rate_interval])`, legend: "exceptions"},
				},
			},
			{
				title: "Does the logger drop records?", kind: lines, unit: "none", w: 12, h: 6,
				what:    "Records that are in catalina.out and not in catalina.DATE.log, in each interval: Tomcat's asynchronous handler drops the newest beyond 10,000.",
				next:    "Trust catalina.out for counts. AsyncOverflowDropType and AsyncMaxRecordCount change what happens.",
				none:    "no log of the server",
				queries: []query{{expr: `increase(applog_records_dropped_by_logger_total{}[$__rate_interval])`, legend: "dropped"}},
			},
			{
				title: "Which lines belong to no record?", kind: lines, unit: "cps", w: 12, h: 6,
				what: "Lines a second that belong to no record (System.out, thread dumps, the JVM's own messages), beside all lines.",
				next: "Many of them: the layout may be unknown to the sidecar; its page shows what it made of the log.",
				none: "no log of the server",
				queries: []query{
					{expr: `rate(applog_raw_lines_total{}[$__rate_interval])`, legend: "in no record"},
					{expr: `rate(applog_lines_total{}[$__rate_interval])`, legend: "all lines", dashed: true},
				},
			},
		}},
		{title: "Logs", panels: []panel{
			lokiByEvent,
			{
				title: "Which lines went to Loki, by level?", kind: bars, loki: true, unit: "none", w: 12, h: 8,
				what: "Lines in Loki by level and by the log they are from (applog, accesslog, gclog), in each interval.",
				next: "Choose the level at the top. By default records below WARN are sent only if they tell an event: loki.select.level changes it.",
				none: "no lines: loki.url is not set, nothing was worth sending, or ship_errors_total grows",
				queries: []query{
					{expr: `sum by (source, level) (count_over_time({}[$__interval]))`, legend: "{{source}} {{level}}"},
				},
			},
			lokiTexts,
		}},
	},
}

// lokiByEvent and lokiTexts are what was sent to Loki of the server, by event and as
// it stands there.
var lokiByEvent = panel{
	title: "Which lines went to Loki, by event?", kind: bars, loki: true, unit: "none", w: 12, h: 8,
	what: "Lines in Loki by the event that they tell, in each interval. Of a storm only some lines a second are sent, and one that tells how many more there were: the true counts are in \"Which signs of trouble?\".",
	next: "Choose the event at the top, and read its lines below.",
	none: "no lines: loki.url is not set, nothing was worth sending, or ship_errors_total grows",
	queries: []query{
		{expr: `sum by (event) (count_over_time({,event!=""}[$__interval]))`, legend: "{{event}}"},
		{expr: `sum(count_over_time({,event=""}[$__interval]))`, legend: "no event"},
	},
}

var lokiTexts = panel{
	title: "What do they say?", kind: texts, loki: true, w: 24, h: 14,
	what:    "The newest 500 lines of the chosen hosts, levels and events in this span of time. Details of a line show its thread, logger, file and trace id.",
	next:    "Narrow the time to where the trouble begins: the first line tells more than the last. If two hosts have a server of this name, choose the host.",
	none:    "no lines of this choice in this span of time",
	queries: []query{{expr: `{,level=~"$level",event=~"$event"}`}},
}

// size is the panel on another board: smaller or larger there, and with a way to
// the board that it is from.
func (p panel) size(w, h uint32) panel {
	p.w, p.h, p.more = w, h, "logs"
	return p
}
