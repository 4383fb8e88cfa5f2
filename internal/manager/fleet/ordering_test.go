package fleet

import (
	"context"
	"crypto/x509"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/testkit/pgtest"
	"portolan/internal/wire/checkin"
)

// TestAwaitOrders checks that AwaitOrders waits until the last order is sent, but not for long.
func TestAwaitOrders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o ordering
		waits := func() time.Duration {
			began := time.Now()
			o.wait(t.Context(), nil)
			return time.Since(began)
		}
		if d := waits(); d != 0 {
			t.Errorf("without orders it waits %v", d)
		}
		o.start()
		o.start()
		time.AfterFunc(time.Second, o.done)
		time.AfterFunc(2*time.Second, o.done)
		if d := waits(); d != 2*time.Second {
			t.Errorf("behind two it waits %v", d)
		}
		o.start()
		if d := waits(); d != maxOrderingWait {
			t.Errorf("behind one that does not end it waits %v", d)
		}
		if d := waits(); d != 0 {
			t.Errorf("and once more %v", d)
		}
		o.done()
		o.start()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		o.wait(ctx, nil)
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Error("it does not wait until the end of the caller's context")
		}
		o.done()
	})
}

// TestOrdersDoneWhenSent checks that orders are in progress until the last answer is sent. A client that does not read its answer delays
// the others only for a moment, and delays no shutdown.
func TestOrdersDoneWhenSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Service{closing: make(chan struct{}), waitersOf: map[string]*waiters{}}
		for reads, want := range map[time.Duration]time.Duration{300 * time.Millisecond: 300 * time.Millisecond, time.Minute: maxWakeDelay} {
			w := &waitingCheckIn{service: s, shown: &x509.Certificate{}, waiters: s.openWaiters(""), reply: Reply{Context: t.Context(),
				Send: func(checkin.Answer, error) { time.Sleep(reads) }}}
			began := time.Now()
			w.sendAsync(&wakeResult{})
			if s.AwaitOrders(t.Context()); time.Since(began) != want {
				t.Errorf("behind one who reads its answer in %v it waits %v", reads, time.Since(began))
			}
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		s.ordering.start()
		time.AfterFunc(time.Second, s.EndCheckins)
		began := time.Now()
		if s.AwaitOrders(t.Context()); time.Since(began) != time.Second {
			t.Errorf("at the end it waits %v", time.Since(began))
		}
	})
}

// TestConnectedOnce checks that a service point that reconnects gets one CONNECTED event, even if several managers write it at the same
// time.
func TestConnectedOnce(t *testing.T) {
	h := newTestFleet(t, pgtest.URL(t), 1)
	id := h.ids[0]
	if err := h.f.change(h.ctx, func(tx *store.Tx) error {
		return tx.Write("UPDATE presence SET connected = 0 WHERE service_point = ?", id)
	}); err != nil {
		t.Fatal(err)
	}
	now := h.f.now().UnixMilli()
	written := make(chan error)
	if err := h.f.change(h.ctx, func(tx *store.Tx) error {
		back, err := h.f.disconnectedOf(tx, []string{id})
		if err != nil || !back[id] {
			t.Errorf("it is back: %v (%v)", back, err)
		}
		go func() {
			written <- h.f.change(h.ctx, func(tx *store.Tx) error { return h.f.markConnected(tx, id, now) })
		}()
		if err := <-written; err != nil {
			return err
		}
		return h.f.markConnected(tx, id, now)
	}); err != nil {
		t.Fatal(err)
	}
	events, err := h.f.Events(h.ctx, id)
	n := 0
	for _, e := range events {
		if e.Field == fieldConnection && e.After == Connected {
			n++
		}
	}
	if n != 1 || err != nil {
		t.Errorf("it is connected %d times: %+v (%v)", n, events, err)
	}
}
