//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// hangups brings the SIGHUPs that ask for a reload.
func hangups() <-chan os.Signal {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c
}
