//go:build !linux

package procfs

import "os"

// Read reads a whole file.
func Read(path string, buf []byte) (content, grown []byte, err error) {
	b, err := os.ReadFile(path)
	return b, buf, err
}
