package target

import (
	"archive/zip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/root"
)

// maxSettings bounds a settings file. Real ones are some 10 KB.
const maxSettings = 4 << 20

// fileID is a file, whatever it is called.
type fileID struct{ dev, ino uint64 }

// access is what a target itself may open. A name that the target gave us is
// opened beneath its root, and then either the target holds that very file open,
// or its owner and mode would let the target read it. Otherwise a target could
// have the sidecar read for it: an access log called /etc/shadow.
type access struct {
	root string // the folder that is "/" for the target
	cred root.Cred
	held map[fileID]bool
}

// open opens a file of the target, if the target itself could.
func (a *access) open(name string) (*os.File, error) {
	f, err := root.Open(a.root, name)
	if err != nil {
		return nil, err
	}
	if facts, ok := root.Look(f); ok && !a.held[fileID{facts.Dev, facts.Ino}] && !a.cred.MayRead(facts) {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: name, Err: root.ErrNotTheirs}
	}
	return f, nil
}

// Open opens a file that the target names (a log, by its path as the target
// sees it) for reading: beneath the target's own root, regular, on a disk, and
// only if the target itself may read it or holds it open. Whoever reads a
// target's files does it through this.
func (t *Target) Open(name string) (*os.File, error) {
	if t.access == nil {
		return root.Open(t.Process.Root, name)
	}
	return t.access.open(name)
}

// A world is the file tree as a target sees it, and what was read from it, so
// that a change can be noticed.
type world struct {
	access
	// read are the files whose content was used.
	read []input
}

// input is one file that was read, or was not there.
type input struct {
	path string // as we open it
	mod  time.Time
	size int64
}

// stat is what an input looks like now.
func statInput(p string) input {
	in := input{path: p}
	if st, err := os.Stat(p); err == nil {
		in.mod, in.size = st.ModTime(), st.Size()
	}
	return in
}

var errTooLarge = errors.New("larger than any settings file")

// settings reads a whole settings file, and remembers it.
func (w *world) settings(name string) ([]byte, error) {
	if len(w.read) < 200 {
		w.read = append(w.read, statInput(path.Join(w.root, name)))
	}
	f, err := w.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSettings+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxSettings {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errTooLarge}
	}
	return data, nil
}

// list is the names in a folder, sorted as the system gives them and at most
// limit of them.
func (w *world) list(name string, limit int) []string {
	d, err := root.OpenDir(w.root, name)
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(limit)
	return names
}

// regular says whether a file is there and may be read.
func (w *world) regular(name string) bool {
	f, err := w.open(name)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// maxJar bounds the archives that are looked into. catalina.jar has 2 MB; the
// directory of a larger one would have to be held in memory.
const maxJar = 16 << 20

// maxMember bounds what is read of one file in an archive.
const maxMember = 64 << 10

// jarMember reads one small file out of a jar.
func jarMember(f *os.File, names ...string) map[string][]byte {
	st, err := f.Stat()
	if err != nil || st.Size() > maxJar {
		return nil
	}
	z, err := zip.NewReader(f, st.Size())
	if err != nil {
		return nil
	}
	out := map[string][]byte{}
	for _, m := range z.File {
		for _, want := range names {
			if m.Name != want || out[want] != nil {
				continue
			}
			r, err := m.Open()
			if err != nil {
				continue
			}
			data, err := io.ReadAll(io.LimitReader(r, maxMember))
			r.Close()
			if err == nil {
				out[want] = data
			}
		}
	}
	return out
}

const (
	serverInfo = "org/apache/catalina/util/ServerInfo.properties"
	manifest   = "META-INF/MANIFEST.MF"
)

// tomcatVersionOf reads the version out of catalina.jar or tomcat-embed-core.
func tomcatVersionOf(f *os.File) string {
	m := jarMember(f, serverInfo, manifest)
	p := parseProperties(m[serverInfo])
	if n := p["server.number"]; n != "" {
		return dotted(n)
	}
	if _, v, ok := strings.Cut(p["server.info"], "/"); ok {
		return dotted(v)
	}
	return dotted(manifestVersion(m[manifest]))
}

// jettyVersionOf reads the version out of jetty-server.jar or start.jar.
func jettyVersionOf(f *os.File) string {
	return dotted(manifestVersion(jarMember(f, manifest)[manifest]))
}

func manifestVersion(data []byte) string {
	found := ""
	for line := range strings.Lines(string(data)) {
		k, v, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ": ")
		if ok && (k == "Implementation-Version" || k == "Bundle-Version" && found == "") {
			found = v
		}
	}
	return found
}

// dotted keeps the numbers of a version: 9.0.70 of 9.0.70.0, 9.4.57 of
// 9.4.57.v20241219.
func dotted(s string) string {
	parts := strings.Split(s, ".")
	n := 0
	for n < len(parts) && n < 3 && leadingDigits(parts[n]) != "" {
		parts[n] = leadingDigits(parts[n])
		n++
	}
	if n < 2 {
		return ""
	}
	return strings.Join(parts[:n], ".")
}

func leadingDigits(s string) string {
	i := 0
	for i < len(s) && i < 5 && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return s[:i]
}
