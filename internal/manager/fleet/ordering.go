package fleet

import (
	"context"
	"sync"
	"time"
)

// ordering tracks whether orders are being written or sent. Other work waits meanwhile, because the answers of service points to the first
// orders would delay the next ones.
type ordering struct {
	mu sync.Mutex
	// n counts the goroutines that write or send orders, and since is when n became positive. idle is closed when n becomes 0. All are
	// guarded by mu.
	n     int
	since time.Time
	idle  chan struct{}
}

// start marks the beginning of work on orders. The caller must call done after it.
func (o *ordering) start() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n++; o.n == 1 {
		o.since, o.idle = time.Now(), make(chan struct{})
	}
}

func (o *ordering) done() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n--; o.n == 0 {
		close(o.idle)
	}
}

// maxOrderingWait is the longest time that other work waits for orders.
const maxOrderingWait = 10 * time.Second

// wait blocks until no orders are written or sent, over is closed or ctx ends, at most until maxOrderingWait after the orders began.
func (o *ordering) wait(ctx context.Context, over <-chan struct{}) {
	o.mu.Lock()
	n, none, left := o.n, o.idle, time.Until(o.since.Add(maxOrderingWait))
	o.mu.Unlock()
	if n == 0 || left <= 0 {
		return
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-none:
	case <-timer.C:
	case <-over:
	case <-ctx.Done():
	}
}

// AwaitOrders blocks until this manager writes and sends no orders. It returns after 10 seconds at most, and at once when the manager
// shuts down.
func (s *Service) AwaitOrders(ctx context.Context) { s.ordering.wait(ctx, s.closing) }
