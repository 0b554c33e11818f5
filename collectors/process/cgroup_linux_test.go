package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree writes a made-up /proc/PID and cgroup file system.
func tree(t *testing.T, files map[string]string) (w *world, root string) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return &world{dir: filepath.Join(dir, "proc"), buf: make([]byte, 8<<10)}, filepath.Join(dir, "cg")
}

// figuresText is what was read, in one line; absent figures are not in it.
func figuresText(f cgroupFigures) string {
	var out []string
	add := func(ok bool, format string, a ...any) {
		if ok {
			out = append(out, fmt.Sprintf(format, a...))
		}
	}
	add(f.hasMemory, "memory %g", f.memory)
	add(f.memoryLimit > 0, "limit %g", f.memoryLimit)
	add(f.cpuLimit > 0, "cores %g", f.cpuLimit)
	add(f.hasThrottling, "periods %g throttled %g for %g s", f.periods, f.throttled, f.throttledSeconds)
	add(f.hasOOM, "oom %g", f.oomKills)
	for _, p := range f.pressure {
		add(true, "%s/%s %g", p.resource, p.kind, p.seconds)
	}
	return strings.Join(out, ", ")
}

func TestCgroups(t *testing.T) {
	const psi = "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"version 2, a service with a quota", map[string]string{
			"proc/cgroup": "0::/system.slice/tomcat.service\n",
			"cg/system.slice/tomcat.service/cgroup.procs":    "1\n",
			"cg/system.slice/tomcat.service/memory.current":  "104857600\n",
			"cg/system.slice/tomcat.service/memory.max":      "209715200\n",
			"cg/system.slice/tomcat.service/cpu.max":         "150000 100000\n",
			"cg/system.slice/tomcat.service/cpu.stat":        "usage_usec 1\nnr_periods 10\nnr_throttled 4\nthrottled_usec 2500000\n",
			"cg/system.slice/tomcat.service/memory.events":   "low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\n",
			"cg/system.slice/tomcat.service/cpu.pressure":    psi,
			"cg/system.slice/tomcat.service/memory.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
		}, "memory 1.048576e+08, limit 2.097152e+08, cores 1.5, periods 10 throttled 4 for 2.5 s, oom 1, cpu/some 2.5, cpu/full 1, memory/some 0"},
		{"version 2, no limit of its own, one above it", map[string]string{
			"proc/cgroup":                  "0::/pod/server\n",
			"cg/pod/server/cgroup.procs":   "1\n",
			"cg/pod/server/memory.max":     "max\n",
			"cg/pod/server/memory.current": "5\n",
			"cg/pod/server/cpu.max":        "max 100000\n",
			"cg/pod/memory.max":            "1000\n",
			"cg/pod/cpu.max":               "50000 100000\n",
		}, "memory 5, limit 1000, cores 0.5"},
		{"version 2, the root: no limits and no figures", map[string]string{
			"proc/cgroup": "0::/\n", "cg/cgroup.procs": "1\n", "cg/cpu.pressure": psi,
		}, "cpu/some 2.5, cpu/full 1"},
		{"version 2, no throttling without the controller", map[string]string{
			"proc/cgroup": "0::/a\n", "cg/a/cgroup.procs": "1\n", "cg/a/cpu.stat": "usage_usec 1\nuser_usec 1\nsystem_usec 0\n",
		}, ""},
		{"version 1, docker", map[string]string{
			"proc/cgroup":                                "12:pids:/docker/ab\n4:memory:/docker/ab\n3:cpu,cpuacct:/docker/ab\n",
			"cg/memory/docker/ab/cgroup.procs":           "1\n",
			"cg/memory/docker/ab/memory.usage_in_bytes":  "4096\n",
			"cg/memory/docker/ab/memory.stat":            "cache 1\nhierarchical_memory_limit 1048576\n",
			"cg/memory/docker/ab/memory.oom_control":     "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
			"cg/cpu,cpuacct/docker/ab/cgroup.procs":      "1\n",
			"cg/cpu,cpuacct/docker/ab/cpu.cfs_quota_us":  "200000\n",
			"cg/cpu,cpuacct/docker/ab/cpu.cfs_period_us": "100000\n",
			"cg/cpu,cpuacct/docker/ab/cpu.stat":          "nr_periods 7\nnr_throttled 2\nthrottled_time 1500000000\n",
		}, "memory 4096, limit 1.048576e+06, cores 2, periods 7 throttled 2 for 1.5 s, oom 2"},
		{"version 1, no limits: the largest number and -1 are none", map[string]string{
			"proc/cgroup":                     "4:memory:/\n3:cpu,cpuacct:/\n",
			"cg/memory/cgroup.procs":          "1\n",
			"cg/memory/memory.usage_in_bytes": "4096\n",
			"cg/memory/memory.stat":           "hierarchical_memory_limit 9223372036854771712\n",
			"cg/cpu/cgroup.procs":             "1\n",
			"cg/cpu/cpu.cfs_quota_us":         "-1\n",
			"cg/cpu/cpu.cfs_period_us":        "100000\n",
		}, "memory 4096"},
		{"hybrid: the controllers are in version 1", map[string]string{
			"proc/cgroup":                       "4:memory:/a\n0::/a\n",
			"cg/unified/a/cgroup.procs":         "1\n",
			"cg/memory/a/cgroup.procs":          "1\n",
			"cg/memory/a/memory.usage_in_bytes": "77\n",
		}, "memory 77"},
		{"another cgroup namespace than ours", map[string]string{
			"proc/cgroup": "0::/../../kubepods/x\n", "cg/kubepods/x/cgroup.procs": "1\n", "cg/kubepods/x/memory.current": "1\n",
		}, ""},
		{"garbage", map[string]string{
			"proc/cgroup": "0::/a\nx\n::\n", "cg/a/cgroup.procs": "", "cg/a/memory.current": "many\n", "cg/a/memory.max": "\n", "cg/a/cpu.max": "1\n",
			"cg/a/cpu.pressure": "some\nsome total=x\nother total=1\n",
		}, ""},
		{"no cgroups at all", map[string]string{"proc/stat": ""}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, root := tree(t, c.files)
			var g cgroup
			if got := figuresText(g.read(w, root)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			// The second look is without a search for the folder.
			if got := figuresText(g.read(w, root)); got != c.want {
				t.Errorf("second look: got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestPressure(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []pressure
	}{
		{"some avg10=1.53 avg60=0.87 avg300=0.30 total=4760988\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=12\n",
			[]pressure{{"io", "some", 4.760988}, {"io", "full", 0.000012}}},
		{"some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n", []pressure{{"io", "some", 0}}}, // cpu before 5.13 has no full
		{"", nil},
		{"full total=18446744073709551615\n", nil},
		{"some total=\nsome avg10=0.00\n", nil},
	} {
		if got := parsePressure(nil, "io", []byte(c.in)); !slices.Equal(got, c.want) {
			t.Errorf("%q: %v, want %v", c.in, got, c.want)
		}
	}
}
