//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyHangUp lets a channel be told of SIGHUP.
func notifyHangUp(c chan os.Signal) { signal.Notify(c, syscall.SIGHUP) }
