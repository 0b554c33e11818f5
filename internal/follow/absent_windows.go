package follow

import (
	"errors"

	"golang.org/x/sys/windows"
)

func isNotDir(err error) bool { return errors.Is(err, windows.ERROR_DIRECTORY) }
