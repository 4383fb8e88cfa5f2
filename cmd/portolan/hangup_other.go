//go:build !unix

package main

import (
	"context"
	"os"
)

// notifyHangUp does nothing, because this system has no such signal.
func notifyHangUp(chan os.Signal) {}

// endsOnHangUp returns a context that ends with ctx only, because this system has no such signal.
func endsOnHangUp(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}
