package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

// TestDemo runs `make demo` as a person does: it ends well, shows the storm
// while it is on, and its closing table agrees with what others counted.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("the demo takes a minute")
	}
	lab.Exclusive(t)
	cmd := exec.Command("go", "run", "./internal/lab/demo")
	cmd.Dir = "../../.."
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"ExecutorRejectionStorm FIRING", "requests rejected", "TargetDown fires", "Everything that was started is stopped"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the demo does not say %q:\n%s", want, out)
		}
	}
}
