package follow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// A Saved is one stream in the checkpoint: what Follower.Save returned and what
// the observer's Save returned under the same lock. Both are JSON.
type Saved struct {
	Position json.RawMessage `json:"position"`
	Observer json.RawMessage `json:"observer,omitempty"`
}

// A Checkpoint is the file in which the places and figures of all streams
// outlive the process.
//
// It is written as a whole, to a file beside it that then takes its name, so
// that a kill at any moment leaves either the one or the other. That is enough
// for kill -9; against a loss of power it is also synced every 30 s and at a
// stop. The last member is a checksum of all bytes before it:
//
//	{"version":1,"streams":{"NAME":{"position":…,"observer":…},…},"sum":"1a2b3c4d"}
type Checkpoint struct {
	path   string
	synced time.Time
	buf    []byte
	gone   bool // the file was removed because it had become stale
}

const (
	checkpointName = "checkpoint.json"
	syncEvery      = 30 * time.Second
	// maxCheckpoint bounds what is read at a start; a real one has some KB a stream.
	maxCheckpoint = 256 << 20
)

// OpenCheckpoint reads the checkpoint in the folder, which is made if need be.
// A damaged one is set aside as checkpoint.json.damaged. The error says what
// was wrong and is to be told, not died of: the Checkpoint can be used, and the
// streams are then empty.
func OpenCheckpoint(dir string) (*Checkpoint, map[string]Saved, error) {
	c := &Checkpoint{path: filepath.Join(dir, checkpointName)}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return c, nil, fmt.Errorf("checkpoint: %w", err)
	}
	file, err := os.Open(c.path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return c, nil, nil
		}
		return c, nil, fmt.Errorf("checkpoint: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxCheckpoint+1))
	file.Close()
	if err != nil {
		return c, nil, fmt.Errorf("checkpoint: %w", err)
	}
	streams, err := decodeCheckpoint(data)
	if err != nil {
		aside := c.path + ".damaged"
		if e := os.Rename(c.path, aside); e != nil {
			return c, nil, fmt.Errorf("checkpoint %s: %w; it could not be set aside: %w", c.path, err, e)
		}
		return c, nil, fmt.Errorf("checkpoint %s: %w; it was set aside as %s, and counting starts anew", c.path, err, aside)
	}
	return c, streams, nil
}

// Write replaces the checkpoint. With sync, or when the last time is long ago,
// it waits for the disk.
//
// When it fails (a full disk), the old checkpoint is removed: figures that are
// published from now on are not in it, and a restart from it would publish
// lower ones and count lines again. Starting from 0 is the honest way then.
func (c *Checkpoint) Write(streams map[string]Saved, now time.Time, sync bool) error {
	c.buf = encodeCheckpoint(c.buf[:0], streams)
	sync = sync || now.Sub(c.synced) >= syncEvery
	err := c.replace(sync)
	if err == nil {
		c.gone = false
		if sync {
			c.synced = now
		}
		return nil
	}
	err = fmt.Errorf("checkpoint: %w", err)
	if !c.gone {
		if e := os.Remove(c.path); e != nil && !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("checkpoint: the old one is stale now: %w", e))
		} else {
			c.gone = true
		}
	}
	return err
}

func (c *Checkpoint) replace(sync bool) error {
	temp := c.path + ".new"
	file, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return err
	}
	_, err = file.Write(c.buf)
	if err == nil && sync {
		err = file.Sync()
	}
	if e := file.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(temp, c.path)
	}
	if err != nil {
		os.Remove(temp)
		return err
	}
	if sync {
		syncDir(filepath.Dir(c.path))
	}
	return nil
}

// syncDir makes the new name last. Not every file system can; the file itself
// is safe by then, so there is nothing to do about it.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		d.Sync()
		d.Close()
	}
}

// encodeCheckpoint writes the document. It is put together by hand because the
// parts are JSON already, and looking at each byte of them again every second
// would cost more than all the rest.
func encodeCheckpoint(b []byte, streams map[string]Saved) []byte {
	names := make([]string, 0, len(streams))
	for n := range streams {
		names = append(names, n)
	}
	slices.Sort(names)
	b = append(b, `{"version":1,"streams":{`...)
	for i, n := range names {
		if i > 0 {
			b = append(b, ',')
		}
		key, _ := json.Marshal(n)
		b = append(append(b, key...), `:{"position":`...)
		b = append(b, orNull(streams[n].Position)...)
		b = append(b, `,"observer":`...)
		b = append(b, orNull(streams[n].Observer)...)
		b = append(b, '}')
	}
	b = append(b, '}')
	return appendSum(b)
}

// appendSum ends the document with the checksum of all before it.
func appendSum(b []byte) []byte {
	return fmt.Appendf(b, `,"sum":"%08x"}`, crc32.ChecksumIEEE(b))
}

func orNull(b []byte) []byte {
	if len(b) == 0 {
		return []byte("null")
	}
	return b
}

// sumLength is the length of `,"sum":"1a2b3c4d"}`.
const sumLength = 18

func decodeCheckpoint(data []byte) (map[string]Saved, error) {
	if len(data) > maxCheckpoint {
		return nil, fmt.Errorf("larger than %d bytes", maxCheckpoint)
	}
	if len(data) < sumLength {
		return nil, fmt.Errorf("cut short at %d bytes", len(data))
	}
	body := data[:len(data)-sumLength]
	if want := appendSum(bytes.Clone(body)); !bytes.Equal(want, data) {
		return nil, errors.New("the checksum is wrong")
	}
	var doc struct {
		Version int              `json:"version"`
		Streams map[string]Saved `json:"streams"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	if doc.Version != 1 {
		return nil, fmt.Errorf("version %d is not known", doc.Version)
	}
	return doc.Streams, nil
}
