package gclog

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
)

// shared finds the folder shared beside the checkout, whose logs may not be
// copied into it.
func shared(t testing.TB, sub string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
	dir = filepath.Join(dir, "..", "shared", sub)
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the shared corpus is missing: %v", err)
		}
		t.Skipf("the shared corpus is not here: %v", err)
	}
	return dir
}

// feed splits data into lines as the follower does; what stands behind the last
// newline is handed over too, as replay does at the end of a file.
func feed(data []byte, observe func([]byte) bool) {
	for len(data) > 0 {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			observe(data)
			return
		}
		observe(data[:i])
		data = data[i+1:]
	}
}

func replay(data []byte) *fileStats {
	r := NewReport()
	r.Begin("")
	feed(data, r.Observe)
	r.dec.idle()
	r.end()
	return r.files[0]
}

type truth map[string]string

func readTruth(t testing.TB, path string) []truth {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	head := strings.Split(lines[0], "\t")
	var out []truth
	for _, l := range lines[1:] {
		row := truth{}
		for i, v := range strings.Split(l, "\t") {
			if i < len(head) {
				row[head[i]] = v
			}
		}
		out = append(out, row)
	}
	return out
}

func (f *fileStats) kindsText() string {
	var out []string
	for k := range f.byKind {
		if n := f.byKind[k].count; n > 0 {
			out = append(out, fmt.Sprintf("%s=%d", Kind(k), n))
		}
	}
	sort.Strings(out)
	return strings.Join(out, ";")
}

// causesText leaves out what the truth counts as a cause and we don't: the
// phase a degenerated collection took over from.
func (f *fileStats) causesText() string {
	var out []string
	for c := range f.byCause {
		if n := f.byCause[c].count; n > 0 && c > 0 {
			out = append(out, fmt.Sprintf("%s=%d", Cause(c), n))
		}
	}
	sort.Strings(out)
	return strings.Join(out, ";")
}

// TestCorpus holds every file of the corpus against its counted truth. With -v
// it prints the table of docs/gclog.md.
func TestCorpus(t *testing.T) {
	var table strings.Builder
	fmt.Fprintln(&table, "| file | pauses | by kind | nested | full | seconds | longest | failures | stalls | stopped | heap after KiB | unrecognised | agrees |")
	fmt.Fprintln(&table, "|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	files := 0
	for _, dir := range []string{"corpus/gclog", "corpus/gclog/own"} {
		dir := shared(t, dir)
		for _, row := range readTruth(t, filepath.Join(dir, "truth.tsv")) {
			data, err := os.ReadFile(filepath.Join(dir, row["file"]))
			if err != nil {
				t.Fatal(err)
			}
			files++
			f := replay(data)
			bad := compare(f, row)
			agrees := "yes"
			if len(bad) > 0 {
				agrees = "**no**"
				t.Errorf("%s: %s", row["file"], strings.Join(bad, "; "))
			}
			heap := ""
			if f.hasHeap {
				heap = strconv.FormatFloat(f.heapAfter/1024, 'f', 1, 64)
			}
			fmt.Fprintf(&table, "| %s | %d | %s | %d | %d | %.6f | %.6f | %s | %d, %.6f | %d, %.6f | %s | %d | %s |\n", row["file"], f.pauses, f.kindsText(), f.nested, f.byKind[KindFull].count,
				f.seconds, f.max, f.failuresText(), f.stalls.count, f.stalls.sum, f.stopped.count, f.stopped.sum, heap, f.unrecognised, agrees)
		}
	}
	if files < 90 {
		t.Errorf("only %d files were compared", files)
	}
	t.Logf("%d files\n%s", files, table.String())

	// The docs hold the table of the last run that was kept.
	const begin, end = "<!-- table: go test ./collectors/gclog -run Corpus -update -->\n", "<!-- end of table -->"
	doc := filepath.Join("..", "..", "docs", "gclog.md")
	data, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(data), begin)
	have, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place for the table", doc)
	}
	switch {
	case have == table.String():
	case *update:
		if err := os.WriteFile(doc, []byte(head+begin+table.String()+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the table in %s is not this one; -update mends it", doc)
	}
}

func (f *fileStats) failuresText() string {
	var out []string
	for i, n := range f.failures {
		if n > 0 {
			out = append(out, fmt.Sprintf("%s=%d", Failure(i), n))
		}
	}
	return strings.Join(out, " ")
}

func compare(f *fileStats, row truth) (bad []string) {
	want := func(what string, got uint64, col string) {
		if n, err := strconv.ParseUint(row[col], 10, 64); err != nil || n != got {
			bad = append(bad, fmt.Sprintf("%s %d, want %s", what, got, row[col]))
		}
	}
	near := func(what string, got float64, col string, eps float64) {
		if row[col] == "" {
			return
		}
		if v, err := strconv.ParseFloat(row[col], 64); err != nil || math.Abs(v-got) > eps {
			bad = append(bad, fmt.Sprintf("%s %.7f, want %s", what, got, row[col]))
		}
	}
	if c := f.collector.String(); row["collector"] != "?" && c != row["collector"] {
		bad = append(bad, fmt.Sprintf("collector %s, want %s", c, row["collector"]))
	}
	want("pauses", f.pauses, "pauses")
	want("nested", f.nested, "nested")
	want("full", f.byKind[KindFull].count, "full")
	want("conc starts", f.concStarts, "g1_conc_start")
	if got := f.kindsText(); got != row["kinds"] {
		bad = append(bad, fmt.Sprintf("kinds %s, want %s", got, row["kinds"]))
	}
	wantCauses := strings.ReplaceAll(row["causes"], "System=", "System.gc()=")
	if f.byKind[KindDegenerated].count == 0 {
		if got := f.causesText(); got != wantCauses {
			bad = append(bad, fmt.Sprintf("causes %s, want %s", got, wantCauses))
		}
	}
	near("seconds", f.seconds, "pause_s", 6e-7)
	near("longest", f.max, "max_pause_s", 6e-7)
	want("promotion failed", f.failures[PromotionFailed], "promotion_failed")
	want("concurrent mode failure", f.failures[ConcurrentModeFailure], "cmf")
	want("concurrent mode interrupted", f.failures[ConcurrentModeInterrupted], "cmi")
	want("to-space", f.failures[ToSpaceExhausted]+f.failures[EvacuationFailure], "to_space")
	want("stalls", f.stalls.count, "stalls")
	near("stall seconds", f.stalls.sum, "stall_s", 6e-7)
	want("stopped", f.stopped.count, "stopped_n")
	near("stopped seconds", f.stopped.sum, "stopped_s", 6e-7)
	var cycles uint64
	for _, n := range f.cycles {
		cycles += n
	}
	want("ZGC cycles", cycles, "zgc_cycles")
	if row["heap_after_kib"] != "" {
		near("heap after KiB", f.heapAfter/1024, "heap_after_kib", .06)
	} else if f.hasHeap {
		bad = append(bad, "a heap where there is none")
	}
	near("committed KiB", f.committed/1024, "committed_kib", .06)
	checkStamp := func(what string, s Stamp, up, day string) {
		// Epoch milliseconds stand in the truth as an uptime.
		v := s.Uptime
		if s.Millis && !s.HasUp {
			v = s.Wall
		}
		near(what, v, up, 1e-9)
		if row[day] != "" {
			if got := s.date(); got != row[day] {
				bad = append(bad, fmt.Sprintf("%s %v, want %s", what, got, row[day]))
			}
		}
	}
	checkStamp("first", f.first, "first_uptime", "first_date")
	checkStamp("last", f.last, "last_uptime", "last_date")
	return bad
}

// TestRotatedParts puts the parts of real rotations in order and reads them as
// one: a collection whose lines lie in two files is counted once.
func TestRotatedParts(t *testing.T) {
	dir := shared(t, "corpus/gclog/own")
	for _, tc := range []struct {
		names  []string
		order  string
		pauses uint64
	}{
		{[]string{"jdk17-g1-rotation.log", "jdk17-g1-rotation.log.0", "jdk17-g1-rotation.log.1", "jdk17-g1-rotation.log.2"}, "[1 2 3 0]", 154},
		{[]string{"jdk25-zgc-rotation.log", "jdk25-zgc-rotation.log.3", "jdk25-zgc-rotation.log.2", "jdk25-zgc-rotation.log.1", "jdk25-zgc-rotation.log.0"}, "[4 3 2 1 0]", 88},
		{[]string{"jdk17-g1-restart.log", "jdk17-g1-restart.log.0"}, "[1 0]", 32},
		{[]string{"../jdk7-g1-rotation.log.1.current", "../jdk7-g1-rotation.log.0"}, "[1 0]", 910},
		{[]string{"../jdk25-g1-rotation.log", "../jdk25-g1-rotation.log.0", "../jdk25-g1-rotation.log.1", "../jdk25-g1-rotation.log.2"}, "[1 2 3 0]", 12},
	} {
		var heads []Head
		var datas [][]byte
		for _, n := range tc.names {
			data, err := os.ReadFile(filepath.Join(dir, n))
			if err != nil {
				t.Fatal(err)
			}
			datas = append(datas, data)
			heads = append(heads, Head{Name: n, Head: data[:min(len(data), 8192)], Tail: data[max(0, len(data)-8192):]})
		}
		order := Order(heads)
		if got := fmt.Sprint(order); got != tc.order {
			t.Errorf("%s: order %s, want %s", tc.names[0], got, tc.order)
		}
		r := NewReport()
		for _, i := range order {
			r.Begin(tc.names[i])
			feed(datas[i], r.Observe)
		}
		var pauses, incomplete uint64
		for _, s := range r.JSON().([]summary) {
			pauses += s.Pauses.Count
			incomplete += s.Incomplete
		}
		if pauses != tc.pauses || incomplete > 0 {
			t.Errorf("%s: %d pauses, want %d; %d incomplete", tc.names[0], pauses, tc.pauses, incomplete)
		}
	}
}
