package fleet

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"

	"github.com/google/uuid"
)

// Values of updateStatus of an application (spec.md 2.3).
const (
	updateQueued  = "UPDATE_QUEUED"
	updateRunning = checkin.ApplicationUpdating
	deleteQueued  = "DELETE_QUEUED"
	deleteRunning = checkin.DeleteRunning
)

// Application is an application of a service point as the API shows it (spec.md 2.3).
type Application struct {
	ID              string   `json:"id"`
	Name            string   `json:"name"`
	Version         string   `json:"version"`
	Status          string   `json:"status"`
	ErrorConditions []string `json:"errorConditions"`
	TargetVersion   string   `json:"targetVersion,omitempty"`
	// UpdateStatus is omitted if no update or deletion is in progress.
	UpdateStatus string `json:"updateStatus,omitempty"`
	// AnycastIPAddress are its anycast addresses.
	AnycastIPAddress []AnycastAddress `json:"anycastIPAddress"`

	title string
}

// AnycastAddress is an anycast address of an application.
type AnycastAddress struct {
	IPAddress    string `json:"ipAddress"`
	IsUseByAppID string `json:"isUseByAppId"`
	IsUp         bool   `json:"isUp"`
}

// ApplicationDetail is an application with its configuration (a Portolan extension).
type ApplicationDetail struct {
	Application
	Configuration json.RawMessage `json:"configuration"`
	// Title is the name given by the user; it is omitted if there is none.
	Title string `json:"title,omitempty"`
	// Limits are the resource limits of the application; they are omitted if none are set.
	Limits checkin.Limits `json:"limits,omitzero"`
}

// deployed is a row of the table of applications.
type deployed struct {
	ApplicationDetail
	servicePoint, conditions string
	generation               int64
	// anycast are its anycast addresses.
	anycast []string
}

const selectApplications = "SELECT id, service_point, name, version, target_version, status, update_status, conditions, configuration, " +
	"generation, title, anycast, limits FROM application "

func scanApplication(scan func(...any) error) (d deployed, err error) {
	var configuration, anycast, limits string
	if err := scan(&d.ID, &d.servicePoint, &d.Name, &d.Version, &d.TargetVersion, &d.Status, &d.UpdateStatus, &d.conditions, &configuration,
		&d.generation, &d.Title, &anycast, &limits); err != nil {
		return d, err
	}
	if err := errors.Join(json.Unmarshal([]byte(anycast), &d.anycast), json.Unmarshal([]byte(limits), &d.Limits)); err != nil {
		return d, err
	}
	d.title = d.Title
	d.Configuration, d.AnycastIPAddress, d.ErrorConditions = json.RawMessage(configuration), anycastAddresses(d, nil), []string{}
	return d, json.Unmarshal([]byte(d.conditions), &d.ErrorConditions)
}

// ApplicationChange is a requested change of an application. A nil field stays unchanged.
type ApplicationChange struct {
	Name          *string
	Version       *string
	TargetVersion *string
	Configuration json.RawMessage
	// Title is the name given by the user.
	Title *string
	// AnycastAddresses are all anycast addresses of the application; nil leaves them unchanged.
	AnycastAddresses []string
	Limits           *checkin.Limits
	// Repeatable, if not empty, identifies the user and the Idempotency-Key of a request for a new application. A repeated request returns
	// the same application.
	Repeatable string
}

// Deploy adds an application to a service point and returns its id.
func (s *Service) Deploy(ctx context.Context, servicePoint string, c ApplicationChange) (id string, err error) {
	if c.Configuration == nil || string(c.Configuration) == "{}" {
		if c.Configuration, err = s.defaultConfiguration(ctx, servicePoint, *c.Name); err != nil {
			return "", err
		}
	}
	configuration, err := s.checkConfiguration(*c.Name, c.Configuration)
	if err != nil {
		return "", err
	}
	version := s.programs[*c.Name].Version
	if c.Version != nil {
		version = *c.Version
		if err := s.checkNew(*c.Name, version); err != nil {
			return "", err
		}
	}
	title := ""
	if c.Title != nil {
		title = *c.Title
		if err := checkName(title); err != nil {
			return "", err
		}
	}
	if id, err = s.newApplicationID(servicePoint, c.Repeatable); err != nil {
		return "", err
	}
	err = s.changeDesired(ctx, servicePoint, func(tx *store.Tx, generation int64) error {
		all, err := applicationsOf(tx, servicePoint)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(all, func(d deployed) bool { return d.ID == id }); i >= 0 {
			asked := checkin.Limits{}
			if c.Limits != nil {
				asked = *c.Limits
			}
			if all[i].Name != *c.Name || string(all[i].Configuration) != string(configuration) || all[i].Limits != asked ||
				all[i].Title != title || !slices.Equal(all[i].anycast, c.AnycastAddresses) {
				return problem.Conflict("IdempotencyKeyReused", "Idempotency-Key: the key was already used for another request")
			}
			return errRepeated
		}
		if len(all) >= maxApplications {
			return problem.Conflict("TooManyApplications", "a service point can run at most %d applications", maxApplications)
		}
		if err := s.checkFit(all, id, *c.Name, configuration); err != nil {
			return err
		}
		d := deployed{ApplicationDetail: ApplicationDetail{Application: Application{ID: id, Name: *c.Name}, Configuration: configuration},
			servicePoint: servicePoint}
		anycast, limits, err := s.setAnycastAndLimits(tx, &d, all, c)
		if err != nil {
			return err
		}
		now := s.now().UnixMilli()
		if err := tx.Write("INSERT INTO application (id, service_point, name, version, status, configuration, generation, created, title, "+
			"anycast, limits) VALUES (?,?,?,?,?,?,?,?,?,?,?)", id, servicePoint, *c.Name, version, checkin.Deploying, string(configuration),
			generation, now, title, anycast, limits); err != nil {
			return err
		}
		if err := s.recordChange(tx, servicePoint, fieldOf(*c.Name, id, fieldStatus), "", checkin.Deploying); err != nil {
			return err
		}
		return addPointHistory(tx, servicePoint, "ADD_APPLICATION", "Service point %s: deployed application %s (%s)", *c.Name, id)
	})
	if errors.Is(err, errRepeated) {
		err = nil
	}
	return id, err
}

// errRepeated rolls back a repeated request whose change was made before.
var errRepeated = errors.New("the response was lost")

// newApplicationID returns the id of a new application, a UUID (RFC 9562). It is random, or derived from the request if the request may be
// repeated.
func (s *Service) newApplicationID(servicePoint, repeatable string) (string, error) {
	if repeatable == "" {
		return uuid.NewString(), nil
	}
	secret, err := s.authority.derive("application", repeatable, servicePoint)
	if err != nil {
		return "", err
	}
	id := uuid.UUID(secret[:16])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // version 8
	return id.String(), nil
}

// Change changes the configuration, the anycast addresses or the limits of an application, or the version that it is updated to.
func (s *Service) Change(ctx context.Context, servicePoint, id string, c ApplicationChange) error {
	return s.changeDesired(ctx, servicePoint, func(tx *store.Tx, generation int64) error {
		d, err := s.readChangeable(tx, servicePoint, id)
		if err != nil {
			return err
		}
		before := d
		all, err := applicationsOf(tx, servicePoint)
		if err != nil {
			return err
		}
		if c.Configuration != nil {
			given := c.Configuration
			if fill := s.programs[d.Name].Fill; fill != nil {
				given = fill(given, d.Configuration)
			}
			if d.Configuration, err = s.checkConfiguration(d.Name, given); err != nil {
				return err
			}
			if err := s.checkFit(all, id, d.Name, d.Configuration); err != nil {
				return err
			}
		}
		anycast, limits, err := s.setAnycastAndLimits(tx, &d, all, c)
		if err != nil {
			return err
		}
		was := d.UpdateStatus
		if c.TargetVersion != nil {
			if err := s.checkTarget(d, *c.TargetVersion); err != nil {
				return err
			}
			if d.TargetVersion, d.UpdateStatus = *c.TargetVersion, updateQueued; d.TargetVersion == d.Version { // cancelled
				d.TargetVersion, d.UpdateStatus = "", ""
			}
		}
		status := d.Status
		if d.Status == checkin.DeployFailed { // the deployment is retried
			status = checkin.Deploying
		}
		if err := s.recordApplicationChange(tx, d, status, d.UpdateStatus, was); err != nil {
			return err
		}
		if err := tx.Write("UPDATE application SET configuration = ?, target_version = ?, update_status = ?, status = ?, generation = ?, "+
			"anycast = ?, limits = ? WHERE id = ?", string(d.Configuration), d.TargetVersion, d.UpdateStatus, status, generation, anycast, limits,
			id); err != nil {
			return err
		}
		if says := d.diff(before); says != "" {
			return addPointHistory(tx, servicePoint, "UPDATE_APPLICATION", "Service point %s: changed application %s (%s): %s", d.Name,
				id, says)
		}
		return nil
	})
}

// diff describes the values of an application that differ. The content of configurations is left out, as it may contain secrets.
func (d deployed) diff(before deployed) string {
	var all []string
	if !bytes.Equal(d.Configuration, before.Configuration) {
		all = append(all, "its configuration")
	}
	if !slices.Equal(d.anycast, before.anycast) {
		all = append(all, "anycast addresses: "+cmp.Or(strings.Join(before.anycast, " "), "none")+" -> "+
			cmp.Or(strings.Join(d.anycast, " "), "none"))
	}
	if d.Limits != before.Limits {
		all = append(all, "its limits")
	}
	if d.TargetVersion != before.TargetVersion {
		all = append(all, "target version: "+cmp.Or(before.TargetVersion, "none")+" -> "+cmp.Or(d.TargetVersion, "none"))
	}
	return strings.Join(all, ", ")
}

// setAnycastAndLimits applies the anycast addresses and the limits of a change to an application, and returns both in stored form. all are
// the applications of the service point.
func (s *Service) setAnycastAndLimits(tx *store.Tx, d *deployed, all []deployed, c ApplicationChange) (anycast, limits string, err error) {
	if c.AnycastAddresses != nil {
		d.anycast = c.AnycastAddresses
	}
	if d.anycast, err = s.checkAnycastAddresses(tx, d, all, d.anycast); err != nil { // also if the configuration now listens elsewhere
		return "", "", err
	}
	if c.Limits != nil {
		d.Limits = *c.Limits
		if err := checkLimits(d.Limits); err != nil {
			return "", "", err
		}
	}
	addresses, err := json.Marshal(append([]string{}, d.anycast...))
	if err != nil {
		return "", "", err
	}
	text, err := json.Marshal(d.Limits)
	return string(addresses), string(text), err
}

// Bounds of limits: the minimum that an application needs, and a maximum beyond the size of any machine.
const (
	minMemory = 64
	maxMemory = 1 << 22
	minCPU    = 5
	maxCPU    = 100_000
)

// checkLimits returns an error if limits are out of bounds. 0 means the default.
func checkLimits(l checkin.Limits) error {
	for _, one := range []struct {
		field           string
		value, min, max int
	}{{"memoryMiB", l.MemoryMiB, minMemory, maxMemory}, {"cpuPercent", l.CPUPercent, minCPU, maxCPU}} {
		if one.value != 0 && (one.value < one.min || one.value > one.max) {
			return problem.Invalid("limits."+one.field, "must be %d to %d, or 0 for the default", one.min, one.max)
		}
	}
	return nil
}

// readChangeable reads an application. It returns an error if the application is deleted or being deleted.
func (s *Service) readChangeable(tx *store.Tx, servicePoint, id string) (d deployed, err error) {
	d, err = scanApplication(tx.QueryRow(selectApplications+"WHERE id = ? AND service_point = ?", id, servicePoint).Scan)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return d, problem.NotFound("service point %q has no application %q", servicePoint, id)
	case err == nil && (d.Status == checkin.Deleted || strings.HasPrefix(d.UpdateStatus, "DELETE_")):
		return d, problem.Conflict("ApplicationIsDeleted", "application %s is being deleted", id)
	}
	return d, err
}

// Undeploy requests the deletion of an application from a service point.
func (s *Service) Undeploy(ctx context.Context, servicePoint, id string) error {
	return s.changeDesired(ctx, servicePoint, func(tx *store.Tx, generation int64) error {
		d, err := s.readChangeable(tx, servicePoint, id)
		if err != nil {
			return err
		}
		if err := s.recordApplicationChange(tx, d, d.Status, deleteQueued, d.UpdateStatus); err != nil {
			return err
		}
		if err := tx.Write("UPDATE application SET update_status = ?, target_version = '', generation = ? WHERE id = ?", deleteQueued, generation,
			id); err != nil {
			return err
		}
		return addPointHistory(tx, servicePoint, "DELETE_APPLICATION", "Service point %s: removed application %s (%s)", d.Name, id)
	})
}

// Applications returns the applications of a service point.
func (s *Service) Applications(ctx context.Context, servicePoint string) (all []ApplicationDetail, err error) {
	all = []ApplicationDetail{}
	return all, s.store.View(ctx, func(tx *store.Tx) error {
		if err := checkExists(tx, servicePoint); err != nil {
			return err
		}
		rows, err := applicationsOf(tx, servicePoint)
		if err != nil {
			return err
		}
		nodes, err := nodesOf(tx, servicePoint)
		for _, d := range rows {
			d.AnycastIPAddress = anycastAddresses(d, nodes)
			if hide := s.programs[d.Name].Hide; hide != nil {
				d.Configuration = hide(d.Configuration)
			}
			all = append(all, d.ApplicationDetail)
		}
		return err
	})
}

// nodesOf returns the nodes of a service point as it reported them.
func nodesOf(tx *store.Tx, servicePoint string) ([]checkin.Node, error) {
	var body string
	err := tx.QueryRow("SELECT body FROM report WHERE service_point = ?", servicePoint).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	var r checkin.Report
	if err == nil {
		err = json.Unmarshal([]byte(body), &r)
	}
	return r.Nodes, err
}

// checkExists returns an error if a service point does not exist.
func checkExists(tx *store.Tx, servicePoint string) error {
	var one int
	err := tx.QueryRow("SELECT 1 FROM service_point WHERE id = ?", servicePoint).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return UnknownProblem(servicePoint)
	}
	return err
}

// goneAfter is how long a DELETED application is still listed.
const goneAfter = time.Minute

// removeDeleted deletes the applications that have been DELETED for longer than goneAfter.
func (s *Service) removeDeleted(ctx context.Context, update store.Updater) error {
	before := s.now().Add(-goneAfter).UnixMilli()
	return s.each(ctx, update, "SELECT id FROM application WHERE deleted > 0 AND deleted < ? ORDER BY service_point, id", []any{before},
		func(tx *store.Tx, id string) error {
			return errors.Join(tx.Write("DELETE FROM stream WHERE application = ?", id),
				tx.Write("DELETE FROM application WHERE id = ? AND deleted > 0", id))
		})
}

// ApplicationName returns the name of an application of a service point by its id, even if it is being deleted. It returns an empty name if
// there is no such application.
func ApplicationName(tx *store.Tx, servicePoint, id string) (name string, err error) {
	err = tx.QueryRow("SELECT name FROM application WHERE id = ? AND service_point = ?", id, servicePoint).Scan(&name)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return name, err
}
