//go:build !unix

package main

import (
	"context"
	"os"
)

// notifyHangUp tells nobody: there is no such signal.
func notifyHangUp(chan os.Signal) {}

// endsOnHangUp gives a context that ends with the one given: there is no such signal.
func endsOnHangUp(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}
