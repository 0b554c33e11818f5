package tools

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// platforms are released in the test: one of each kind of archive and program, or
// those of PLATFORMS, as the script takes them.
var platforms = strings.Fields(cmp.Or(os.Getenv("PLATFORMS"), "linux/amd64 linux/arm64 windows/amd64 darwin/arm64"))

const releaseVersion = "0.0.1-test"

// TestRelease makes the release of the commit twice, in two folders, and wants the
// same bytes; then it looks into what was made. What is not committed is not part
// of it.
func TestRelease(t *testing.T) {
	need(t, "go", "git", "tar", "gzip", "zip", "sha256sum", "dpkg-deb")
	var sums []string
	dist := ""
	for range 2 {
		dir := filepath.Join(t.TempDir(), "checkout")
		run(t, "../..", nil, "git", "worktree", "add", "--detach", dir, "HEAD")
		t.Cleanup(func() { run(t, "../..", nil, "git", "worktree", "remove", "--force", dir) })
		run(t, dir, []string{"PLATFORMS=" + strings.Join(platforms, " "), "VERSION=v" + releaseVersion}, "deploy/release.sh")
		dist = filepath.Join(dir, "dist")
		text, err := os.ReadFile(filepath.Join(dist, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, string(text))
		run(t, dist, nil, "sha256sum", "-c", "--strict", "SHA256SUMS")
	}
	if sums[0] != sums[1] {
		t.Errorf("two builds of one commit differ:\n%s\n%s", sums[0], sums[1])
	}
	want := len(platforms) + 1
	for _, p := range platforms {
		if strings.HasPrefix(p, "linux/") {
			want++
		}
	}
	if n := strings.Count(sums[0], "\n"); n != want {
		t.Errorf("%d files, want an archive each, the packages and the Kubernetes parts:\n%s", n, sums[0])
	}
	revision := strings.TrimSpace(run(t, "../..", nil, "git", "rev-parse", "HEAD"))
	seconds, err := strconv.ParseInt(strings.TrimSpace(run(t, "../..", nil, "git", "log", "-1", "--format=%ct")), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	made := time.Unix(seconds, 0)
	for _, p := range platforms {
		t.Run(p, func(t *testing.T) {
			system, arch, _ := strings.Cut(p, "/")
			name := fmt.Sprintf("sidecar-%s-%s-%s", releaseVersion, system, arch)
			files := map[string]entry{}
			if system == "windows" {
				files = unzip(t, filepath.Join(dist, name+".zip"))
			} else {
				files = untar(t, filepath.Join(dist, name+".tar.gz"))
			}
			program := name + "/sidecar"
			if system == "windows" {
				program += ".exe"
			}
			isProgram(t, files[program].data, system, arch)
			if system == runtime.GOOS && arch == runtime.GOARCH {
				at := filepath.Join(t.TempDir(), "sidecar")
				if err := os.WriteFile(at, files[program].data, 0o755); err != nil {
					t.Fatal(err)
				}
				if out := run(t, ".", nil, at, "version"); !strings.Contains(out, "version "+releaseVersion+" ") || !strings.Contains(out, revision) {
					t.Errorf("it calls itself %s", out)
				}
			}
			want := []string{program, name + "/LICENSE", name + "/README.md"}
			committed := strings.Fields(run(t, "../..", nil, "git", "ls-files", "rules/load", "rules/steady", "dashboards/*.json", "docs", "deploy/prometheus.yml", "LICENSE", "README.md"))
			for _, c := range committed {
				if path.Ext(c) == ".json" && strings.Count(c, "/") > 1 || strings.HasPrefix(c, "docs/gen/") {
					continue
				}
				at := name + "/" + c
				want = append(want, at)
				if text := run(t, "../..", nil, "git", "show", "HEAD:"+c); string(files[at].data) != text {
					t.Errorf("%s is not what was committed", at)
				}
			}
			if system == "linux" {
				want = append(want, name+"/systemd/sidecar.service")
			}
			slices.Sort(want)
			var have []string
			for at, e := range files {
				have = append(have, at)
				if system != "windows" && (!e.time.Equal(made) || e.owner != "0:0" || (e.mode == 0o755) != (at == program)) {
					t.Errorf("%s: made %v by %s, mode %o", at, e.time, e.owner, e.mode)
				}
			}
			slices.Sort(have)
			if want = slices.Compact(want); !slices.Equal(have, want) {
				t.Errorf("it holds\n%s\nwant\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
			}
			if system == "linux" {
				deb := filepath.Join(dist, fmt.Sprintf("sidecar_%s_%s.deb", strings.ReplaceAll(releaseVersion, "-", "."), arch))
				if out := run(t, ".", nil, "dpkg-deb", "-f", deb, "Package", "Version", "Architecture"); out != fmt.Sprintf("Package: sidecar\nVersion: %s\nArchitecture: %s\n", strings.ReplaceAll(releaseVersion, "-", "."), arch) {
					t.Errorf("%s", out)
				}
				box := t.TempDir()
				run(t, ".", nil, "dpkg-deb", "-x", deb, box)
				if data, err := os.ReadFile(filepath.Join(box, "usr/bin/sidecar")); err != nil || !bytes.Equal(data, files[program].data) {
					t.Errorf("the package holds another program: %v", err)
				}
			}
		})
	}
	parts := untar(t, filepath.Join(dist, "sidecar-"+releaseVersion+"-kubernetes.tar.gz"))
	for _, c := range strings.Fields(run(t, "../..", nil, "git", "ls-files", "deploy/kubernetes")) {
		at := "sidecar-" + releaseVersion + "-kubernetes/" + strings.TrimPrefix(c, "deploy/")
		if text := run(t, "../..", nil, "git", "show", "HEAD:"+c); string(parts[at].data) != text {
			t.Errorf("%s is not what was committed", at)
		}
	}
}

type entry struct {
	data  []byte
	mode  int64
	time  time.Time
	owner string
}

func untar(t *testing.T, name string) map[string]entry {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]entry{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[h.Name] = entry{data, h.Mode, h.ModTime, fmt.Sprintf("%d:%d", h.Uid, h.Gid)}
	}
}

func unzip(t *testing.T, name string) map[string]entry {
	t.Helper()
	z, err := zip.OpenReader(name)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	out := map[string]entry{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[f.Name] = entry{data: data}
	}
	return out
}

// TestReleaseLeavesOtherFoldersAlone: the folder of a release is made anew, and one
// that was named by mistake must not be.
func TestReleaseLeavesOtherFoldersAlone(t *testing.T) {
	need(t, "git")
	dir := t.TempDir()
	mine := filepath.Join(dir, "mine")
	if err := os.WriteFile(mine, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("deploy/release.sh", dir)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "PLATFORMS=none/none") // were it to go on, it would not for long
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "is no release") {
		t.Errorf("it goes on: %v %s", err, out)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
}

// isProgram reads the head of a program: what it was built for.
func isProgram(t *testing.T, data []byte, system, arch string) {
	t.Helper()
	r := bytes.NewReader(data)
	switch system {
	case "linux":
		f, err := elf.NewFile(r)
		if want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[arch]; err != nil || f.Machine != want {
			t.Errorf("no program for %s/%s: %v", system, arch, err)
		}
	case "windows":
		f, err := pe.NewFile(r)
		if err != nil || f.Machine != pe.IMAGE_FILE_MACHINE_AMD64 {
			t.Errorf("no program for %s/%s: %v", system, arch, err)
		}
	case "darwin":
		f, err := macho.NewFile(r)
		if err != nil || f.Cpu != macho.CpuArm64 {
			t.Errorf("no program for %s/%s: %v", system, arch, err)
		}
	}
}
