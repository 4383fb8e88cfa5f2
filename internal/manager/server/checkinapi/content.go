package checkinapi

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/manager/fleet"
	"portolan/internal/manager/server/middleware"
	"portolan/internal/wire/checkin"
	"portolan/internal/wire/content"
)

// Planner makes the content of the applications of one service from what is configured.
type Planner interface {
	// IsBehind reports whether a service point should serve another revision than the given one.
	IsBehind(tx *store.Tx, servicePoint, serves string) (bool, error)
	// Write writes the difference between a revision and the wanted content (portolan/internal/wire/content).
	Write(tx *store.Tx, servicePoint, from string, out io.Writer) error
}

// planner returns the planner of the application that asks; nil where the service point has no such application, or one without content: it
// waits. Service points of releases before 1.0 do not say which application asks: it serves zones.
func (c *contentRequest) planner(tx *store.Tx) (Planner, error) {
	name := checkin.Authority
	if c.application != "" {
		var err error
		if name, err = fleet.ApplicationName(tx, c.servicePoint, c.application); err != nil {
			return nil, err
		}
	}
	return c.api.Planners[name], nil
}

// contentTime is the time limit for sending content to a service point.
const contentTime = time.Hour

// contentRequest is a request for the content of a service point. It stays open until the content differs from the served one.
type contentRequest struct {
	api          *API
	shown        *x509.Certificate
	servicePoint string
	application  string
	from         string
	until        time.Time
	held         *fleet.HeldRequest
	parked       *middleware.Parked
}

// giveContent sends content to a service point, at once or after the next change.
func (a *API) giveContent(w http.ResponseWriter, r *http.Request, body []byte) error {
	shown := r.TLS.PeerCertificates[0]
	rq, err := decode[checkin.ContentRequest](body)
	if err != nil {
		return err
	}
	c := &contentRequest{api: a, shown: shown, servicePoint: shown.Subject.CommonName, application: rq.Application, from: rq.From,
		held:  a.Fleet.Hold(shown, rq.Application),
		until: time.Now().Add(min(max(0, time.Duration(rq.WaitSeconds)*time.Second), checkin.Interval))}
	other, over, err := c.check(r.Context(), false)
	if err == nil && !over {
		c.held.Serves = c.from // the service point asks for newer content after its application has accepted this one
		if c.parked, err = a.Parking.Park(w); err == nil {
			c.held.Wait(c.until, c.recheck)
			return nil
		}
	}
	c.held.Release()
	if err != nil {
		return err
	}
	return c.answer(w, r, other)
}

// check refuses who is not known, or not any more, and looks whether the service point is to serve something else; over says that it is
// answered now, which it is the last time.
func (c *contentRequest) check(ctx context.Context, last bool) (other, over bool, err error) {
	defer func() { // no request is answered here that it would be an answer to
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	c.held.Arm()
	if err := c.api.Fleet.VerifyCertificate(ctx, c.shown); err != nil {
		return false, false, err
	}
	err = c.api.Store.Read(ctx, func(tx *store.Tx) (err error) {
		p, err := c.planner(tx)
		if err != nil || p == nil {
			return err
		}
		other, err = p.IsBehind(tx, c.servicePoint, c.from)
		return err
	})
	return other, other || last || !time.Now().Before(c.until) || c.api.Fleet.Ends(), err
}

// recheck checks once more and then responds or continues to wait.
func (c *contentRequest) recheck(last bool) {
	ctx, cancel := context.WithTimeout(c.parked.Context(), checkTime)
	defer cancel()
	other, over, err := c.check(ctx, last)
	if err == nil && !over {
		c.held.Wait(c.until, c.recheck)
		return
	}
	c.held.Release()
	c.parked.Reply(func(w http.ResponseWriter, r *http.Request) error {
		if err != nil {
			return err
		}
		return c.answer(w, r, other)
	})
}

// checkTime is the time limit for a check for new content of a service point.
const checkTime = 30 * time.Second

// answer sends the wanted content (portolan/internal/wire/content), or 204 if the service point has it. The content is written to a file
// first, so that a slow receiver does not hold a snapshot of the database.
func (c *contentRequest) answer(w http.ResponseWriter, r *http.Request, other bool) error {
	if !other {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	f, err := os.CreateTemp(c.api.Data, "content-")
	if err != nil {
		return fmt.Errorf("create the content file: %w", err)
	}
	defer func() { _ = f.Close() }()
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	if err := c.api.Store.View(r.Context(), func(tx *store.Tx) error {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		p, err := c.planner(tx)
		if err == nil && p == nil { // it has gone meanwhile
			err = problem.NotFound("application %q has no content", c.application)
		}
		if err != nil {
			return err
		}
		return errors.Join(f.Truncate(0), p.Write(tx, c.servicePoint, c.from, f))
	}); err != nil {
		return err
	}
	envelope, rest, err := content.Seal(f)
	if err != nil {
		return err
	}
	head, err := envelope.Bytes()
	if err == nil {
		err = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(contentTime))
	}
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(int64(len(head))+envelope.Size, 10))
	if _, err = io.Copy(w, io.MultiReader(bytes.NewReader(head), rest)); err != nil { // the service point asks again
		c.api.Log.DebugContext(r.Context(), "content not received by the service point", "reason", err)
	}
	return nil
}
