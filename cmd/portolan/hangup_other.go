//go:build !unix

package main

import "os"

// notifyHangUp tells nobody: there is no such signal.
func notifyHangUp(chan os.Signal) {}
