// Package systemd holds the unit against systemd itself: what it says of the
// unit's exposure, and a real one that runs it beside a real Tomcat. The unit is
// all that lies here beside its tests.
package systemd

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const unitFile = "sidecar.service"

// settings are the keys of the unit's [Service] section, each with its values in
// the order they stand.
func settings(t *testing.T) map[string][]string {
	t.Helper()
	data, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	_, service, _ := strings.Cut(string(data), "[Service]\n")
	service, _, _ = strings.Cut(service, "\n[")
	out := map[string][]string{}
	for line := range strings.Lines(service) {
		line = strings.TrimSpace(line)
		if key, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			out[key] = append(out[key], value)
		}
	}
	return out
}

// Each right is a decision: what is taken from the sidecar, what it keeps, and
// what is left on because it would be blind without.
func TestHardening(t *testing.T) {
	unit := settings(t)
	for key, want := range map[string]string{
		"Type": "notify", "NotifyAccess": "main", "WatchdogSec": "90s", "Restart": "always",
		"User": "sidecar", "Group": "sidecar", "UMask": "0077",
		"AmbientCapabilities":   "CAP_SYS_PTRACE CAP_DAC_READ_SEARCH",
		"CapabilityBoundingSet": "CAP_SYS_PTRACE CAP_DAC_READ_SEARCH",
		"NoNewPrivileges":       "yes", "ProtectSystem": "strict", "ProtectHome": "read-only",
		"MemoryMax": "512M", "CPUQuota": "50%", "TasksMax": "256",
		"PrivateDevices": "yes", "ProtectClock": "yes", "ProtectControlGroups": "yes", "ProtectHostname": "yes",
		"ProtectKernelLogs": "yes", "ProtectKernelModules": "yes", "ProtectKernelTunables": "yes", "LockPersonality": "yes",
		"MemoryDenyWriteExecute": "yes", "RemoveIPC": "yes", "RestrictNamespaces": "yes", "RestrictRealtime": "yes",
		"KeyringMode": "private", "SystemCallArchitectures": "native",
		"RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX AF_NETLINK",
	} {
		if got := unit[key]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s is %q, want %s", key, got, want)
		}
	}
	if filter := unit["SystemCallFilter"]; len(filter) != 2 || filter[0] != "@system-service" || !strings.HasPrefix(filter[1], "~@privileged @resources ") {
		t.Errorf("SystemCallFilter %q", filter)
	}
	for _, key := range []string{"PrivateTmp", "ProtectProc", "ProcSubset", "PrivateUsers", "PrivateNetwork", "RestrictSUIDSGID", "DynamicUser", "InaccessiblePaths", "ReadWritePaths"} {
		if got := unit[key]; got != nil {
			t.Errorf("%s=%s: it would be blind, or could write", key, got)
		}
	}
}

// TestExposure asks systemd what it thinks of the unit: that it is well-formed, and
// how far a broken sidecar could reach (0 is nothing, 10 is everything).
func TestExposure(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip(err)
	}
	out, _ := exec.Command("systemd-analyze", "verify", unitFile).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(line, "/usr/bin/sidecar is not executable") {
			t.Errorf("systemd-analyze verify: %s", line)
		}
	}
	text, err := exec.Command("systemd-analyze", "security", "--offline=yes", "--no-pager", unitFile).CombinedOutput()
	m := regexp.MustCompile(`Overall exposure level for \S+: ([\d.]+)`).FindSubmatch(text)
	if m == nil {
		t.Skipf("this systemd-analyze has no --offline: %v\n%s", err, text)
	}
	// What is left is what it must be able to see. docs/deploy.md names the number.
	if got := string(m[1]); got != "2.6" {
		t.Errorf("exposure %s, want 2.6\n%s", got, text)
	}
	docs, err := os.ReadFile("../../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(docs), "`systemd-analyze security` gives 2.6 of 10") {
		t.Error("docs/deploy.md gives another number")
	}
	// Systemd's own word on each line: a tick for what is taken away.
	for _, name := range []string{
		"NoNewPrivileges=", "ProtectSystem=", "ProtectHome=", "PrivateDevices=", "ProtectKernelTunables=", "ProtectKernelModules=", "ProtectKernelLogs=",
		"ProtectControlGroups=", "ProtectClock=", "ProtectHostname=", "MemoryDenyWriteExecute=", "RestrictRealtime=", "LockPersonality=",
		"User=/DynamicUser=", "SystemCallArchitectures=", "UMask=", "KeyringMode=", "NotifyAccess=", "RemoveIPC=",
		"CapabilityBoundingSet=~CAP_SYS_ADMIN", "CapabilityBoundingSet=~CAP_NET_ADMIN", "CapabilityBoundingSet=~CAP_KILL",
		"SystemCallFilter=~@privileged", "SystemCallFilter=~@resources", "SystemCallFilter=~@mount", "SystemCallFilter=~@debug", "SystemCallFilter=~@raw-io",
		"RestrictNamespaces=~user", "RestrictAddressFamilies=~AF_PACKET",
	} {
		line := regexp.MustCompile(`(?m)^(.*)` + regexp.QuoteMeta(name) + `.*$`).FindSubmatch(text)
		switch {
		case line == nil && (name == "RemoveIPC=" || name == "NotifyAccess="): // not rated by each version
		case line == nil:
			t.Errorf("systemd-analyze security does not rate %s", name)
		case !strings.Contains(string(line[1]), "✓") && name != "ProtectHome=": // read-only is half a tick
			t.Errorf("not taken away: %s", line[0])
		}
	}
}
