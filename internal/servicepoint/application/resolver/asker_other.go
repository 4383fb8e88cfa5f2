//go:build !linux

package resolver

import (
	"errors"
	"net/netip"
	"time"
)

// canAsk reports whether newAsker works on this system.
const canAsk = false

// asker is not used on this system. The plugin forward asks all upstreams.
type asker struct{}

func newAsker() (*asker, error) { return nil, errors.ErrUnsupported }

func (a *asker) close() error { return nil }

func (a *asker) ask(netip.AddrPort, []byte, time.Duration, func([]byte) error) error {
	return errors.ErrUnsupported
}
