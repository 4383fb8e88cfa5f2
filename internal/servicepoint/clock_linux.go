package servicepoint

import "golang.org/x/sys/unix"

// clockSynchronized reports whether the kernel considers its clock synchronized (adjtimex).
func clockSynchronized() bool {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	return err == nil && state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0
}
