package main

import "os"

// hangups never brings anything: Windows has no SIGHUP. Reload over HTTP.
func hangups() <-chan os.Signal { return nil }
