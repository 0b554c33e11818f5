package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/jvm-sidecar/sidecar/collectors"
	"github.com/jvm-sidecar/sidecar/internal/root"
	"go.yaml.in/yaml/v3"
)

// loadSettings reads the settings file. No file name is no settings: every
// default stands. A mistake is one line with file, key and reason.
func loadSettings(path string) (*collectors.Config, error) {
	cfg := collectors.Defaults()
	if path == "" {
		return &cfg, nil
	}
	data, err := readSettings(path)
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	if err := decodeStrict(path, data, &cfg); err != nil {
		return nil, err
	}
	if key, err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", path, key, err)
	}
	return &cfg, nil
}

// settingsInForce are the settings for a sidecar on this machine: the files and
// folders that they name have to be there as well.
func settingsInForce(path string) (*collectors.Config, error) {
	cfg, err := loadSettings(path)
	if err != nil {
		return nil, err
	}
	if key, err := cfg.CheckFiles(); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", path, key, err)
	}
	return cfg, nil
}

// maxSettings is far more than anybody writes by hand. A log file, given by
// mistake, must not fill the memory.
const maxSettings = 4 << 20

func readSettings(path string) ([]byte, error) {
	f, err := root.OpenOurs(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSettings+1))
	if err == nil && len(data) > maxSettings {
		err = fmt.Errorf("%s: larger than %d MB", path, maxSettings>>20)
	}
	return data, err
}

// decodeStrict decodes one YAML document into v, and refuses keys that v does
// not have.
func decodeStrict(path string, data []byte, v any) error {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return fmt.Errorf("%s: %s", path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if errs := mistakes(&doc, reflect.TypeOf(v)); len(errs) > 0 {
		return fmt.Errorf("%s: %s", path, strings.Join(errs, "; "))
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	err := dec.Decode(v)
	switch {
	case errors.Is(err, io.EOF): // an empty file is no settings
		return nil
	case err != nil:
		return fmt.Errorf("%s: %s", path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: a second document begins after ---: one is enough", path)
	}
	return nil
}
