package fleet

import (
	"context"
	"crypto/x509"
	"database/sql"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"

	"github.com/google/uuid"
)

// logTopic is touched, with the request id (store.Detail), when a requested log excerpt has arrived.
const logTopic = "fleet log"

// logTime is how long a request waits for a log excerpt. A request is deleted after twice that time.
const logTime = 20 * time.Second

// maxLogs is the number of pending log requests of one service point.
const maxLogs = 8

// Log returns the last bytes of an application's log, as its service point has it now. The request travels in the answer to the open
// check-in, at any manager.
func (s *Service) Log(ctx context.Context, servicePoint, application string, bytes int) (text []byte, err error) {
	if bytes < 1 || bytes > checkin.MaxLog {
		return nil, problem.Query("bytes", "must be 1 to %d", checkin.MaxLog)
	}
	id := uuid.NewString()
	came := s.awaitLog(id)
	defer s.deleteLog(context.WithoutCancel(ctx), id)
	if err := s.change(ctx, func(tx *store.Tx) error { return s.askForLog(tx, id, servicePoint, application, bytes) }); err != nil {
		return nil, err
	}
	s.Wake(servicePoint)
	wait := time.NewTimer(logTime)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-wait.C:
			return nil, problem.Conflict("NotConnected", "service point %q did not send the log within %v", servicePoint, logTime)
		case <-s.closing:
			return nil, problem.Conflict("NotConnected", "the manager is shutting down")
		case <-came:
		}
		came = s.awaitLog(id)
		text, done, err := s.readLog(ctx, id)
		if done || err != nil {
			return text, err
		}
	}
}

func (s *Service) askForLog(tx *store.Tx, id, servicePoint, application string, bytes int) error {
	var waiting, connected, there int
	err := tx.QueryRow("SELECT (SELECT count(*) FROM wanted_log w WHERE w.service_point = s.id), coalesce(p.connected, 0), "+
		"(SELECT count(*) FROM application a WHERE a.service_point = s.id AND a.id = ?) FROM service_point s LEFT JOIN presence p "+
		"ON p.service_point = s.id WHERE s.id = ?", application, servicePoint).Scan(&waiting, &connected, &there)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return UnknownProblem(servicePoint)
	case err != nil:
		return err
	case there == 0:
		return problem.NotFound("service point %q has no application %q", servicePoint, application)
	case waiting >= maxLogs:
		return problem.Conflict("TooManyLogs", "%d log requests for service point %q are already pending", waiting, servicePoint)
	case connected == 0 && !s.hasRecentContact(servicePoint):
		return problem.Conflict("NotConnected", "service point %q is not connected", servicePoint)
	}
	tx.Touch(store.Detail(topic, servicePoint))
	if err := tx.Write("INSERT INTO wanted_log (id, service_point, application, bytes, asked) VALUES (?,?,?,?,?)", id, servicePoint,
		application,
		bytes, s.now().UnixMilli()); err != nil {
		return err
	}
	return tx.Write("UPDATE service_point SET logs_asked = 1 WHERE id = ?", servicePoint)
}

// hasRecentContact reports whether this manager has heard from a service point recently enough to be CONNECTED.
func (s *Service) hasRecentContact(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.contacts[id]
	return ok && time.Since(h.time) < s.silence()
}

// awaitLog returns a channel that is closed when the log excerpt may have arrived.
func (s *Service) awaitLog(id string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	came := make(chan struct{})
	s.logs[id] = came
	return came
}

// deleteLog deletes a log request, whether it was answered or not. If this fails, Sweep deletes it.
func (s *Service) deleteLog(ctx context.Context, id string) {
	s.mu.Lock()
	delete(s.logs, id)
	s.mu.Unlock()
	if err := s.change(ctx, func(tx *store.Tx) error { return tx.Write("DELETE FROM wanted_log WHERE id = ?", id) }); err != nil {
		s.log.WarnContext(ctx, "log request not deleted", "error", err)
	}
}

// wakeLogs wakes the requests that wait for these log excerpts; nil wakes all.
func (s *Service) wakeLogs(ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, came := range s.logs {
		for _, one := range ids {
			if one == id {
				close(came)
				delete(s.logs, id)
			}
		}
		if ids == nil {
			close(came)
			delete(s.logs, id)
		}
	}
}

// readLog returns a log excerpt. done is false if it has not arrived.
func (s *Service) readLog(ctx context.Context, id string) (text []byte, done bool, err error) {
	var answered int64
	var why, body string
	if err := s.store.View(ctx, func(tx *store.Tx) error {
		return tx.QueryRow("SELECT answered, problem, body FROM wanted_log WHERE id = ?", id).Scan(&answered, &why, &body)
	}); err != nil && !errors.Is(err, sql.ErrNoRows) || answered == 0 {
		return nil, false, err
	}
	if why != "" {
		return nil, true, problem.Conflict("NoLog", "the service point has no log of the application: %s", why)
	}
	text, err = base64.StdEncoding.DecodeString(body)
	return text, true, err
}

// takeLogRequests returns the log requests to send to a service point, and marks them as sent. Each is sent once: a lost answer costs the
// client only the timeout.
func (s *Service) takeLogRequests(ctx context.Context, servicePoint string) (all []checkin.LogOrder, err error) {
	return all, s.change(ctx, func(tx *store.Tx) error {
		all = nil
		if err := tx.Write("UPDATE service_point SET logs_asked = 0 WHERE id = ?", servicePoint); err != nil {
			return err
		}
		return tx.Each(func(scan func(...any) error) error {
			var w checkin.LogOrder
			err := scan(&w.ID, &w.Application, &w.Bytes)
			all = append(all, w)
			return err
		}, "SELECT id, application, bytes FROM wanted_log WHERE service_point = ? AND answered = 0 ORDER BY asked, id", servicePoint)
	})
}

// StoreLog stores the log excerpt that a service point was asked for.
func (s *Service) StoreLog(ctx context.Context, shown *x509.Certificate, rq checkin.LogRequest) (a checkin.LogAnswer, err error) {
	if len(rq.Text) > checkin.MaxLog {
		return a, problem.Invalid("text", "has more than %d bytes", checkin.MaxLog)
	}
	if len(rq.Problem) > maxText || strings.ContainsRune(rq.Problem, 0) {
		return a, problem.Invalid("problem", "has more than %d bytes, or a NUL", maxText)
	}
	if err := s.VerifyCertificate(ctx, shown); err != nil {
		return a, err
	}
	err = s.change(ctx, func(tx *store.Tx) error {
		n, err := tx.Exec("UPDATE wanted_log SET answered = ?, problem = ?, body = ? WHERE id = ? AND service_point = ? AND answered = 0",
			s.now().UnixMilli(), rq.Problem, base64.StdEncoding.EncodeToString(rq.Text), rq.ID, shown.Subject.CommonName)
		if err == nil && n == 0 {
			return problem.NotFound("no request waits for log %q", rq.ID)
		}
		tx.Touch(store.Detail(logTopic, rq.ID))
		return err
	})
	if err == nil {
		s.wakeLogs([]string{rq.ID})
	}
	return a, err
}

// forgetLogs deletes log requests that have timed out.
func (s *Service) forgetLogs(ctx context.Context, update store.Updater) error {
	return s.each(ctx, update, "SELECT id FROM wanted_log WHERE asked < ? ORDER BY id", []any{s.now().Add(-2 * logTime).UnixMilli()},
		func(tx *store.Tx, id string) error { return tx.Write("DELETE FROM wanted_log WHERE id = ?", id) })
}
