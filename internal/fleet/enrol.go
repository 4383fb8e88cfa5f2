package fleet

import (
	"context"
	"crypto/x509"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"portolan/internal/checkin"
	"portolan/internal/problem"
	"portolan/internal/store"
)

func refuse(code, message string) error {
	return problem.Forbidden(code, "%s", message)
}

// Enrol gives a service point its certificate for its registration key. A key is good once: for the
// first key pair that comes with it. The same pair may come again until its first check-in, so that
// an answer that was lost on the way costs nothing. A refusal changes nothing.
func (s *Service) Enrol(ctx context.Context, rq checkin.EnrolRequest) (a checkin.EnrolAnswer, err error) {
	key, err := checkin.ParseKey(rq.RegistrationKey)
	if err != nil {
		return a, problem.BadRequest("RegistrationKeyDamaged", "%v", err)
	}
	if key.Authority != s.authority.Fingerprint() {
		return a, refuse("RegistrationKeyForeign", "the registration key was made by another manager")
	}
	if rq.Variant != checkin.Fleet && rq.Variant != checkin.V4 {
		return a, problem.Invalid("variant", "%q is neither %s nor %s", rq.Variant, checkin.Fleet, checkin.V4)
	}
	request, err := parseRequest(rq.Request)
	if err != nil {
		return a, err
	}
	public := fingerprint(request.RawSubjectPublicKeyInfo)
	err = s.store.UpdateIn(ctx, store.OwnTables(), store.Author{}, func(tx *store.Tx) error {
		var status, used, reported string
		var expires, lastSeen int64
		err := tx.QueryRow("SELECT id, name, status, key_expires, key_public, last_seen, report FROM service_point WHERE key_hash = ?",
			hashKey(key)).
			Scan(&a.ID, &a.Name, &status, &expires, &used, &lastSeen, &reported)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return refuse("RegistrationKeyUnknown", "the registration key is not known here: its service point was deleted, or it got a newer key")
		case err != nil:
			return err
		case used != "" && (used != public || reported != ""):
			return refuse("RegistrationKeyUsed", "the registration key has been used already")
		case expires <= tx.Now().Unix():
			return refuse("RegistrationKeyExpired", "the registration key expired on "+time.Unix(expires, 0).UTC().Format(time.RFC3339))
		}
		der, err := s.authority.issue(a.ID, request)
		if err != nil {
			return err
		}
		a.Certificate, a.Authority = encodeCertificate(der), s.authority.PEM()
		err = tx.Write("UPDATE service_point SET key_public = ?, certificates = ?, variant = ?, version = ? WHERE id = ?",
			public, fingerprint(der), rq.Variant, rq.Version, a.ID)
		return err
	})
	return a, err
}

// errUnknown is a certificate that is no longer, or never was, a service point's.
var errUnknown = problem.New(http.StatusGone, "ServicePointUnknown",
	"this service point is not known here: it was deleted, or its certificate was replaced")

// Renew gives a service point a new certificate for the one it shows. The old one stays good until
// the new one is used.
func (s *Service) Renew(ctx context.Context, shown *x509.Certificate, rq checkin.RenewRequest) (a checkin.RenewAnswer, err error) {
	request, err := parseRequest(rq.Request)
	if err != nil {
		return a, err
	}
	err = s.store.UpdateIn(ctx, store.OwnTables(), store.Author{}, func(tx *store.Tx) error {
		var known string
		err := tx.QueryRow("SELECT certificates FROM service_point WHERE id = ?", shown.Subject.CommonName).Scan(&known)
		if errors.Is(err, sql.ErrNoRows) || err == nil && !strings.Contains(known, fingerprint(shown.Raw)) {
			return errUnknown
		}
		if err != nil {
			return err
		}
		der, err := s.authority.issue(shown.Subject.CommonName, request)
		if err != nil {
			return err
		}
		a.Certificate = encodeCertificate(der)
		err = tx.Write("UPDATE service_point SET certificates = ? WHERE id = ?", fingerprint(shown.Raw)+","+fingerprint(der),
			shown.Subject.CommonName)
		return err
	})
	return a, err
}

// row is what a check-in needs to know of its service point.
type row struct {
	certificates, status, report string
	desired                      int64
}

// CheckIn takes a service point's report and answers when there is something new for it, or when
// the wait is over.
func (s *Service) CheckIn(ctx context.Context, shown *x509.Certificate, rq checkin.Request) (a checkin.Answer, err error) {
	id := shown.Subject.CommonName
	a.IntervalSeconds = max(1, int(s.interval.Seconds()))
	var known row
	err = s.store.Read(ctx, func(tx *store.Tx) error {
		err := tx.QueryRow("SELECT certificates, status, report, desired FROM service_point WHERE id = ?", id).
			Scan(&known.certificates, &known.status, &known.report, &known.desired)
		if errors.Is(err, sql.ErrNoRows) {
			return errUnknown
		}
		return err
	})
	if err != nil {
		return a, err
	}
	mine := fingerprint(shown.Raw)
	if !strings.Contains(known.certificates, mine) {
		return a, errUnknown
	}
	// The newest certificate, once used, is the only one.
	certificates := known.certificates
	if strings.HasSuffix(certificates, ","+mine) {
		certificates = mine
	}
	if rq.Report != nil || certificates != known.certificates {
		if err := s.write(ctx, id, certificates, known, rq.Report); err != nil {
			return a, err
		}
	}
	s.mu.Lock()
	s.seen[id] = s.store.Now().UnixMilli()
	gone, ok := s.gone[id]
	if !ok {
		gone = make(chan struct{})
		s.gone[id] = gone
	}
	s.mu.Unlock()
	a.Desired = known.desired
	a.SendReport = rq.Report == nil && known.report == ""
	if a.SendReport || rq.Desired != known.desired || rq.WaitSeconds <= 0 {
		return a, nil
	}
	wait := time.NewTimer(min(time.Duration(rq.WaitSeconds)*time.Second, s.interval))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-s.closing:
	case <-gone:
		return a, errUnknown
	case <-ctx.Done():
		return a, ctx.Err()
	}
	s.mu.Lock()
	if s.gone[id] == gone { // heard of at the end of the wait, too: the connection held
		s.seen[id] = s.store.Now().UnixMilli()
	}
	s.mu.Unlock()
	return a, nil
}

// Bounds of a report: how many error conditions and nodes it may have, how long one condition and the whole
// may be, in bytes.
const (
	maxConditions = 100
	maxNodes      = 64
	maxCondition  = 1 << 10
	maxReport     = 64 << 10
	maxVersion    = 128
)

// checkReport refuses a report beyond the bounds.
func checkReport(r *checkin.Report, text []byte) error {
	switch {
	case len(r.ErrorConditions) > maxConditions || len(r.Nodes) > maxNodes:
		return problem.Invalid("report", "has more than %d error conditions or %d nodes", maxConditions, maxNodes)
	case r.Variant != checkin.Fleet && r.Variant != checkin.V4:
		return problem.Invalid("report", "variant: %q is neither %s nor %s", r.Variant, checkin.Fleet, checkin.V4)
	case len(r.Version) > maxVersion:
		return problem.Invalid("report", "version: has more than %d bytes", maxVersion)
	case slices.ContainsFunc(r.ErrorConditions, func(text string) bool { return len(text) > maxCondition }):
		return problem.Invalid("report", "errorConditions: one has more than %d bytes", maxCondition)
	case len(text) > maxReport:
		return problem.Invalid("report", "has %d bytes, more than %d", len(text), maxReport)
	}
	return nil
}

// A service point's reports are written one after another, with a least interval between them. One that comes
// too soon waits; who sends many at a time is refused.
const (
	leastShare  = 30 // of the interval at which service points report
	mostWaiting = 2  // reports of one service point
)

// pace waits until the next report of a service point may be written.
func (s *Service) pace(ctx context.Context, id string) error {
	least := s.interval / leastShare
	now := time.Now()
	s.mu.Lock()
	next := s.paces[id]
	if next.Before(now) {
		next = now
	}
	wait := next.Sub(now)
	if wait > mostWaiting*least {
		s.mu.Unlock()
		p := problem.New(http.StatusTooManyRequests, "TooManyRequests", "the reports of this service point come faster than one in %v", least)
		p.RetryAfter = wait
		return p
	}
	s.paces[id] = next.Add(least)
	s.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// write writes a report through, with the move of the status it makes, and the certificates that are
// good from now on.
func (s *Service) write(ctx context.Context, id, certificates string, known row, r *checkin.Report) error {
	if r == nil {
		return s.store.UpdateIn(ctx, store.OwnTables(), store.Author{}, func(tx *store.Tx) error {
			err := tx.Write("UPDATE service_point SET certificates = ? WHERE id = ? AND certificates = ?", certificates, id, known.certificates)
			return err
		})
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := checkReport(r, text); err != nil {
		return err
	}
	status := Healthy
	if len(r.ErrorConditions) > 0 {
		status = Unhealthy
	}
	if string(text) == known.report && status == known.status && known.certificates == certificates {
		return nil
	}
	if err := s.pace(ctx, id); err != nil {
		return err
	}
	err = s.store.UpdateIn(ctx, store.OwnTables(), store.Author{}, func(tx *store.Tx) error {
		var before string
		err := tx.QueryRow("SELECT status FROM service_point WHERE id = ?", id).Scan(&before)
		if errors.Is(err, sql.ErrNoRows) {
			return errUnknown
		}
		if err != nil {
			return err
		}
		if before != status {
			if err := moved(tx, id, before, status); err != nil {
				return err
			}
		}
		// Certificates that a renewal changed meanwhile are left as it made them.
		err = tx.Write("UPDATE service_point SET status = ?, version = ?, variant = ?, report = ?, last_seen = ?,"+
			" certificates = CASE WHEN certificates = ? THEN ? ELSE certificates END WHERE id = ?",
			status, r.Version, r.Variant, string(text), tx.Now().UnixMilli(), known.certificates, certificates, id)
		return err
	})
	if err == nil && status != known.status {
		s.log.InfoContext(ctx, "a service point moved", "id", id, "from", known.status, "to", status)
	}
	return err
}
