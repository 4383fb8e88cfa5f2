package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"time"

	"portolan/internal/application"
	"portolan/internal/checkin"
	"portolan/internal/deploy"
	"portolan/internal/fleet"
	"portolan/internal/problem"
	"portolan/internal/store"
)

// fleetPoints introduces the fleet to deployments: neither knows the other.
type fleetPoints struct{ fleet *fleet.Service }

// Changed notes that a service point is to serve something else.
func (p fleetPoints) Changed(tx *store.Tx, servicePoint string) {
	p.fleet.ContentChanged(tx, servicePoint)
}

// Wake lets a service point know, once that is committed.
func (p fleetPoints) Wake(servicePoint string) { p.fleet.Wake(servicePoint) }

// Serving says what a service point serves.
func (p fleetPoints) Serving(tx *store.Tx, servicePoint string) (s deploy.Serving, err error) {
	is, err := p.fleet.Serves(tx, servicePoint)
	s = deploy.Serving{There: is.There, Content: is.Content, Trouble: is.Trouble,
		Answers: slices.Contains(is.Applications, application.Authority), Drives: len(is.Engines) > 0,
		Resolves: slices.Contains(is.Applications, application.Resolver)}
	if err == nil && s.There {
		s.Silent, err = p.fleet.Silent(tx, servicePoint)
	}
	return s, err
}

// contentTime is how long it may take to give a service point what it is to serve.
const contentTime = time.Hour

// giveContent gives a service point what it is to serve (portolan/internal/zonedata). The stream lies in a file while it is being sent, so
// that the database is free.
func (m *Manager) giveContent(w http.ResponseWriter, r *http.Request, body []byte) error {
	shown := r.TLS.PeerCertificates[0]
	if err := m.Fleet.Know(r.Context(), shown); err != nil {
		return err
	}
	rq, err := decode[checkin.ContentRequest](body)
	if err != nil {
		return err
	}
	other, err := m.otherContent(r.Context(), shown.Subject.CommonName, rq)
	if err != nil {
		return err
	}
	if !other {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	f, err := os.CreateTemp(m.options.Data, "content-")
	if err != nil {
		return fmt.Errorf("making room for what a service point is to serve: %w", err)
	}
	defer func() { _ = f.Close() }()
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	if err := m.Store.View(r.Context(), func(tx *store.Tx) error {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		return errors.Join(f.Truncate(0), deploy.WriteContent(tx, m.Address.Sealer, shown.Subject.CommonName, rq.From, f))
	}); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(contentTime)); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, err = io.Copy(w, f)
	if err != nil { // the service point asks again
		m.log.DebugContext(r.Context(), "a service point did not take what it is to serve", "reason", err)
	}
	return nil
}

// otherContent waits until a service point is to serve something else than it does; it gives false where that takes too long.
func (m *Manager) otherContent(ctx context.Context, servicePoint string, rq checkin.ContentRequest) (other bool, err error) {
	woken, ending, release := m.Fleet.Hold(servicePoint)
	defer release()
	enough := time.NewTimer(min(max(0, time.Duration(rq.WaitSeconds)*time.Second), checkin.Interval))
	defer enough.Stop()
	for {
		next := woken()
		if err := m.Store.Read(ctx, func(tx *store.Tx) (err error) {
			other, err = deploy.IsBehind(tx, servicePoint, rq.From)
			return err
		}); err != nil || other {
			return other, err
		}
		select {
		case <-next:
		case <-enough.C:
			return false, nil
		case <-ending:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// takeUpdate decides on a message that changes a zone (RFC 2136).
func (m *Manager) takeUpdate(w http.ResponseWriter, r *http.Request, body []byte) error {
	shown := r.TLS.PeerCertificates[0]
	if err := m.Fleet.Know(r.Context(), shown); err != nil {
		return err
	}
	return answer(w, body, func(rq checkin.UpdateRequest) (a checkin.UpdateAnswer, err error) {
		u := &deploy.Update{ServicePoint: shown.Subject.CommonName, View: rq.View, Zone: rq.Zone, Key: rq.Key, Message: rq.Message}
		if u.Client, err = netip.ParseAddr(rq.Client); err != nil {
			return a, problem.Invalid("client", "%q is no address", rq.Client)
		}
		var why string
		a.Code, why, a.Changed = deploy.TakeUpdate(r.Context(), m.Address, u)
		m.metrics.updated(a.Code)
		if a.Code != 0 {
			m.log.InfoContext(r.Context(), "an update was refused", "zone", u.Zone, "client", u.Client, "key", u.Key, "code", a.Code, "reason", why)
		}
		return a, nil
	})
}
