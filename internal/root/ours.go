package root

import (
	"fmt"
	"os"
)

// OpenOurs opens a file that our own settings name, or the command line: whoever
// writes those may name any path, so no root is asked for. What is no regular file
// is not even opened: a pipe that nobody writes to would hold up the start, or a
// reload, for ever.
func OpenOurs(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: no regular file", path)
	}
	return os.Open(path)
}
