package fleet

import (
	"context"
	"crypto/x509"
	"database/sql"
	"errors"
	"net/http"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"
)

func refuse(code, message string) error {
	return problem.Forbidden(code, "%s", message)
}

// Enrol issues a service point's certificate for its registration key. A key can be used by one key pair, or by one for each node that the
// service point may have. The same pair may enrol again until its first check-in, so that a lost answer does no harm. A refusal changes
// nothing.
func (s *Service) Enrol(ctx context.Context, rq checkin.EnrolRequest) (a checkin.EnrolAnswer, err error) {
	key, err := checkin.ParseKey(rq.RegistrationKey)
	if err != nil {
		return a, problem.BadRequest("RegistrationKeyDamaged", "%v", err)
	}
	if key.Authority != s.authority.Fingerprint() {
		return a, refuse("RegistrationKeyForeign", "the registration key was created by another manager")
	}
	if err := checkKind(rq.Variant, rq.Version); err != nil {
		return a, err
	}
	request, err := parseRequest(rq.Request)
	if err != nil {
		return a, err
	}
	public := fingerprint(request.RawSubjectPublicKeyInfo)
	if _, err := s.readEnrolment(ctx, key, public); err != nil { // a request without a valid key never gets a write lock
		return a, err
	}
	err = s.change(ctx, func(tx *store.Tx) error {
		known, err := s.findByKey(tx, key, public, tx.Locking())
		if err != nil {
			return err
		}
		at, generation := nodeID{known.id, 1}, s.nextGeneration(known.generation)
		if known.mayHaveNodes {
			if rq.Variant != checkin.Fleet {
				return problem.Invalid("variant", "a service point with several nodes must be of the %s kind", checkin.Fleet)
			}
			if at, generation, err = s.assignNode(tx, known, public); err != nil {
				return err
			}
			if err := writeEnrolledNode(tx, at, public, generation); err != nil {
				return err
			}
		}
		der, err := s.authority.issue(at, generation, request)
		if err != nil {
			return err
		}
		a = checkin.EnrolAnswer{ID: known.id, Name: known.name, Node: at.node, Certificate: encodeCertificate(der), Authority: s.authority.PEM()}
		if known.enrolled {
			return nil
		}
		return tx.Write("UPDATE service_point SET key_public = ?, variant = ?, version = ? WHERE id = ?", public, rq.Variant, rq.Version,
			known.id)
	})
	if err == nil {
		s.log.InfoContext(ctx, "service point enrolled", "id", a.ID)
	}
	return a, err
}

// enrolment is the state of a service point that an enrolment needs.
type enrolment struct {
	id, name          string
	generation, nodes int64
	// enrolled means that it has reported, mayHaveNodes that it may have, or had, several nodes.
	enrolled, mayHaveNodes bool
}

func (s *Service) readEnrolment(ctx context.Context, key checkin.RegistrationKey, public string) (known enrolment, err error) {
	err = s.store.Read(ctx, func(tx *store.Tx) error {
		known, err = s.findByKey(tx, key, public, "")
		return err
	})
	return known, err
}

// findByKey returns the service point of a registration key. locking is the locking clause of the query; empty does not lock.
func (s *Service) findByKey(tx *store.Tx, key checkin.RegistrationKey, public, locking string) (known enrolment, err error) {
	var status, used string
	var expires int64
	var several int
	err = tx.QueryRow("SELECT id, name, status, key_expires, key_public, generation, node_count, several "+
		"FROM service_point WHERE key_hash = ?"+locking,
		hashKey(key)).Scan(&known.id, &known.name, &status, &expires, &used, &known.generation, &known.nodes, &several)
	known.mayHaveNodes = several == 1
	known.enrolled = status != Waiting && status != Expired
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return known, refuse("RegistrationKeyUnknown",
			"the registration key is unknown: its service point was deleted or has a newer key")
	case err != nil:
		return known, err
	case known.mayHaveNodes && expires > s.now().Unix(): // assignNode checks which nodes have enrolled
		return known, nil
	case used != "" && (used != public || known.enrolled):
		return known, refuse("RegistrationKeyUsed", "the registration key has already been used; create a new one with portolan fleet rekey")
	case expires <= s.now().Unix():
		return known, refuse("RegistrationKeyExpired", "the registration key expired on "+time.Unix(expires, 0).UTC().Format(time.RFC3339))
	}
	return known, nil
}

// nextGeneration returns the generation of the next certificate of a service point whose certificates are valid from goodFrom on. It
// derives from the time, so that a restored database assigns later generations than before.
func (s *Service) nextGeneration(goodFrom int64) int64 { return max(s.now().UnixMilli(), goodFrom+1) }

// errDeleted rejects the certificate of a deleted service point, and errNodeRemoved that of a removed node. errUnknown rejects any other
// certificate that is not, or no longer, a service point's. errCertificateExpired rejects an expired certificate, which can still be
// renewed.
var (
	errDeleted = problem.New(http.StatusGone, checkin.ServicePointDeleted, "this service point was deleted: all applications must stop")
	errUnknown = problem.New(http.StatusGone, "ServicePointUnknown",
		"this service point is unknown, or its certificate was replaced")
	errNodeRemoved = problem.New(http.StatusGone, checkin.NodeRemoved,
		"this node was removed from its service point or replaced by another machine")
	errCertificateExpired = problem.New(http.StatusUnauthorized, checkin.CertificateExpired,
		"the certificate of this service point has expired: renew it first")
)

// unknownError returns the error for a service point that does not exist: errDeleted or errUnknown.
func unknownError(tx *store.Tx, id string) error {
	var deleted bool
	err := tx.QueryRow("SELECT EXISTS (SELECT 1 FROM deleted_service_point WHERE id = ?)", id).Scan(&deleted)
	switch {
	case err != nil:
		return err
	case deleted:
		return errDeleted
	}
	return errUnknown
}

// Renew issues a new certificate to a service point for its current one, which may have expired. The old certificate stays valid until the
// new one is used.
func (s *Service) Renew(ctx context.Context, shown *x509.Certificate, rq checkin.RenewRequest) (a checkin.RenewAnswer, err error) {
	request, err := parseRequest(rq.Request)
	if err != nil {
		return a, err
	}
	id := shown.Subject.CommonName
	// This is an update, although it writes nothing. A new registration key is either visible here, or invalidates the certificate issued
	// here.
	err = s.change(ctx, func(tx *store.Tx) error {
		if err := lockPoint(tx, id); err != nil {
			if _, gone := problem.As(err); gone {
				err = unknownError(tx, id)
			}
			return err
		}
		known, err := s.findByCertificate(tx, shown)
		if err != nil {
			return err
		}
		der, err := s.authority.issue(nodeIDOf(shown), s.nextGeneration(known.generation), request)
		a.Certificate = encodeCertificate(der)
		return err
	})
	if err == nil {
		s.log.InfoContext(ctx, "service point certificate renewed", "id", id, "expired", !s.now().Before(shown.NotAfter))
	}
	return a, err
}
