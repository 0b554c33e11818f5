package jvm

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// alive says whether the process of this identity still lives. The start stands
// 20 fields behind the name, which itself may hold anything.
func alive(root string, pid int, start uint64) bool {
	if start == 0 {
		return true // the caller does not know better
	}
	b, err := os.ReadFile(filepath.Join(root, strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	return len(fields) > 19 && string(fields[19]) == strconv.FormatUint(start, 10)
}
