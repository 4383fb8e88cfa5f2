//go:build unix

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// notifyHangUp sends SIGHUP to a channel.
func notifyHangUp(c chan os.Signal) { signal.Notify(c, syscall.SIGHUP) }

// endsOnHangUp returns a context that ends with ctx or with SIGHUP, unless SIGHUP is ignored (nohup). Without it, the signal would end the
// process at once and leave its applications running.
func endsOnHangUp(ctx context.Context) (context.Context, context.CancelFunc) {
	if signal.Ignored(syscall.SIGHUP) {
		return context.WithCancel(ctx)
	}
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}
