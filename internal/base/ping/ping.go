// Package ping checks whether an address answers ICMP echo requests (RFC 792, RFC 4443).
package ping

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"time"

	probing "github.com/prometheus-community/pro-bing"
)

// ErrForbidden reports that the system does not allow this user to send ICMP.
var ErrForbidden = errors.New("the operating system does not permit this user to send ICMP")

// interval is the time between two echo requests.
const interval = 500 * time.Millisecond

// Answers sends echo requests until one is answered or limit has passed. It uses an unprivileged socket if the kernel allows it, otherwise
// a raw one. It returns ErrForbidden if neither is allowed.
func Answers(ctx context.Context, a netip.Addr, limit time.Duration) (yes bool, err error) {
	for _, privileged := range []bool{false, true} {
		pinger := probing.New(a.String())
		pinger.SetPrivileged(privileged)
		pinger.Count, pinger.Interval, pinger.Timeout = max(1, int(limit/interval)), interval, limit
		pinger.RecordRtts = false
		pinger.OnRecv = func(*probing.Packet) { pinger.Stop() }
		err = pinger.RunWithContext(ctx)
		if stats := pinger.Statistics(); stats.PacketsRecv > 0 {
			return true, nil
		}
		if !errors.Is(err, os.ErrPermission) {
			break
		}
	}
	switch {
	case errors.Is(err, os.ErrPermission):
		return false, ErrForbidden
	case err != nil && (!errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil):
		return false, err
	}
	return false, nil
}
