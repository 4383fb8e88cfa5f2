//go:build unix

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// notifyHangUp lets a channel be told of SIGHUP.
func notifyHangUp(c chan os.Signal) { signal.Notify(c, syscall.SIGHUP) }

// endsOnHangUp gives a context that ends with SIGHUP, too, unless that is ignored (nohup). Without it the signal would end the process at
// once, and leave its applications running.
func endsOnHangUp(ctx context.Context) (context.Context, context.CancelFunc) {
	if signal.Ignored(syscall.SIGHUP) {
		return context.WithCancel(ctx)
	}
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}
