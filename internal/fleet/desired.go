package fleet

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"

	"portolan/internal/checkin"
	"portolan/internal/store"
)

// desire changes what a service point is to run: fn writes it, in the generation that it is given. Once that is committed the service
// point's check-ins that are held open are answered.
func (s *Service) desire(ctx context.Context, servicePoint string, fn func(tx *store.Tx, generation int64) error) error {
	err := s.change(ctx, func(tx *store.Tx) error {
		generation, err := s.nextDesired(tx, servicePoint)
		if err != nil {
			return err
		}
		if err := fn(tx, generation); err != nil {
			return err
		}
		return desires(tx, servicePoint, generation)
	})
	if err == nil {
		s.wake(servicePoint)
	}
	return err
}

// nextDesired locks a service point, and gives the generation that its desired state is to have.
func (s *Service) nextDesired(tx *store.Tx, servicePoint string) (generation int64, err error) {
	err = tx.QueryRow("SELECT desired FROM service_point WHERE id = ?"+tx.Locking(), servicePoint).Scan(&generation)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, unknown(servicePoint)
	}
	// It follows from the time, so that a database that was restored gives none again that it gave before.
	return max(s.now().UnixMilli(), generation+1), err
}

// desires notes that the desired state of a service point has changed to a generation.
func desires(tx *store.Tx, servicePoint string, generation int64) error {
	tx.Touch(store.Detail(topic, servicePoint))
	return tx.Write("UPDATE service_point SET desired = ? WHERE id = ?", generation, servicePoint)
}

// desired is what a node of a service point is to run.
func (s *Service) desired(tx *store.Tx, at seat) (*checkin.Desired, error) {
	servicePoint := at.id
	d := &checkin.Desired{Applications: []checkin.DesiredApplication{}}
	var u checkin.Update
	var servers, anycast string
	err := tx.QueryRow("SELECT desired, target_version, update_asked, ntp_servers, anycast FROM service_point WHERE id = ?", servicePoint).
		Scan(&d.Generation, &u.Version, &u.Asked, &servers, &anycast)
	if err == nil {
		d.Anycast, err = readAnycast(anycast)
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(servers), &d.NTPServers); err != nil {
		return nil, err
	}
	if u.Version != "" {
		siblings, err := nodes(tx, servicePoint)
		if err != nil {
			return nil, err
		}
		if mayUpdate(siblings, at.node, u.Version) {
			d.Update = &u
		}
	}
	all, err := applicationsOf(tx, servicePoint)
	for _, a := range all {
		if a.Status == checkin.Deleted || strings.HasPrefix(a.UpdateStatus, "DELETE_") {
			continue
		}
		version := a.Version
		if a.TargetVersion != "" {
			version = a.TargetVersion
		}
		one := checkin.DesiredApplication{ID: a.ID, Name: a.Name, Version: version,
			Configuration: a.Configuration, Title: a.Title, Anycast: a.anycast, Limits: a.Limits}
		one.Contented = s.programs[a.Name].Contented
		d.Applications = append(d.Applications, one)
	}
	return d, err
}

// later is, in SQL, the generation that a desired state has next, at a time that is given twice.
const later = "CASE WHEN desired >= ? THEN desired + 1 ELSE ? END"

// Serves says, in a transaction, what the application of a service point that has content serves, and what it says is wrong; there is false
// where there is no such service point, application where it is to run none.
func (s *Service) Serves(tx *store.Tx, servicePoint string) (content string, trouble []string, there, application bool, err error) {
	all, err := applicationsOf(tx, servicePoint)
	if err != nil {
		return "", nil, false, false, err
	}
	ids := map[string]bool{}
	for _, a := range all {
		if s.programs[a.Name].Contented && a.Status != checkin.Deleted && !strings.HasPrefix(a.UpdateStatus, "DELETE_") {
			ids[a.ID] = true
		}
	}
	var text string
	err = tx.QueryRow("SELECT coalesce(r.body, '') FROM service_point s LEFT JOIN report r ON r.service_point = s.id WHERE s.id = ?",
		servicePoint).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil, false, false, nil
	}
	var r checkin.Report
	if err != nil || text == "" {
		return "", nil, err == nil, len(ids) > 0, err
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return "", nil, true, false, err
	}
	for _, a := range r.Applications {
		if ids[a.ID] {
			content, trouble = a.Content, append(trouble, a.ErrorConditions...)
		}
	}
	return content, trouble, true, len(ids) > 0, nil
}

// ContentChanged notes, in a transaction, that a service point is to serve something else.
func (s *Service) ContentChanged(tx *store.Tx, servicePoint string) {
	tx.Touch(store.Detail(topic, servicePoint))
}

// Wake lets what is held open for a service point look whether there is something new.
func (s *Service) Wake(servicePoint string) { s.wake(servicePoint) }

// Hold holds something open for a service point: woken gives what is closed when there may be something new, asked for before it is looked,
// ending what is closed when nothing is held open any more, and release lets go.
func (s *Service) Hold(servicePoint string) (woken func() <-chan struct{}, ending <-chan struct{}, release func()) {
	h := s.hold(servicePoint)
	return func() <-chan struct{} { return s.next(h) }, s.closing, func() { s.release(servicePoint, h) }
}

// redesire lets a service point ask again what it is to run.
func (s *Service) redesire(tx *store.Tx, id string) error {
	tx.Touch(store.Detail(topic, id))
	now := s.now().UnixMilli()
	return tx.Write("UPDATE service_point SET desired = "+later+" WHERE id = ?", now, now, id)
}
