package server

import "golang.org/x/sys/unix"

// clockFollows reports whether this machine's clock follows time servers, as its kernel has been told (adjtimex(2)); known is false where
// that cannot be asked.
func clockFollows() (follows, known bool) {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	return err == nil && state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0, err == nil
}
