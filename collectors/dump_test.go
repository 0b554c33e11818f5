package collectors

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/target"
)

// Kept dumps are bounded in number and in size, the oldest go, the newest stays.
func TestKeptDumpsAreBounded(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, size int64) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
	}
	left := func() string {
		entries, _ := os.ReadDir(dir)
		var names []string
		for _, e := range entries {
			names = append(names, strings.TrimSuffix(e.Name(), ".txt.gz"))
		}
		return strings.Join(names, " ")
	}
	for i := range keptDumps + 3 {
		write(fmt.Sprintf("%02d.txt.gz", i), 10)
	}
	write("notes", 10) // somebody else's
	if err := pruneDumps(dir); err != nil {
		t.Fatal(err)
	}
	if got := left(); !strings.HasPrefix(got, "03 04 ") || !strings.HasSuffix(got, " 22 notes") {
		t.Errorf("by number: %s", got)
	}
	write("22.txt.gz", keptDumpBytes-5)
	pruneDumps(dir)
	if got := left(); got != "22 notes" {
		t.Errorf("by size: %s", got)
	}
	write("23.txt.gz", 2*keptDumpBytes)
	pruneDumps(dir)
	if got := left(); got != "23 notes" {
		t.Errorf("one too large: %s", got)
	}
}

func TestFileWord(t *testing.T) {
	for in, want := range map[string]string{"../Odd alert": "___Odd_alert", "tomcat-8080": "tomcat_8080", strings.Repeat("x", 99): strings.Repeat("x", 60)} {
		if got := fileWord(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

// Numbers of another procfs are nobody's here: no signal, no socket.
func TestForeignProcfs(t *testing.T) {
	m := newMachine(t)
	r := m.run()
	x := &target.Target{Process: target.Process{PID: os.Getpid(), NSPID: os.Getpid(), Root: "/"}}
	b, blind, err := r.dumper(x)(context.Background())
	if b != nil || err != nil || blind == nil || blind.Reason != "foreign_procfs" {
		t.Errorf("%v, %v, %v", b, blind, err)
	}
	if _, err := r.KeepDump(context.Background(), "tomcat-8080", "x", time.Now()); err == nil || !strings.Contains(err.Error(), "jvm.attach") {
		t.Errorf("without attach: on: %v", err)
	}
}
