package applog

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// shared finds the folder beside the checkout that has real logs in it. Its
// files are not copied into the project.
func shared(t testing.TB, parts ...string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if up := filepath.Dir(dir); up != dir {
			dir = up
			continue
		}
		t.Fatal("no go.mod above the test's folder")
	}
	path := filepath.Join(append([]string{dir, "..", "shared"}, parts...)...)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("the shared folder is not here: %v", err)
	}
	return path
}

// feed gives text to an observer, line by line or in blocks that end at line
// ends near every n bytes.
func feed(o interface {
	Observe([]byte) bool
	ObserveBlock([]byte) (int, int, bool)
}, text []byte, block int) {
	if block == 0 {
		for len(text) > 0 {
			line, rest, _ := bytes.Cut(text, []byte("\n"))
			o.Observe(bytes.Clone(line)) // its own memory: nobody may keep it
			text = rest
		}
		return
	}
	buf := make([]byte, 0, block)
	for len(text) > 0 {
		n := min(block, len(text))
		i := bytes.LastIndexByte(text[:n], '\n')
		if i < 0 {
			if i = bytes.IndexByte(text, '\n'); i < 0 {
				i = len(text) - 1
			}
		}
		buf = append(buf[:0], text[:i+1]...)
		for rest := buf; len(rest) > 0; {
			n, _, _ := o.ObserveBlock(rest)
			if rest = rest[n:]; len(rest) > 0 { // a line that begins with a NUL
				line, more, _ := bytes.Cut(rest, []byte("\n"))
				o.Observe(line)
				rest = more
			}
		}
		for k := range buf {
			buf[k] = '!'
		}
		text = text[i+1:]
	}
}

type counts map[string]uint64

// TestCorpus holds real logs against the exact readings of their README.
func TestCorpus(t *testing.T) {
	const rex = "java.util.concurrent.RejectedExecutionException"
	for _, c := range []struct {
		file       string
		layout     string
		records    uint64
		levels     counts
		raw        uint64
		events     counts
		exceptions counts // the ones named
	}{
		{"tomcat10-nio-rejected-oneline.out", "juli-oneline", 340, counts{"INFO": 36, "WARNING": 304}, 0, counts{"executor_rejected": 303}, counts{rex: 303}},
		{"tomcat10-nio-rejected-simpleformatter.out", "juli-simple", 341, counts{"INFO": 36, "WARNING": 305}, 4, counts{"executor_rejected": 304}, counts{rex: 304}},
		{"tomcat10-nio-rejected-json.out", "json-juli", 331, counts{"INFO": 36, "WARNING": 295}, 2, counts{"executor_rejected": 294}, counts{rex: 294}},
		{"tomcat10-nio-rejected-fr.out", "juli-oneline", 140, counts{"INFO": 37, "WARNING": 103}, 0, counts{"executor_rejected": 103}, counts{rex: 103}},
		{"tomcat10-nio2-wedged.out", "juli-oneline", 43, counts{"INFO": 36, "WARNING": 7}, 24, counts{"executor_rejected": 6, "nio2_thread_died": 24},
			counts{rex: 6, "java.nio.channels.ShutdownChannelGroupException": 24}},
		{"tomcat9-apr-rejected.out", "juli-oneline", 312, counts{"INFO": 44, "WARNING": 268}, 0, counts{"executor_rejected": 267}, counts{rex: 267}},
		{"tomcat10-emfile.out", "juli-oneline", 144, counts{"INFO": 36, "SEVERE": 108}, 0, counts{"too_many_open_files": 108}, counts{"java.io.IOException": 108}},
		{"tomcat10-oom-heap.out", "juli-oneline", 90, counts{"INFO": 37, "SEVERE": 53}, 0, counts{"out_of_memory_heap": 53, "request_failed_out_of_memory": 53}, counts{"java.lang.OutOfMemoryError": 53}},
		{"tomcat10-oom-exit.out", "juli-oneline", 37, counts{"INFO": 37}, 1, counts{"exit_on_out_of_memory": 1}, counts{}},
		{"tomcat10-native-thread.out", "juli-oneline", 36, counts{"INFO": 36}, 3, counts{"native_thread_failed": 1, "poller_died": 1, "out_of_memory_threads": 1}, counts{"java.lang.OutOfMemoryError": 1}},
		{"tomcat10-stuckthread.out", "juli-oneline", 42, counts{"INFO": 36, "WARNING": 6}, 0, counts{"stuck_thread": 3, "stuck_thread_completed": 3}, counts{}},
		{"tomcat10-localhost-soe-npe-ex.log", "juli-oneline", 4, counts{"INFO": 1, "SEVERE": 3}, 0, counts{"stack_overflow": 1},
			counts{"java.lang.NullPointerException": 1, "java.lang.StackOverflowError": 1, "java.lang.IllegalStateException": 1}},
		{"tomcat10-mixedA-localhost.log", "juli-oneline", 40, counts{"SEVERE": 40}, 0, counts{}, counts{"java.lang.NullPointerException": 15, "java.lang.IllegalStateException": 25}},
		// 606 lines say it; the 80 RejectedExecutionExceptions are thrown by these same rejections.
		{"jetty94-qtp-rejected.out", "jetty-stderrlog", 700, counts{"INFO": 11, "WARN": 689}, 0, counts{"executor_rejected": 606, "header_too_large": 1, "low_resources": 1},
			counts{rex: 80, "java.lang.NullPointerException": 1}},
		{"jetty94-lowresources.out", "jetty-stderrlog", 12, counts{"INFO": 11, "WARN": 1}, 0, counts{"low_resources": 1}, counts{}},
		{"jetty94-emfile.out", "jetty-stderrlog", 13, counts{"INFO": 10, "WARN": 3}, 0, counts{"too_many_open_files": 3}, counts{"java.io.IOException": 3}},
		{"jetty94-insufficient-threads.out", "jetty-stderrlog", 11, counts{"INFO": 10, "WARN": 1}, 3, counts{"insufficient_threads": 1}, counts{"java.lang.IllegalStateException": 3}},
		{"jetty94-mixed1-server.out", "jetty-stderrlog", 25, counts{"INFO": 14, "WARN": 11}, 0, counts{}, counts{"java.lang.NullPointerException": 11}},
		{"made-tomcat85-nio-rejected-oldform.out", "juli-oneline", 258, counts{"INFO": 8, "WARNING": 250}, 0, counts{"executor_rejected": 250}, counts{rex: 250}},
	} {
		t.Run(c.file, func(t *testing.T) {
			text, err := os.ReadFile(shared(t, "corpus", "applog", c.file))
			if err != nil {
				t.Fatal(err)
			}
			for _, block := range []int{0, 1 << 18, 4000, 700} {
				r := NewReport(DefaultConfig())
				feed(r, text, block)
				r.Idle(time.Time{})
				got := r.Result()
				if got.Layout != c.layout {
					t.Errorf("blocks of %d: layout %q, want %q", block, got.Layout, c.layout)
				}
				if got.Records != c.records || !maps.Equal(got.ByLevel, c.levels) {
					t.Errorf("blocks of %d: %d records %v, want %d %v", block, got.Records, got.ByLevel, c.records, c.levels)
				}
				if got.RawLines != c.raw {
					t.Errorf("blocks of %d: %d raw lines, want %d: %q", block, got.RawLines, c.raw, got.RawSamples)
				}
				if !maps.Equal(got.Events, c.events) {
					t.Errorf("blocks of %d: events %v, want %v", block, got.Events, c.events)
				}
				if !maps.Equal(got.Exceptions, c.exceptions) {
					t.Errorf("blocks of %d: exceptions %v, want %v", block, got.Exceptions, c.exceptions)
				}
				if want := uint64(bytes.Count(text, []byte("\n"))); got.Lines != want || got.Bytes != uint64(len(text)) {
					t.Errorf("blocks of %d: %d lines and %d bytes, want %d and %d", block, got.Lines, got.Bytes, want, len(text))
				}
				if t.Failed() {
					break
				}
			}
		})
	}
}
