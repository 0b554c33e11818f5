package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// debian unpacks a Debian package, and those libraries it needs that the
// machine lacks, below the cache. Nothing is installed and no root is needed:
// apt-get download and dpkg -x both work for anybody.
func debian(name, why string) (string, error) {
	return once(filepath.Join("debian", name), "Debian package "+name, why, func(ctx context.Context, dir string) error {
		for _, tool := range []string{"apt-get", "dpkg", "dpkg-deb"} {
			if _, err := exec.LookPath(tool); err != nil {
				return fmt.Errorf("this machine has no %s: install %s by its own means and put it on the PATH", tool, name)
			}
		}
		// apt's own locks make a second one fail, not wait.
		unlock, err := cacheLock("apt")
		if err != nil {
			return err
		}
		defer unlock()
		a := apt{debs: dir + ".debs", done: map[string]bool{}}
		defer os.RemoveAll(a.debs)
		if err := a.unpack(ctx, name, dir); err != nil {
			return err
		}
		return relink(dir)
	})
}

// apt downloads and unpacks one package with its libraries.
type apt struct {
	debs string          // where the .deb files go
	done map[string]bool // packages looked at
	args []string        // apt's options for private package lists, once those were made
}

// unpack puts package name, and what it needs, into dir.
func (a *apt) unpack(ctx context.Context, name, dir string) error {
	a.done[name] = true
	deb, err := a.download(ctx, name)
	if err != nil {
		return err
	}
	if _, err := run(ctx, exec.Command("dpkg", "-x", deb, dir)); err != nil {
		return err
	}
	depends, err := run(ctx, exec.Command("dpkg-deb", "-f", deb, "Depends"))
	if err != nil {
		return err
	}
	for _, group := range dependencies(depends) {
		if err := a.anyOf(ctx, group, dir); err != nil {
			return fmt.Errorf("%s needs %s: %w", name, strings.Join(group, " or "), err)
		}
	}
	return nil
}

// anyOf unpacks the first of a group of alternatives that can be had, or none
// where the machine has one of them installed.
func (a *apt) anyOf(ctx context.Context, group []string, dir string) error {
	for _, name := range group {
		// A shared library may be the machine's. A Java package's links lead to the
		// jars of the next one beside it, and Chromium looks for its data beside
		// itself, so these are always taken together.
		if a.done[name] || (!javaPackage.MatchString(name) && installed(ctx, name)) {
			return nil
		}
	}
	var errs []error
	for _, name := range group {
		err := a.unpack(ctx, name, dir)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// dependencies reads a Depends field into groups of alternatives. Only what a
// program loads counts: libraries, shared files of the same source, and the
// parts of the servers' packages. Web pages, users, services and scripts of
// packages that we never install are left out.
func dependencies(field string) (groups [][]string) {
	for _, part := range strings.Split(strings.TrimSpace(field), ",") {
		var group []string
		for _, alternative := range strings.Split(part, "|") {
			name := packageName.FindString(strings.TrimSpace(alternative))
			if wanted.MatchString(name) && !unwanted.MatchString(name) {
				group = append(group, name)
			}
		}
		if len(group) > 0 {
			groups = append(groups, group)
		}
	}
	return groups
}

var (
	javaPackage = regexp.MustCompile(`-java$|^(tomcat|jetty|chromium-common$)`)
	packageName = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]*`)
	wanted      = regexp.MustCompile(`^(lib|tomcat|jetty|chromium-common$)`)
	// libc is the machine's own in any case: another one beside it ends in tears.
	unwanted = regexp.MustCompile(`^(libjs-|libc6$|libgcc|libc-bin$|libpam|libperl)`)
)

func installed(ctx context.Context, name string) bool {
	out, err := run(ctx, exec.Command("dpkg-query", "-W", "-f", "${Status}", name))
	return err == nil && strings.HasPrefix(out, "install ok installed")
}

// download gets the .deb of one package. It tries with the machine's package
// lists first; where they are missing or so old that the file is gone, lists of
// our own are fetched below the cache, since updating the machine's would need
// root and is not ours to do.
func (a *apt) download(ctx context.Context, name string) (string, error) {
	deb, err := a.try(ctx, name)
	if err == nil || a.args != nil {
		return deb, err
	}
	state := filepath.Join(Cache(), "apt")
	for _, sub := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(state, sub), 0o755); err != nil {
			return "", err
		}
	}
	a.args = []string{
		"-o", "Dir::State::Lists=" + filepath.Join(state, "lists"),
		"-o", "Dir::Cache=" + filepath.Join(state, "cache"),
		// root's downloads would else run as a user who may not write here.
		"-o", "APT::Sandbox::User=root",
	}
	say("  the machine's package lists don't have %s; fetching lists of our own into %s", name, state)
	update := exec.Command("apt-get", append(a.args, "-q", "update")...)
	if _, uerr := run(ctx, update); uerr != nil {
		return "", fmt.Errorf("%w; and apt-get update failed: %w", err, uerr)
	}
	return a.try(ctx, name)
}

func (a *apt) try(ctx context.Context, name string) (string, error) {
	into := filepath.Join(a.debs, name)
	if err := os.MkdirAll(into, 0o755); err != nil {
		return "", err
	}
	cmd := exec.Command("apt-get", append(a.args, "-q", "-o", "APT::Sandbox::User=root", "download", name)...)
	cmd.Dir = into
	if _, err := run(ctx, cmd); err != nil {
		return "", err
	}
	found, _ := filepath.Glob(filepath.Join(into, "*.deb"))
	if len(found) != 1 {
		return "", fmt.Errorf("apt-get download %s brought %d files", name, len(found))
	}
	return found[0], nil
}

// relink turns absolute links of an unpacked package (/usr/share/maven/conf ->
// /etc/maven) into links inside the folder it was unpacked into, where their
// end is there.
func relink(dir string) error {
	return filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Type()&os.ModeSymlink == 0 {
			return err
		}
		end, err := os.Readlink(path)
		if err != nil || !filepath.IsAbs(end) {
			return err
		}
		inside := filepath.Join(dir, end)
		if _, err := os.Lstat(inside); err != nil {
			return nil
		}
		rel, err := filepath.Rel(filepath.Dir(path), inside)
		if err != nil {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
		return os.Symlink(rel, path)
	})
}

// tools are the programs the lab uses, with the Debian package of each.
var tools = map[string]struct{ pkg, why string }{
	"prometheus":                  {"prometheus", "Prometheus, to scrape the sidecar and fire its alerts"},
	"promtool":                    {"prometheus", "promtool, to check and test the rules"},
	"prometheus-alertmanager":     {"prometheus-alertmanager", "Alertmanager, to take the alerts"},
	"ab":                          {"apache2-utils", "ab, to make load"},
	"wrk":                         {"wrk", "wrk, to make load"},
	"prometheus-process-exporter": {"prometheus-process-exporter", "process-exporter, to compare with"},
	"qemu-aarch64-static":         {"qemu-user-static", "an emulator, to run the arm64 program"},
	"chromium-headless-shell":     {"chromium-headless-shell", "Chromium without a screen, to look at the page"},
}

// tool finds a program on the PATH, or in a Debian package unpacked in the
// cache. The environment it returns lets the program find the libraries that
// came with it.
func tool(program string) (path string, env []string, err error) {
	pkg, why := tools[program].pkg, tools[program].why
	if path, err := exec.LookPath(program); err == nil {
		return path, os.Environ(), nil
	}
	dir, err := debian(pkg, why)
	if err != nil {
		return "", nil, fmt.Errorf("no %s on the PATH, and %w", program, err)
	}
	path = filepath.Join(dir, "usr/bin", program)
	if beside := filepath.Join(dir, "usr/lib/chromium", program); isFile(beside) {
		// What Chromium has in usr/bin is a script that names the full path.
		path = beside
	}
	if !isFile(path) {
		return "", nil, fmt.Errorf("package %s has no %s", pkg, program)
	}
	libs, _ := filepath.Glob(filepath.Join(dir, "usr/lib/*-linux-*"))
	more, _ := filepath.Glob(filepath.Join(dir, "lib/*-linux-*"))
	libs = append(libs, more...)
	env = os.Environ()
	if len(libs) > 0 {
		env = append(env, "LD_LIBRARY_PATH="+strings.Join(libs, ":"))
	}
	return path, env, nil
}
