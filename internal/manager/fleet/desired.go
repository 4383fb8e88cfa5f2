package fleet

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"
)

// changeDesired changes the desired state of a service point. fn writes the change under the given generation. After the commit the open
// check-ins of the service point are answered.
func (s *Service) changeDesired(ctx context.Context, servicePoint string, fn func(tx *store.Tx, generation int64) error) error {
	err := s.change(ctx, func(tx *store.Tx) error {
		generation, err := s.nextDesired(tx, servicePoint)
		if err != nil {
			return err
		}
		if err := fn(tx, generation); err != nil {
			return err
		}
		return writeDesired(tx, servicePoint, generation)
	})
	if err == nil {
		s.Wake(servicePoint)
	}
	return err
}

// nextDesired locks a service point and returns the next generation of its desired state.
func (s *Service) nextDesired(tx *store.Tx, servicePoint string) (generation int64, err error) {
	err = tx.QueryRow("SELECT desired FROM service_point WHERE id = ?"+tx.Locking(), servicePoint).Scan(&generation)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, UnknownProblem(servicePoint)
	}
	return s.nextGenerationOf(generation), err
}

// nextGenerationOf returns the generation after desired: the current time in Unix milliseconds, or desired+1 if that is later. Because it
// derives from the time, a restored database does not assign a generation twice. nextGenerationSQL is the same in SQL.
func (s *Service) nextGenerationOf(desired int64) int64 { return max(s.now().UnixMilli(), desired+1) }

// writeDesired writes the new generation of the desired state of a service point.
func writeDesired(tx *store.Tx, servicePoint string, generation int64) error {
	tx.Touch(store.Detail(topic, servicePoint))
	return tx.Write("UPDATE service_point SET desired = ? WHERE id = ?", generation, servicePoint)
}

// desiredOfNode returns the desired state of a node; the map is empty if its service point does not exist.
func (s *Service) desiredOfNode(tx *store.Tx, at nodeID) (map[nodeID]*checkin.Desired, error) {
	points, err := knownPoints(tx, []string{at.id})
	if err != nil {
		return nil, err
	}
	return s.desired(tx, []nodeID{at}, points)
}

// desired returns the desired states of up to maxBatch nodes. Nodes whose service point is not in points get no entry.
func (s *Service) desired(tx *store.Tx, nodes []nodeID, points map[string]knownPoint) (map[nodeID]*checkin.Desired, error) {
	states := make(map[nodeID]*checkin.Desired, len(nodes))
	if len(nodes) == 0 {
		return states, nil
	}
	ids := make([]string, len(nodes))
	for i, at := range nodes {
		ids[i] = at.id
	}
	applications := map[string][]checkin.DesiredApplication{}
	if err := eachApplication(tx, ids, func(a deployed) {
		if a.Status != checkin.Deleted && !strings.HasPrefix(a.UpdateStatus, "DELETE_") {
			applications[a.servicePoint] = append(applications[a.servicePoint], s.desiredOf(a))
		}
	}); err != nil {
		return nil, err
	}
	for _, at := range nodes {
		p, there := points[at.id]
		if !there {
			continue
		}
		d, err := p.state()
		if err != nil {
			return nil, err
		}
		d.Applications = append([]checkin.DesiredApplication{}, applications[at.id]...)
		if p.update.Version != "" && p.mayHaveNodes {
			siblings, err := readNodes(tx, at.id)
			if err != nil {
				return nil, err
			}
			if !mayUpdate(siblings, at.node, p.update.Version) {
				p.update.Version = ""
			}
		}
		if p.update.Version != "" {
			d.Update = &p.update
		}
		states[at] = d
	}
	return states, nil
}

// desiredOf returns the desired state of an application.
func (s *Service) desiredOf(a deployed) checkin.DesiredApplication {
	version := a.Version
	if a.TargetVersion != "" {
		version = a.TargetVersion
	}
	return checkin.DesiredApplication{ID: a.ID, Name: a.Name, Version: version, Configuration: a.Configuration, Title: a.Title,
		Anycast: a.anycast, Limits: a.Limits, ServesContent: s.programs[a.Name].ServesContent}
}

// nextGenerationSQL is an SQL expression for the next generation of a desired state, as nextGenerationOf computes it. Both of its
// placeholders are the current time in Unix milliseconds.
const nextGenerationSQL = "CASE WHEN desired >= ? THEN desired + 1 ELSE ? END"

// Served is the content that the applications of a service point serve.
type Served struct {
	// Exists means that the service point exists. Applications are its applications with content, without those being deleted. An
	// application that has not reported yet counts only if its program has always served content (checkin.Program.ServesContent).
	Exists       bool
	Applications []ServedApplication
}

// ServedApplication is an application with content.
type ServedApplication struct {
	// Name is the name of its program. Provides are its capabilities.
	Name     string
	Provides []checkin.Capability
	// Content is the revision that it serves; empty while it serves none.
	Content string
	// Waits is the revision that it serves and waits to replace, if that is known. It may be newer than Content, because reports are
	// written with pauses.
	Waits string
	// Trouble are its error conditions.
	Trouble []string
}

// Serves returns, in a transaction, what the applications of a service point with the given names serve.
func (s *Service) Serves(tx *store.Tx, servicePoint string, names ...string) (is Served, err error) {
	all, err := applicationsOf(tx, servicePoint)
	if err != nil {
		return is, err
	}
	var text string
	err = tx.QueryRow("SELECT coalesce(r.body, '') FROM service_point s LEFT JOIN report r ON r.service_point = s.id WHERE s.id = ?",
		servicePoint).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return is, nil
	}
	var r checkin.Report
	if err == nil && text != "" {
		err = json.Unmarshal([]byte(text), &r)
	}
	if err != nil {
		return is, err
	}
	is.Exists = true
	for _, a := range all {
		if a.Status == checkin.Deleted || strings.HasPrefix(a.UpdateStatus, "DELETE_") || !slices.Contains(names, a.Name) {
			continue
		}
		var now checkin.Application
		if i := slices.IndexFunc(r.Applications, func(one checkin.Application) bool { return one.ID == a.ID }); i >= 0 {
			now = r.Applications[i]
		}
		if !now.ServesContent && !s.programs[a.Name].ServesContent {
			continue
		}
		one := ServedApplication{Name: a.Name, Content: now.Content, Waits: s.waitsWith(servicePoint, a.ID), Trouble: now.ErrorConditions}
		if provides := s.programs[a.Name].Provides; provides != nil {
			one.Provides = provides(now.Engine)
		}
		is.Applications = append(is.Applications, one)
	}
	return is, nil
}

// ContentChanged records, in a transaction, that the content of a service point has changed.
func (s *Service) ContentChanged(tx *store.Tx, servicePoint string) {
	tx.Touch(store.Detail(topic, servicePoint))
}
