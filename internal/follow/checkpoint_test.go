package follow

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestCheckpoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	c, streams, err := OpenCheckpoint(dir)
	if err != nil || len(streams) != 0 {
		t.Fatal(err, streams)
	}
	want := map[string]Saved{
		"tomcat-8080/a \"b\"\n": {Position: json.RawMessage(`{"parts":[]}`), Observer: json.RawMessage(`{"x":1.5}`)},
		"b":                     {Position: json.RawMessage(`null`)},
	}
	for range 3 {
		if err := c.Write(want, time.Unix(1e9, 0), false); err != nil {
			t.Fatal(err)
		}
	}
	_, got, err := OpenCheckpoint(dir)
	if err != nil || len(got) != 2 || string(got["tomcat-8080/a \"b\"\n"].Observer) != `{"x":1.5}` {
		t.Fatal(err, got)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

// Whatever a crash or a hand left in the file, it is set aside with a message
// and the program starts.
func TestCheckpointDamaged(t *testing.T) {
	good := encodeCheckpoint(nil, map[string]Saved{"a": {Position: json.RawMessage(`{"parts":[]}`)}})
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 1
	for name, data := range map[string][]byte{"empty": {}, "cut": good[:len(good)-3], "NULs": make([]byte, 4096),
		"flipped": flipped, "other version": resum(bytes.Replace(good, []byte(`"version":1`), []byte(`"version":9`), 1))} {
		dir := t.TempDir()
		os.WriteFile(filepath.Join(dir, checkpointName), data, 0o644)
		c, streams, err := OpenCheckpoint(dir)
		if err == nil || len(streams) != 0 || !strings.Contains(err.Error(), "set aside") {
			t.Errorf("%s: %v %v", name, err, streams)
		}
		if kept, err := os.ReadFile(filepath.Join(dir, checkpointName+".damaged")); err != nil || !bytes.Equal(kept, data) {
			t.Errorf("%s: not kept aside: %v", name, err)
		}
		if err := c.Write(nil, time.Now(), true); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func resum(data []byte) []byte {
	return appendSum(bytes.Clone(data[:len(data)-sumLength]))
}

// When it can't be written, the old one goes too: what is published from then
// on is not in it. And it comes back when the disk does.
func TestCheckpointFullDisk(t *testing.T) {
	dir := t.TempDir()
	c, _, _ := OpenCheckpoint(dir)
	if err := c.Write(nil, time.Now(), true); err != nil {
		t.Fatal(err)
	}
	block := filepath.Join(dir, checkpointName+".new")
	os.Mkdir(block, 0o755) // stands for a disk on which nothing can be made
	if err := c.Write(nil, time.Now(), false); err == nil {
		t.Fatal("no error")
	}
	if _, err := os.Stat(filepath.Join(dir, checkpointName)); !os.IsNotExist(err) {
		t.Error("a stale checkpoint was left")
	}
	os.Remove(block)
	if err := c.Write(nil, time.Now(), false); err != nil {
		t.Fatal(err)
	}
	if _, _, err := OpenCheckpoint(dir); err != nil {
		t.Fatal(err)
	}
}

// kill -9 at any moment: what was in the checkpoint is the truth of position
// and counters together, and no line is counted twice or missed.
func TestCheckpointKill(t *testing.T) {
	s := newStand(t, Spec{Path: "a.log", From: Start, Lock: new(sync.Mutex)})
	dir := t.TempDir()
	c, _, _ := OpenCheckpoint(dir)
	published := 0
	for i := range 50 {
		s.append("a.log", joined(seq("line %d", i*10, i*10+9))+"ha")
		s.look()
		s.spec.Lock.Lock()
		pos, err := s.f.Save()
		s.must(err)
		obs, err := json.Marshal(s.r.lines)
		s.must(err)
		s.spec.Lock.Unlock()
		s.must(c.Write(map[string]Saved{"a": {pos, obs}}, s.now, false))
		published = len(s.r.lines)
		s.append("a.log", "lf\n")
		if i%3 == 0 {
			s.look() // counted, not published
		}
		if i%2 == 0 { // killed
			s.f.Close()
			var streams map[string]Saved
			c, streams, err = OpenCheckpoint(dir)
			s.must(err)
			s.r = &recorder{}
			s.must(json.Unmarshal(streams["a"].Observer, &s.r.lines))
			if len(s.r.lines) < published {
				t.Fatal("a counter fell")
			}
			s.f = New(s.spec, s.r)
			s.must(s.f.Load(streams["a"].Position))
		}
	}
	s.look()
	if n := len(s.r.text()); n != 550 {
		t.Errorf("%d lines", n)
	}
	seen := map[string]int{}
	for _, l := range s.r.text() {
		seen[l]++
	}
	if seen["half"] != 50 {
		t.Errorf("%d of 50 half lines became whole", seen["half"])
	}
}

func FuzzCheckpoint(f *testing.F) {
	f.Add(encodeCheckpoint(nil, map[string]Saved{"a": {Position: json.RawMessage(`{"parts":[]}`), Observer: json.RawMessage(`{}`)}}))
	f.Add([]byte(`{"version":1,"streams":{},"sum":"00000000"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, d := range [][]byte{data, appendSum(bytes.Clone(data))} {
			streams, err := decodeCheckpoint(d)
			if err != nil {
				continue
			}
			again, err := decodeCheckpoint(encodeCheckpoint(nil, streams))
			if err != nil || len(again) != len(streams) {
				t.Fatalf("%v: %q", err, d)
			}
		}
	})
}

// Whatever stands in a position, the follower takes it or says no, and its
// ledger adds up.
func FuzzLoad(f *testing.F) {
	dir := f.TempDir()
	path := filepath.Join(dir, "a.log")
	os.WriteFile(path, []byte("one\ntwo\nha"), 0o644)
	spec := Spec{Path: path, From: Start}
	fo := New(spec, &recorder{})
	fo.Look(time.Unix(1e9, 0))
	data, _ := fo.Save()
	fo.Close()
	f.Add(data)
	f.Add([]byte(`{"parts":[{"dev":1,"ino":2,"path":"x","kept":3,"seen":5,"read":4,"carry":"YWI=","state":{}}],"ledger":{"written":4}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		fo := New(spec, &recorder{})
		defer fo.Close()
		if fo.Load(data) != nil {
			return
		}
		for i := range 3 {
			fo.Look(time.Unix(1e9+int64(i), 0))
			l := fo.Ledger()
			if l.Written != l.Read+l.Skipped+l.Lost+l.Lag || l.Lag < 0 {
				t.Fatalf("%+v", l)
			}
		}
	})
}
