package discovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"portolan/internal/base/snmpwalk"
)

// Scan is the result of a scan of another program, or of the demo.
type Scan struct {
	// Seen are the addresses that the scan saw. Earlier are addresses that former scans saw and this one did not. An observation without a
	// time was made now.
	Seen, Earlier []*Observation
	// Devices are the routers and switches that answered, by address.
	Devices map[netip.Addr]*snmpwalk.Device
	// Pinged is the number of pinged addresses.
	Pinged int
}

// Record stores a scan as a run of a policy, with observations and findings. It sends no packet, so the policy may be disabled, and the
// manager needs no --sweep.
func (s *Sweeper) Record(ctx context.Context, policy int64, scan Scan) error {
	held, err := s.lease.Acquire(ctx)
	if err == nil && !held {
		err = errors.New("another manager holds the reconciliation lease: retry there, or when it has finished")
	}
	if err != nil {
		return fmt.Errorf("record a scan: %w", err)
	}
	err = s.record(ctx, policy, scan)
	return errors.Join(err, s.lease.Release(context.WithoutCancel(ctx)))
}

// record is Record under the lease.
func (s *Sweeper) record(ctx context.Context, policy int64, scan Scan) error {
	w, err := s.plan(ctx, policy)
	if err != nil || w == nil {
		return err
	}
	for _, x := range scan.Seen {
		w.seen[x.Address] = x
	}
	for _, a := range slices.SortedFunc(maps.Keys(scan.Devices), netip.Addr.Compare) {
		w.devices = append(w.devices, &foundDevice{a, scan.Devices[a]})
	}
	w.pinged = scan.Pinged
	if err := s.writeAll(ctx, w, scan.Earlier); err != nil {
		return err
	}
	return s.store(ctx, w, nil)
}
