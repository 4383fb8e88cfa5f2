package fleet

import (
	"strings"

	"portolan/internal/engine/store"
)

// pointState is the state of a service point that its reports change.
type pointState struct {
	id, status, variant               string
	generation, acknowledged, desired int64
	update                            updatable
	nodeCount                         int64
	// mayHaveNodes means that it may have several nodes, connected that it is connected, logs that a log excerpt is requested.
	mayHaveNodes, connected, logs bool
	// sequence, digest and body are those of the stored report. Without a report sequence is 0 and the others are empty.
	sequence     int64
	digest, body string
	applications []deployed
}

// lockStates reads and locks up to maxBatch service points by their ids. With waits it waits for rows that are locked by others; otherwise
// it leaves them out.
func (s *Service) lockStates(tx *store.Tx, ids []string, waits bool) (all map[string]*pointState, err error) {
	all = make(map[string]*pointState, len(ids))
	locking := tx.Locking()
	if !waits {
		locking = tx.LockingFree()
	}
	if err := eachOf(tx, ids, func(scan func(...any) error) error {
		var several, logs int64
		is := &pointState{}
		err := scan(append([]any{&is.id, &is.status, &is.variant, &is.generation, &is.acknowledged, &is.desired, &several, &logs, &is.nodeCount},
			is.update.destinations()...)...)
		is.mayHaveNodes, is.logs, all[is.id] = several == 1, logs == 1, is
		return err
	}, "SELECT id, status, variant, generation, acknowledged, desired, several, logs_asked, node_count, "+selectUpdatable+
		" FROM service_point WHERE id IN ", " ORDER BY id"+locking); err != nil {
		return nil, err
	}
	// This is a second statement, because the first one would return values of unlocked tables from before it waited for a lock.
	if err := eachOf(tx, ids, func(scan func(...any) error) error {
		var id, digest, body string
		var connected, sequence int64
		err := scan(&id, &connected, &sequence, &digest, &body)
		if is := all[id]; is != nil {
			is.connected, is.sequence, is.digest, is.body = connected == 1, sequence, digest, body
		}
		return err
	}, "SELECT s.id, coalesce(p.connected, 0), coalesce(r.sequence, 0), coalesce(r.digest, ''), coalesce(r.body, '') FROM service_point s "+
		"LEFT JOIN presence p ON p.service_point = s.id LEFT JOIN report r ON r.service_point = s.id WHERE s.id IN ", ""); err != nil {
		return nil, err
	}
	return all, eachApplication(tx, ids, func(d deployed) {
		if is := all[d.servicePoint]; is != nil {
			is.applications = append(is.applications, d)
		}
	})
}

// rowFor returns the row that a check-in of a node needs.
func (is *pointState) rowFor(at nodeID) row {
	return row{status: is.status, desired: is.desired, acknowledged: is.acknowledged, generation: is.generation, sequence: is.sequence,
		digest: is.digest, reported: is.body != "", logs: is.logs, mayHaveNodes: is.mayHaveNodes, at: at}
}

// lockState reads and locks one service point.
func (s *Service) lockState(tx *store.Tx, id string) (*pointState, error) {
	all, err := s.lockStates(tx, []string{id}, true)
	if err == nil && all[id] == nil {
		err = UnknownProblem(id)
	}
	return all[id], err
}

// appliedMember precedes the applied generation in a report. Texts in a report cannot contain it, as their quotation marks are escaped.
const appliedMember = `"applied":`

// withoutApplied returns a report without the applied generation.
func withoutApplied(body string) string {
	head, tail, _ := strings.Cut(body, appliedMember)
	return head + strings.TrimLeft(tail, "0123456789")
}

// writeState writes the values that differ between before and now.
func (s *Service) writeState(tx *store.Tx, before, now *pointState) error {
	// These are the values that lists show or filter by. The others change with every order, and lists do not use them.
	shows := withoutApplied(now.body) != withoutApplied(before.body) || now.status != before.status || now.variant != before.variant ||
		now.update != before.update
	if shows { // a report changes every column of an update except update_asked
		tx.Touch(rowsTopic)
		u := &now.update
		if err := tx.Write("UPDATE service_point SET generation = ?, acknowledged = ?, desired = ?, status = ?, variant = ?, version = ?, "+
			"platform = ?, base_version = ?, target_version = ?, update_status = ?, update_reason = ?, revision = revision + 1 WHERE id = ?",
			now.generation, now.acknowledged, now.desired, now.status, now.variant, u.version, u.platform, u.base, u.target, u.status, u.reason,
			now.id); err != nil {
			return err
		}
	} else if now.generation != before.generation || now.acknowledged != before.acknowledged || now.desired != before.desired {
		if err := tx.Write("UPDATE service_point SET generation = ?, acknowledged = ?, desired = ? WHERE id = ?", now.generation,
			now.acknowledged, now.desired, now.id); err != nil {
			return err
		}
	}
	if now.body == before.body && now.sequence == before.sequence && now.digest == before.digest {
		return nil
	}
	return tx.Write("INSERT INTO report (service_point, sequence, digest, body) VALUES (?,?,?,?) ON CONFLICT (service_point) DO UPDATE SET "+
		"sequence = excluded.sequence, digest = excluded.digest, body = excluded.body", now.id, now.sequence, now.digest, now.body)
}

// renewDesired assigns a new generation to the desired state, so that the service point asks for it again.
func (s *Service) renewDesired(tx *store.Tx, now *pointState) {
	tx.Touch(store.Detail(topic, now.id))
	now.desired = s.nextGenerationOf(now.desired)
}

// eachApplication calls fn for the applications of up to maxBatch service points, those of one service point in the order of their
// creation.
func eachApplication(tx *store.Tx, ids []string, fn func(deployed)) error {
	return eachOf(tx, ids, func(scan func(...any) error) error {
		d, err := scanApplication(scan)
		if err == nil {
			fn(d)
		}
		return err
	}, selectApplications+"WHERE service_point IN ", " ORDER BY created, id")
}

// applicationsOf reads the applications of a service point in the order of their creation.
func applicationsOf(tx *store.Tx, servicePoint string) (all []deployed, err error) {
	return all, tx.Each(func(scan func(...any) error) error {
		d, err := scanApplication(scan)
		all = append(all, d)
		return err
	}, selectApplications+"WHERE service_point = ? ORDER BY created, id", servicePoint)
}
