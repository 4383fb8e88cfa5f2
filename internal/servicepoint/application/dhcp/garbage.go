package dhcp

import (
	"os"
	"runtime/debug"
)

// Memory of the application. A lease takes about bytesOfLease bytes. The collector runs when garbage has reached maxGarbage bytes, but not
// before minCollect and not later than maxCollect percent of the memory of the leases.
const (
	bytesOfLease = 150
	maxGarbage   = 32 << 20
	minCollect   = 20
	maxCollect   = 200
)

// collectPercent returns the value of GOGC for a number of leases: minCollect to maxCollect.
func collectPercent(leases int) int {
	return min(max(100*maxGarbage/max(leases*bytesOfLease, 1), minCollect), maxCollect)
}

// limitGarbage sets the garbage collector of the process by the number of leases, unless the environment has GOGC. A collection is cheap,
// because leases contain few pointers.
func limitGarbage(leases int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectPercent(leases))
	}
}
