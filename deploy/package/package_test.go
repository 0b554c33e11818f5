package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// run runs a command and fails the test with all it said when it fails.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func need(t *testing.T, programs ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the sidecar and its package")
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skip(err)
		}
	}
}

// build makes the package of the tree as it is.
func build(t *testing.T) (deb string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "dashboards"), 0o755); err != nil {
		t.Fatal(err)
	}
	boards, err := filepath.Glob("../../dashboards/*.json")
	if err != nil || len(boards) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	for _, b := range boards {
		data, err := os.ReadFile(b)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "dashboards", filepath.Base(b)), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run(t, "../..", []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-buildvcs=false", "-o", filepath.Join(dir, "sidecar"), "./cmd/sidecar")
	nfpm := filepath.Join(dir, "nfpm")
	run(t, ".", nil, "go", "build", "-o", nfpm, "github.com/goreleaser/nfpm/v2/cmd/nfpm")
	deb = filepath.Join(dir, "sidecar.deb")
	run(t, "../..", []string{"ARCH=" + runtime.GOARCH, "VERSION=0.0.0+test", "DIST=" + dir, "SOURCE_DATE_EPOCH=1700000000"},
		nfpm, "package", "-f", "deploy/package/nfpm.yaml", "-p", "deb", "-t", deb)
	return deb
}

// life is what a package goes through on a machine. It runs in a copy-on-write
// view of this machine, which is thrown away: the real dpkg with the real
// maintainer scripts, and nothing of it stays.
const life = `set -eux
mount -t overlay overlay -o "lowerdir=/,upperdir=$TOP/upper,workdir=$TOP/work" "$TOP/root"
cp "$DEB" "$TOP/root/sidecar.deb"
exec chroot "$TOP/root" /bin/sh -eux <<'END'
test ! -e /run/systemd/system
dpkg -i /sidecar.deb
grep '^sidecar:.*:/usr/sbin/nologin$' /etc/passwd
sidecar version
sidecar check --config.file=/etc/sidecar/sidecar.yml
sidecar check /usr/share/sidecar/rules/load/*.yml /usr/share/sidecar/rules/steady/*.yml
test "$(stat -c '%U %a' /usr/bin/sidecar /etc/sidecar/sidecar.yml | sort -u | tr '\n' ' ')" = 'root 644 root 755 '
test -f /usr/lib/systemd/system/sidecar.service
test -f /usr/share/sidecar/dashboards/load-run.json
dpkg -V sidecar

echo '# mine' >>/etc/sidecar/sidecar.yml
mkdir /var/lib/sidecar
dpkg -i /sidecar.deb
tail -1 /etc/sidecar/sidecar.yml | grep mine

dpkg -r sidecar
test ! -e /usr/bin/sidecar
test ! -e /usr/lib/systemd/system/sidecar.service
test -e /etc/sidecar/sidecar.yml
test -e /var/lib/sidecar
dpkg -P sidecar
test ! -e /etc/sidecar
test ! -e /etc/default/sidecar
test ! -e /usr/share/sidecar
test ! -e /var/lib/sidecar
grep -q '^sidecar:' /etc/passwd

# Once more where systemd runs: a systemctl that writes down what it is told, and
# that cannot start the service. The package is installed all the same.
mkdir -p /run/systemd/system /usr/local/bin
cat >/usr/local/bin/systemctl <<'SH'
#!/bin/sh
echo "$*" >>/said
[ "$1" != start ] && [ "$1" != try-restart ]
SH
chmod 755 /usr/local/bin/systemctl
PATH=/usr/local/bin:$PATH
dpkg -i /sidecar.deb
dpkg -i /sidecar.deb
test "$(dpkg-query -W -f '${Status}' sidecar)" = 'install ok installed'
dpkg -P sidecar
test "$(grep -v daemon-reload /said | tr '\n' ',')" = 'enable sidecar.service,start sidecar.service,try-restart sidecar.service,disable --now sidecar.service,'
test "$(grep -c daemon-reload /said)" -ge 3
echo the whole life
END
`

func TestInstallAndRemove(t *testing.T) {
	need(t, "go", "dpkg", "unshare", "chroot")
	if os.Getuid() != 0 {
		t.Skip("needs root, for a copy-on-write view of the machine")
	}
	top := t.TempDir()
	for _, d := range []string{"upper", "work", "root"} {
		if err := os.Mkdir(filepath.Join(top, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	probe := exec.Command("unshare", "-m", "mount", "-t", "overlay", "overlay", "-o",
		"lowerdir=/,upperdir="+top+"/upper,workdir="+top+"/work", top+"/root")
	if out, err := probe.CombinedOutput(); err != nil {
		t.Skipf("no overlay can be mounted here: %v %s", err, out)
	}
	deb := build(t)
	out := run(t, ".", []string{"TOP=" + top, "DEB=" + deb}, "unshare", "-m", "/bin/sh", "-c", life)
	if !strings.HasSuffix(out, "the whole life\n") {
		t.Errorf("it ended early:\n%s", out)
	}
}
