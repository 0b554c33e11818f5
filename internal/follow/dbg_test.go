package follow

import (
	"os"
	"strconv"
	"testing"
)

func TestOne(t *testing.T) {
	defer func() { seen = nil }()
	n, _ := strconv.Atoi(os.Getenv("SEED"))
	runSchedule(t, t.TempDir(), uint64(n))
}
