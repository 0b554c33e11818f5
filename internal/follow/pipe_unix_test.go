//go:build !windows

package follow

import (
	"os"
	"syscall"
	"testing"
)

// A pipe under the log's name is not opened: that would hang, or steal lines.
func TestPipe(t *testing.T) {
	s := newStand(t, Spec{Path: "app.log", From: Start})
	s.must(syscall.Mkfifo(s.path("app.log"), 0o644))
	s.look()
	if b := s.f.Ledger().Blind; b != "not_regular" {
		t.Errorf("blind %q", b)
	}
	s.must(os.Remove(s.path("app.log")))
	s.append("app.log", "line\n")
	s.look()
	s.want("line")
}
