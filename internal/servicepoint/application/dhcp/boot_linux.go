package dhcp

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// bootTime returns what identifies the boot of the machine, and the seconds since then; "" if the system does not tell.
func bootTime() (id string, up int64) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", 0
	}
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return "", 0
	}
	return strings.TrimSpace(string(text)), t.Sec
}
