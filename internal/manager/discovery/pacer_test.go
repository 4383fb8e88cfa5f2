package discovery

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestPacer checks with virtual time that concurrent packets keep the rate of a policy, and that a cancelled run does not wait.
func TestPacer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, begin := newPacer(50), time.Now()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 25 {
					if err := p.wait(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if took := time.Since(begin); took != 99*time.Second/50 {
			t.Errorf("100 packets at 50 a second took %s", took)
		}
		time.Sleep(time.Hour) // a pause does not save packets
		begin = time.Now()
		for range 51 {
			if err := p.wait(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(begin); took != time.Second {
			t.Errorf("51 packets after a pause took %s", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := newPacer(1).wait(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		slow := newPacer(1)
		_ = slow.wait(t.Context())
		if err := slow.wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled run waits: %v", err)
		}
	})
}
