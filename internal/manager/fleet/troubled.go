package fleet

import (
	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"
)

// maxTroubled is the maximum number of service points with one kind of problem that Figures names.
const maxTroubled = 3

// Troubled is a service point with a problem.
type Troubled struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Status is the problem: UNHEALTHY, NOT_CONNECTED, UPDATE_FAILED, or the status of Application.
	Status      string `json:"status"`
	Application string `json:"application,omitempty"`
}

// TroubledBy returns the service points with a problem; an empty application means one of the service point itself.
func (f *Figures) TroubledBy(status, application string) (all []Troubled) {
	for _, one := range f.Troubled {
		if one.Status == status && one.Application == application {
			all = append(all, one)
		}
	}
	return all
}

// readTroubled reads the service points with problems, as far as the counts say that there are any.
func (f *Figures) readTroubled(tx *store.Tx) error {
	f.Troubled = []Troubled{}
	read := func(n int64, status, application, from string, args ...any) error {
		if n == 0 {
			return nil
		}
		return tx.Each(func(scan func(...any) error) error {
			one := Troubled{Status: status, Application: application}
			err := scan(&one.ID, &one.Name)
			f.Troubled = append(f.Troubled, one)
			return err
		}, "SELECT s.id, s.name FROM service_point s "+from+" ORDER BY s.name LIMIT ?", append(args, maxTroubled)...)
	}
	if err := read(f.Statuses[Unhealthy], Unhealthy, "", "WHERE s.status = ?", Unhealthy); err != nil {
		return err
	}
	if err := read(f.Disconnected, NotConnected, "", "JOIN presence p ON p.service_point = s.id WHERE p.connected = 0 AND "+
		"p.last_seen > 0"); err != nil {
		return err
	}
	if err := read(f.Updates[checkin.UpdateFailed], checkin.UpdateFailed, "", "WHERE s.update_status = ?", checkin.UpdateFailed); err != nil {
		return err
	}
	for name, statuses := range f.Applications {
		for _, status := range []string{checkin.DeployFailed, checkin.Unhealthy} {
			if err := read(statuses[status], status, name, "JOIN application a ON a.service_point = s.id WHERE a.deleted = 0 AND a.name = ? "+
				"AND a.status = ?", name, status); err != nil {
				return err
			}
		}
	}
	return nil
}
