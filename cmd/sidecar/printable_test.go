package main

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a stranger wrote must not steer the terminal of whoever replays it,
// neither by a line nor by the file's name.
func TestReplaySteersNoTerminal(t *testing.T) {
	name := filepath.Join(t.TempDir(), "app\x1b[2J.log")
	const evil = "a\u009b2Jb\x1b[31mc\u202ed"
	line := "2026-11-30 12:00:00,000 ERROR [main] com.example.App - " + evil + "\njava.lang.IllegalStateException: " + evil + "\n\tat com.example.App.run(App.java:1)\n"
	if err := os.WriteFile(name, []byte(strings.Repeat(line, 20)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"replay", name}, {"replay", "--json", name}, {"replay", name + ".gone"}} {
		var stdout, stderr strings.Builder
		Main(args, nil, &stdout, &stderr)
		text := stdout.String() + stderr.String()
		if len(text) == 0 {
			t.Errorf("%q: nothing is said", args)
		}
		if i := strings.IndexFunc(text, steers); i >= 0 {
			t.Errorf("%q: %q", args, text[i:min(i+40, len(text))])
		}
	}
}

// In JSON nothing is lost by it.
func TestPrintableJSON(t *testing.T) {
	const text = "a\u009b\x1b\x7f\u202e\U000e0001 ä\n\t€"
	b, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	safe := printableJSON(string(b))
	var back string
	if err := json.Unmarshal([]byte(safe), &back); err != nil || back != text || strings.ContainsFunc(safe, steers) {
		t.Errorf("%q: %v, %q", safe, err, back)
	}
	if s := printable(text); s != "a···\u00b7· ä\n\t€" {
		t.Errorf("%q", s)
	}
}

// Random bytes are no log, whatever a few lines of them look like.
func TestReplayOfRandomBytes(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		b := make([]byte, 2000+random.IntN(400000))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		var stdout, stderr strings.Builder
		code := Main([]string{"replay", "-"}, strings.NewReader(string(b)), &stdout, &stderr)
		if code != 1 || stdout.Len() > 0 || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("seed %d, %d bytes: %d, %.80q, %.200q", seed, len(b), code, stdout.String(), stderr.String())
		}
	}
}
