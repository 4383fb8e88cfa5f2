package application

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestReceiver checks in virtual time that a failing socket is read at most about ten times per second, that each failure is counted, and
// that its begin and end are logged once.
func TestReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		counted := 0
		r := NewReceiver(slog.New(slog.NewTextHandler(&log, nil)), "127.0.0.1:67", func() { counted++ })
		began := time.Now()
		for range 2 { // single failures
			r.Failed(errors.New("refused"))
			r.Received()
		}
		if waited := time.Since(began); waited != 0 || counted != 2 || log.Len() > 0 {
			t.Errorf("single failures: waited %v, counted %d\n%s", waited, counted, log.Bytes())
		}
		for counted = 0; time.Since(began) < 10*time.Second; {
			r.Failed(errors.New("not a socket"))
		}
		if counted < 90 || counted > 120 {
			t.Errorf("%d reads in 10 s", counted)
		}
		r.Received()
		r.Received()
		text := log.String()
		for _, event := range []string{"receive messages failed", "receive messages recovered"} {
			if n := strings.Count(text, event); n != 1 {
				t.Errorf("%q is logged %d times\n%s", event, n, text)
			}
		}
		if !strings.Contains(text, `error="not a socket"`) {
			t.Errorf("the log lacks the error\n%s", text)
		}
	})
}
