package lab

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A JDK is one Java on this machine, with its compiler and tools.
type JDK struct {
	Home    string
	Version string // as its release file has it: "17.0.15", "1.8.0_392"
	Major   int
}

// Tool is the path of a program of the JDK, say javac or jstack.
func (j JDK) Tool(name string) string { return filepath.Join(j.Home, "bin", name) }

// JDKs finds all JDKs of the machine, oldest first: $JAVA_HOME, those below
// /usr/lib/jvm, and the one whose java is on the PATH.
func JDKs() []JDK {
	homes := []string{os.Getenv("JAVA_HOME")}
	for _, pattern := range []string{"/usr/lib/jvm/*", "/opt/java/*", "/opt/jdk*"} {
		found, _ := filepath.Glob(pattern)
		homes = append(homes, found...)
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if real, err := filepath.EvalSymlinks(filepath.Join(dir, "javac")); err == nil {
			homes = append(homes, filepath.Dir(filepath.Dir(real)))
		}
	}
	seen := map[string]bool{}
	var jdks []JDK
	for _, home := range homes {
		real, err := filepath.EvalSymlinks(home)
		if home == "" || err != nil || seen[real] {
			continue
		}
		seen[real] = true
		j := JDK{Home: real}
		if !isFile(j.Tool("javac")) || !isFile(j.Tool("java")) {
			continue
		}
		if j.Version = releaseVersion(real); j.Version == "" {
			continue
		}
		j.Major = javaMajor(j.Version)
		jdks = append(jdks, j)
	}
	slices.SortFunc(jdks, func(a, b JDK) int {
		if a.Major != b.Major {
			return a.Major - b.Major
		}
		return strings.Compare(a.Home, b.Home)
	})
	return jdks
}

// AnyJDK is the oldest JDK from the given major version on.
func AnyJDK(from int) (JDK, error) {
	for _, j := range JDKs() {
		if j.Major >= from {
			return j, nil
		}
	}
	return JDK{}, Missing{fmt.Errorf("no JDK %d or newer with javac was found (looked at $JAVA_HOME, /usr/lib/jvm and the PATH): "+
		"install one, on Debian `apt-get install default-jdk-headless`, or set JAVA_HOME", from)}
}

// releaseVersion reads JAVA_VERSION from the release file of a JDK: no java is
// started only to ask it who it is.
func releaseVersion(home string) string {
	f, err := os.Open(filepath.Join(home, "release"))
	if err != nil {
		return ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if v, ok := strings.CutPrefix(s.Text(), "JAVA_VERSION="); ok {
			return strings.Trim(v, `"`)
		}
	}
	return ""
}

// javaMajor is 8 for "1.8.0_392" and 17 for "17.0.15".
func javaMajor(version string) int {
	version = strings.TrimPrefix(version, "1.")
	end := strings.IndexFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(version)
	}
	n, _ := strconv.Atoi(version[:end])
	return n
}
