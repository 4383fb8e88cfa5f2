package fleet

import (
	"context"
	"sync"
	"time"
)

// ordering says whether orders are being given, or told, just now. What service points say to theirs would be in the way of the others'.
type ordering struct {
	mu sync.Mutex
	// n counts who gives orders or tells of them, since when is since; none is closed when nobody does any more. All are guarded by mu.
	n     int
	since time.Time
	idle  chan struct{}
}

// begin notes that orders are given or told, until end.
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

// mostBehind is how long something waits at the most for orders to be told.
const maxOrderingWait = 10 * time.Second

// behind waits until no orders are given or told, for mostBehind at the most, or until over is closed.
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

// BehindOrders waits until no orders are given or told here, for 10 seconds at the most, or the manager is about to end.
func (s *Service) BehindOrders(ctx context.Context) { s.ordering.wait(ctx, s.closing) }
