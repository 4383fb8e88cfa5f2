package application

import (
	"log/slog"
	"time"
)

// Receiver observes the reads of a socket, or the accepted connections of a listener. It slows down a socket that fails again and again,
// and logs the begin and the end of such a failure. It is used by one goroutine.
type Receiver struct {
	log     *slog.Logger
	address string
	count   func()
	// failures is the number of failures since the last success.
	failures int
}

// Limits of a Receiver. A single failure, such as an ICMP error for an earlier reply, has no effect on the next read.
const (
	loggedFailures = 3
	maxReceiveWait = 100 * time.Millisecond
)

// NewReceiver returns a Receiver for a socket. It calls count for each failure.
func NewReceiver(log *slog.Logger, address string, count func()) *Receiver {
	return &Receiver{log: log, address: address, count: count}
}

// Failed records a failed read. It waits before the next one, longer after each further failure, and up to 100 ms.
func (r *Receiver) Failed(err error) {
	r.count()
	r.failures++
	if r.failures == loggedFailures {
		r.log.Warn("receive messages failed", "address", r.address, "error", err)
	}
	if r.failures > 1 {
		time.Sleep(min(time.Millisecond<<min(r.failures-2, 10), maxReceiveWait))
	}
}

// Received records a read without an error.
func (r *Receiver) Received() {
	if r.failures >= loggedFailures {
		r.log.Info("receive messages recovered", "address", r.address, "failures", r.failures)
	}
	r.failures = 0
}
