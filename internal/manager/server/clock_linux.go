package server

import "golang.org/x/sys/unix"

// clockFollows reports whether the kernel's clock is synchronized (adjtimex(2)); known is false if the kernel does not answer.
func clockFollows() (follows, known bool) {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	return err == nil && state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0, err == nil
}
