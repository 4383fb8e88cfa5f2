//go:build !linux

package nameserver

import "syscall"

const canReusePort = false

func reusePort(_, _ string, _ syscall.RawConn) error { return nil }
