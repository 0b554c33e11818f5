package systemd

import (
	"bufio"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

// A real systemd runs the unit as it is, beside a Tomcat of another user: both in
// namespaces of their own, above a copy-on-write view of this machine that is
// thrown away. systemd has cgroups of its own: one of the second hierarchy, and,
// where the machine has its controllers of memory and CPU in the first still, one of
// each of those. Without any, MemoryMax and CPUQuota are set and nobody holds them.
//
//	this test ── sh (joins a new cgroup) ── unshare ── systemd, pid 1
//	                                                     ├ tomcat.service
//	                                                     ├ sidecar.service
//	                                                     └ probe.service: TestProbe
//
// TestProbe, in this binary too, looks at it from the inside and ends it.

const (
	tomcatUser  = 54310
	sidecarUser = 54311
	tomcatPort  = 8080 // of the new network, not of ours
)

// boot makes the view of the machine and becomes its systemd.
const boot = `set -eu
cd "$TOP"
mount -t overlay overlay -o "lowerdir=/,upperdir=$TOP/upper,workdir=$TOP/work" root
cd root
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
if [ -z "$CONTROLLERS" ]; then
	mount -t cgroup2 cgroup2 sys/fs/cgroup
else # what systemd calls hybrid
	mount -t tmpfs -o size=1m tmpfs sys/fs/cgroup
	mkdir sys/fs/cgroup/unified
	mount -t cgroup2 cgroup2 sys/fs/cgroup/unified
	for c in $CONTROLLERS; do
		mkdir "sys/fs/cgroup/$c"
		case $c in systemd) o=none,name=systemd ;; *) o=$c ;; esac
		mount -t cgroup -o "$o" cgroup "sys/fs/cgroup/$c"
	done
fi
mount -t tmpfs -o size=32m tmpfs run
mount -t tmpfs -o size=1m tmpfs dev
mkdir dev/pts dev/shm
ln -s pts/ptmx dev/ptmx
while read name major minor; do mknod -m 666 "dev/$name" c "$major" "$minor"; done <<'END'
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
END
mount -t tmpfs -o size=4m tmpfs etc/systemd/system
cp "$TOP"/units/* etc/systemd/system/
# What a machine's start does and this one has no use for.
for u in systemd-tmpfiles-setup.service systemd-tmpfiles-setup-dev.service systemd-tmpfiles-clean.timer systemd-sysusers.service \
	systemd-update-utmp.service systemd-udevd.service systemd-udev-trigger.service modprobe@.service sys-kernel-debug.mount \
	sys-kernel-tracing.mount dev-hugepages.mount sys-fs-fuse-connections.mount proc-sys-fs-binfmt_misc.automount; do
	ln -s /dev/null "etc/systemd/system/$u"
done
# As the page says, but for useradd, which not each machine has.
install -m 755 "$TOP/sidecar" usr/bin/sidecar
install -D -m 644 "$TOP/sidecar.yml" etc/sidecar/sidecar.yml
rm -rf var/lib/sidecar
for u in "tomcat $TOMCAT" "sidecar $SIDECAR"; do
	echo "${u% *}:x:${u#* }:${u#* }::/nonexistent:/usr/sbin/nologin" >>etc/passwd
	echo "${u% *}:x:${u#* }:" >>etc/group
done
mkdir -p mnt report
mount --bind "$TOP/report" report
pivot_root . mnt
umount -l /mnt
export container=lab
exec "$SYSTEMD" --system --unit=probe.target --log-target=journal --show-status=no </dev/null
`

// cgroups makes a new group in the second hierarchy, and in those of the first that
// systemd can make use of, and takes them away again. Groups are folders to be
// joined, the one of the second hierarchy before all.
func cgroups(t *testing.T) (groups, controllers []string) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Skip(err)
	}
	self, _ := os.ReadFile("/proc/self/cgroup")
	// own is our group in a hierarchy, by the middle of its line: "" is the second.
	own := func(name string) string {
		for line := range strings.Lines(string(self)) {
			if f := strings.SplitN(strings.TrimSpace(line), ":", 3); len(f) == 3 && f[1] == name {
				return f[2]
			}
		}
		return ""
	}
	second := ""
	first := map[string]string{}
	for line := range strings.Lines(string(mounts)) {
		before, after, _ := strings.Cut(line, " - ")
		at, how := strings.Fields(before)[4], strings.Fields(after)
		switch options := strings.Split(how[len(how)-1], ","); {
		case how[0] == "cgroup2":
			second = filepath.Join(at, own(""))
		case how[0] != "cgroup":
		case slices.Contains(options, "name=systemd"):
			first["systemd"] = filepath.Join(at, own("name=systemd"))
		default:
			// A hierarchy of several controllers at once can't be mounted anew by one.
			for _, c := range []string{"memory", "cpu", "cpuacct"} {
				if options[len(options)-1] == c && own(c) != "" {
					first[c] = filepath.Join(at, own(c))
				}
			}
		}
	}
	if second == "" {
		t.Skip("no cgroup2 is mounted here")
	}
	places := []string{second}
	if first["systemd"] != "" && first["memory"] != "" {
		controllers = slices.Sorted(maps.Keys(first))
		for _, c := range controllers {
			places = append(places, first[c])
		}
	}
	for _, place := range places {
		dir, err := os.MkdirTemp(place, "sidecar-test-")
		if err != nil {
			t.Skip("no cgroup can be made here: ", err)
		}
		t.Cleanup(func() { removeGroup(t, dir) })
		groups = append(groups, dir)
	}
	return groups, controllers
}

// removeGroup takes a group away with all below it. The last processes need a moment
// to go.
func removeGroup(t *testing.T, dir string) {
	if !lab.Until(10*time.Second, func() bool {
		var groups []string
		filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				groups = append(groups, path)
			}
			return nil
		})
		for i := len(groups) - 1; i >= 0; i-- {
			os.Remove(groups[i])
		}
		_, err := os.Stat(dir)
		return os.IsNotExist(err)
	}) {
		t.Errorf("%s is left", dir)
	}
}

func systemdPath(t *testing.T) string {
	t.Helper()
	for _, path := range []string{"/lib/systemd/systemd", "/usr/lib/systemd/systemd"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Skip("there is no systemd on this machine")
	return ""
}

func TestUnderSystemd(t *testing.T) {
	if testing.Short() {
		t.Skip("starts systemd, a real server and the sidecar")
	}
	if os.Getuid() != 0 {
		t.Skip("needs root, for namespaces and a copy-on-write view of the machine")
	}
	for _, p := range []string{"unshare", "pivot_root", "mount", "install", "systemctl"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Skip(err)
		}
	}
	systemd := systemdPath(t)
	groups, controllers := cgroups(t)
	lab.Exclusive(t)
	top, err := os.MkdirTemp("", "systemd") // t.TempDir is closed to the server's user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Chmod(top, 0o755))
	for _, d := range []string{"upper", "work", "root", "units", "report"} {
		must(os.Mkdir(filepath.Join(top, d), 0o755))
	}
	if out, err := exec.Command("unshare", "-m", "mount", "-t", "overlay", "overlay", "-o",
		fmt.Sprintf("lowerdir=/,upperdir=%s/upper,workdir=%[1]s/work", top), top+"/root").CombinedOutput(); err != nil {
		t.Skipf("no overlay can be mounted here: %v %s", err, out)
	}
	copyFile := func(from, to string, mode os.FileMode) {
		t.Helper()
		data, err := os.ReadFile(from)
		must(err)
		must(os.WriteFile(filepath.Join(top, to), data, mode))
	}
	_, err = lab.Build(top, "./cmd/sidecar")
	must(err)
	copyFile(unitFile, "units/"+unitFile, 0o644)
	copyFile("../package/sidecar.yml", "sidecar.yml", 0o644)
	copyFile("/proc/self/exe", "probe", 0o755)
	server, env, command, err := lab.WriteTomcat(filepath.Join(top, "tomcat"), tomcatPort, lab.Tomcat{
		User: tomcatUser, Executor: &lab.Executor{MaxThreads: 10, MinSpare: 4, MaxQueueSize: 10}, AcceptCount: 100, AccessLogPattern: `%h %l %u %t "%r" %s %b %D`,
	})
	lab.Need(t, err)
	var environment strings.Builder
	for _, e := range env {
		fmt.Fprintf(&environment, "Environment=%q\n", e)
	}
	for name, text := range map[string]string{
		"tomcat.service": fmt.Sprintf("[Service]\nUser=tomcat\nGroup=tomcat\nUMask=0027\nWorkingDirectory=%s\n%sExecStart=%s\nStandardOutput=append:%s/catalina.out\nStandardError=inherit\nSuccessExitStatus=143\n",
			server.Base, environment.String(), strings.Join(command, " "), server.LogDir),
		"probe.service": fmt.Sprintf("[Service]\nType=oneshot\nEnvironment=SYSTEMD_TEST_PROBE=1\nExecStart=%s/probe -test.run=^TestProbe$ -test.v -test.timeout=150s\n"+
			"StandardOutput=file:/report/probe\nStandardError=inherit\nExecStopPost=systemctl --force --force poweroff\n", top),
		"probe.target": "[Unit]\nWants=tomcat.service sidecar.service probe.service\n",
	} {
		must(os.WriteFile(filepath.Join(top, "units", name), []byte(text), 0o644))
	}
	must(os.WriteFile(filepath.Join(top, "boot"), []byte(boot), 0o755))
	cmd := exec.Command("/bin/sh", "-c", `for g in $CGROUPS; do echo $$ >"$g/cgroup.procs" || exit 1; done; exec unshare -m -p -f -n -C -u -i --kill-child /bin/sh "$TOP/boot"`)
	cmd.Env = append(os.Environ(), "TOP="+top, "CGROUPS="+strings.Join(groups, " "), "CONTROLLERS="+strings.Join(controllers, " "), "SYSTEMD="+systemd, fmt.Sprintf("TOMCAT=%d", tomcatUser), fmt.Sprintf("SIDECAR=%d", sidecarUser))
	log, err := os.Create(filepath.Join(top, "log"))
	must(err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	child, err := lab.StartCommand("systemd", cmd)
	must(err)
	defer child.Kill()
	lab.Until(3*time.Minute, func() bool { gone, _ := child.Exited(); return gone })
	report, _ := os.ReadFile(filepath.Join(top, "report/probe"))
	said, _ := os.ReadFile(log.Name())
	if !strings.Contains(string(report), "--- PASS: TestProbe") {
		t.Errorf("the probe did not pass:\n%s\n%s", report, said)
		return
	}
	for lines := bufio.NewScanner(strings.NewReader(string(report))); lines.Scan(); {
		t.Log(lines.Text())
	}
}
