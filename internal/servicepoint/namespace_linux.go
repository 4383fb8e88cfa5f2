package servicepoint

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// namespaces is the folder with the named network namespaces of `ip netns`.
const namespaces = "/run/netns"

// startWithin starts a command in a named network namespace; empty means the namespace of the agent. It needs CAP_SYS_ADMIN. The process
// itself needs no privilege and cannot leave the namespace.
func startWithin(namespace string, c *exec.Cmd) error {
	if namespace == "" {
		return c.Start()
	}
	target, err := os.Open(filepath.Join(namespaces, namespace))
	if err != nil {
		return fmt.Errorf("network namespace %s: %w", namespace, err)
	}
	defer func() { _ = target.Close() }()
	started := make(chan error, 1)
	go func() { started <- startOnThread(target, c) }()
	if err := <-started; err != nil {
		return fmt.Errorf("network namespace %s: %w", namespace, err)
	}
	return nil
}

// startOnThread starts a command on a thread that enters the namespace and leaves it again. A thread that cannot leave it ends with its
// goroutine.
func startOnThread(target *os.File, c *exec.Cmd) error {
	runtime.LockOSThread()
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer func() { _ = own.Close() }()
	if err := unix.Setns(int(target.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	err = c.Start()
	if back := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); back != nil {
		return errors.Join(err, back)
	}
	runtime.UnlockOSThread()
	return err
}
