// Setup fetches all that the tests need into the lab's cache, and says what
// could not be had and how to get it. What is there already costs nothing.
package main

import (
	"fmt"
	"os"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

func main() {
	missing := lab.Setup()
	for _, err := range missing {
		fmt.Fprintf(os.Stderr, "\nmissing: %v\n", err)
	}
	if len(missing) > 0 {
		fmt.Fprintf(os.Stderr, "\n%d things that the tests need could not be had. `go test ./...` runs what can be run without them.\n", len(missing))
		os.Exit(1)
	}
}
