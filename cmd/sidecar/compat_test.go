package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

//go:generate go test -run TestCompatibility . -update

// Queries of the JVM mixin (jsonnet-libs jvm-observ-lib, source "prometheus"), by
// what they show. absent says why there is nothing, where there is to be nothing.
var mixin = []struct {
	shows, query, absent string
}{
	{"heap used", `sum without (id) (jvm_memory_used_bytes{area="heap",SEL})`, ""},
	{"heap committed", `sum without (id) (jvm_memory_committed_bytes{area="heap",SEL})`, ""},
	{"heap max", `sum without (id) (jvm_memory_max_bytes{area="heap",SEL} != -1)`, ""},
	{"alert: heap above 80 %", `jvm_memory_used_bytes{area="heap",SEL} / jvm_memory_max_bytes{area="heap",SEL} * 100`, ""},
	{"non-heap used", `sum without (id) (jvm_memory_used_bytes{area="nonheap",SEL})`, "code heaps are not in hsperfdata"},
	{"non-heap committed", `sum without (id) (jvm_memory_committed_bytes{area="nonheap",SEL})`, "code heaps are not in hsperfdata"},
	{"non-heap max", `sum without (id) (jvm_memory_max_bytes{area="nonheap",SEL} != -1)`, "code heaps are not in hsperfdata"},
	{"collections", `rate(jvm_gc_collection_seconds_count{SEL}[1m])`, ""},
	{"mean time of a collection", `avg by (instance, gc) (rate(jvm_gc_collection_seconds_sum{SEL}[1m]) / rate(jvm_gc_collection_seconds_count{SEL}[1m]))`, ""},
	{"allocated", `increase(jvm_memory_pool_allocated_bytes_total{pool=~"(G1 |PS )?Eden Space",SEL}[1m])`, "only an agent counts it; gclog_allocated_bytes_total has it from the GC log"},
	{"eden used", `jvm_memory_pool_used_bytes{pool=~"(G1 |PS )?Eden Space",SEL}`, ""},
	{"eden max", `jvm_memory_pool_max_bytes{pool=~"(G1 |PS )?Eden Space",SEL}`, "G1's eden has no bound of its own (an agent says -1)"},
	{"eden committed", `jvm_memory_pool_committed_bytes{pool=~"(G1 |PS )?Eden Space",SEL}`, ""},
	{"survivors used", `jvm_memory_pool_used_bytes{pool=~"(G1 |PS )?Survivor Space",SEL}`, ""},
	{"survivors max", `jvm_memory_pool_max_bytes{pool=~"(G1 |PS )?Survivor Space",SEL} != -1`, "G1's survivors have no bound of their own (an agent says -1)"},
	{"survivors committed", `jvm_memory_pool_committed_bytes{pool=~"(G1 |PS )?Survivor Space",SEL}`, ""},
	{"old used", `jvm_memory_pool_used_bytes{pool="PS Old Gen",SEL}`, "the mixin asks for Parallel's pool only"},
	{"old committed", `jvm_memory_pool_committed_bytes{pool="PS Old Gen",SEL}`, "the mixin asks for Parallel's pool only"},
	{"threads", `jvm_threads_current{SEL}`, ""},
	{"daemon threads", `jvm_threads_daemon{SEL}`, ""},
	{"peak of threads", `jvm_threads_peak{SEL}`, ""},
	{"alert: deadlocked threads", `jvm_threads_deadlocked{SEL}`, ""},
	{"threads by state", `sum by (state, instance) (jvm_threads_state{SEL})`, ""},
	{"classes loaded", `jvm_classes_loaded_total{SEL}`, ""},
	{"direct buffers", `jvm_buffer_pool_used_bytes{SEL}`, "only the JVM itself knows: no source outside of it"},
	{"CPU of the process", `rate(process_cpu_seconds_total{SEL}[1m])`, ""},
	{"open descriptors", `process_open_fds{SEL} / process_max_fds{SEL}`, ""},
	{"resident memory", `process_resident_memory_bytes{SEL}`, ""},
	{"start time", `process_start_time_seconds{SEL}`, ""},
	{"the runtime", `jvm_runtime_info{SEL}`, ""},
}

// TestCompatibility runs the queries in a real Prometheus that scrapes a sidecar
// beside real Tomcats, and holds docs/compatibility.md against what came back.
func TestCompatibility(t *testing.T) {
	jdks := onePerMajor(t)
	if len(jdks) < 2 {
		t.Skip("the table has JDK 17 and 25 side by side")
	}
	columns := []struct {
		name    string
		jdk     lab.JDK
		options []string
	}{
		{"17, G1", jdks[0], []string{"-XX:+UseG1GC"}},
		{"17, Parallel", jdks[0], []string{"-XX:+UseParallelGC"}},
		{"25, G1", jdks[len(jdks)-1], []string{"-XX:+UseG1GC"}},
	}
	answers := make([]map[string]int, len(columns))
	for i, c := range columns {
		s := lab.StartTomcat(t, lab.Tomcat{Version: "10.1.34", JDK: c.jdk, JVMArgs: c.options})
		answers[i] = mixinAnswers(t, s)
		s.Stop()
	}
	var b strings.Builder
	b.WriteString(compatHead)
	for _, q := range mixin {
		fmt.Fprintf(&b, "| %s | `%s` |", q.shows, strings.NewReplacer("{SEL}", "", ",SEL", "", "|", "\\|").Replace(q.query))
		anyEmpty := false
		for i := range columns {
			word := "yes"
			if answers[i][q.query] == 0 {
				word, anyEmpty = "–", true
				if q.absent == "" {
					t.Errorf("%s: the query for %s brings nothing: %s", columns[i].name, q.shows, q.query)
				}
			}
			fmt.Fprintf(&b, " %s |", word)
		}
		why := ""
		if anyEmpty {
			why = q.absent
		}
		fmt.Fprintf(&b, " %s |\n", why)
	}
	const path = "../../docs/compatibility.md"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != b.String() {
		t.Errorf("%s is not what a Prometheus sees: run go generate ./cmd/sidecar; it would be\n%s", path, b.String())
	}
}

const compatHead = `# Compatibility

Made by ` + "`go generate ./cmd/sidecar`" + `, which starts Tomcats on JDK 17 and 25, a sidecar with ` + "`jvm: {attach: on}`" + ` and a
Prometheus, and asks the queries of the usual JVM dashboards (the JVM mixin of jsonnet-libs with its source "prometheus",
which is client_java 1.x). "yes" means that the query brought data. Without ` + "`attach: on`" + ` the thread states and the
deadlocked threads are absent too.

| what | query | 17, G1 | 17, Parallel | 25, G1 | where not, why |
| --- | --- | --- | --- | --- | --- |
`

// mixinAnswers counts what each query brings for one server.
func mixinAnswers(t *testing.T, s *lab.Server) map[string]int {
	t.Helper()
	dir := t.TempDir()
	program, err := lab.Build(dir, "./cmd/sidecar")
	if err != nil {
		t.Fatal(err)
	}
	port, err := lab.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(dir, "sidecar.yml")
	text := fmt.Sprintf("targets:\n  discover: false\n  servers:\n  - name: watched\n    match: {pid: %d}\njvm:\n  attach: on\n", s.PID)
	if err := os.WriteFile(settings, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	sidecar, err := lab.StartProgram("sidecar", filepath.Join(dir, "log"), program, "run", "--config.file="+settings,
		"--web.listen-address="+addr, "--storage.path="+filepath.Join(dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sidecar.Stop)
	prometheus, err := lab.StartPrometheus(dir, fmt.Sprintf(`
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs: [{job_name: sidecar, static_configs: [{targets: [%q]}]}]
`, addr))
	lab.Need(t, err)
	t.Cleanup(prometheus.Stop)
	const sel = `job="sidecar",target="watched"`
	if !lab.Until(40*time.Second, func() bool {
		got, err := prometheus.Query(`count_over_time(jvm_threads_state{` + sel + `,state="RUNNABLE"}[1m]) >= 3`)
		return err == nil && len(got) == 1
	}) {
		said, _ := os.ReadFile(filepath.Join(dir, "log"))
		t.Fatalf("the thread states don't reach Prometheus\n%s", said)
	}
	out := map[string]int{}
	for _, q := range mixin {
		got, err := prometheus.Query(strings.ReplaceAll(q.query, "SEL", sel))
		if err != nil {
			t.Errorf("%s: %v", q.query, err)
		}
		out[q.query] = len(got)
	}
	sidecar.Stop()
	prometheus.Stop()
	return out
}
