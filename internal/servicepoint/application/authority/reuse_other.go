//go:build !linux

package authority

import "syscall"

const canReusePort = false

func reusePort(_, _ string, _ syscall.RawConn) error { return nil }
