package main

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// noNewPrivileges prevents this process and its children from gaining privileges. The kernel sets the attribute per thread and keeps it
// across exec, so the thread that set it executes the program again.
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
