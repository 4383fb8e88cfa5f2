package dhcp

import (
	"os"
	"runtime/debug"
)

// Memory of the application: leases take about bytesOfLease each. There may be maxGarbage bytes of garbage before it is collected, or
// minCollect percent of the leases.
const (
	bytesOfLease = 150
	maxGarbage   = 32 << 20
	minCollect   = 20
	maxCollect   = 200
)

// collectPercent returns the garbage before a collection, in percent of the memory of leases.
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
