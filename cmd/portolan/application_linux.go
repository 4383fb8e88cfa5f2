package main

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// noNewPrivileges keeps this process, and whatever it starts, from ever having more privileges than it has. That is said of a thread, and
// holds for what it executes: so the program is begun anew by the thread that has said it.
func noNewPrivileges() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	given, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err != nil || given == 1 {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Exec("/proc/self/exe", os.Args, os.Environ())
}
