package dnspublish

import (
	"portolan/internal/engine/store"
	"portolan/internal/wire/zonedata"
)

// deleteContent deletes the stored content of a server, and the entries of deployments that wait for it.
func deleteContent(tx *store.Tx, server int64) error {
	var zones []string
	if err := tx.Each(func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		zones = append(zones, id)
		return err
	}, "SELECT zone FROM dns_served WHERE server = ?", server); err != nil {
		return err
	}
	for _, table := range []string{"dns_served", "dns_gone", "dns_server", "deployment_wait"} {
		if err := tx.Write("DELETE FROM "+table+" WHERE server = ?", server); err != nil {
			return err
		}
	}
	if err := deleteUnserved(tx, zones...); err != nil {
		return err
	}
	tx.Touch(deployments)
	return nil
}

// deleteUnserved deletes the records of those zones that no server serves any more. Serial numbers are kept, so that secondaries see a
// change if a zone is served again. Zones that are copied from foreign servers are marked for a new copy.
func deleteUnserved(tx *store.Tx, zones ...string) error {
	for _, zone := range zones {
		var servers int
		if err := tx.QueryRow("SELECT count(*) FROM dns_served WHERE zone = ?", zone).Scan(&servers); err != nil {
			return err
		}
		if servers > 0 {
			continue
		}
		for _, table := range []string{"dns_part", "dns_difference"} {
			if err := tx.Write("DELETE FROM "+table+" WHERE zone = ?", zone); err != nil {
				return err
			}
		}
		if err := tx.Write("UPDATE dns_zone SET hash = ?, records = 0, complete = 0 WHERE zone = ?", zonedata.Hash{}.String(), zone); err != nil {
			return err
		}
		if err := writePart(tx, zone, []byte{}, nil); err != nil {
			return err
		}
		copied, err := tx.Exec("UPDATE dns_copy SET refreshed = 0, expired = 0, notified = 1 WHERE zone = ?", zone)
		if err != nil {
			return err
		}
		if copied > 0 {
			tx.Touch(copiesTopic)
		}
	}
	return nil
}

// continueSerial stores the serial number that a zone has on another server, so that its serial numbers here continue after it.
func continueSerial(tx *store.Tx, zone string, configuration int64, serial uint32) error {
	if err := tx.Write("INSERT INTO dns_zone (zone, configuration, serial, hash, records, number, complete) VALUES (?, ?, ?, ?, 0, 0, 0)"+
		" ON CONFLICT (zone) DO UPDATE SET serial = excluded.serial WHERE dns_zone.records = 0", zone, configuration, int64(serial),
		zonedata.Hash{}.String()); err != nil {
		return err
	}
	_, there, err := readDeployed(tx, zone)
	if err != nil || there { // the zone is served and has its own serial numbers
		return err
	}
	return writePart(tx, zone, []byte{}, nil)
}

// renewRevision assigns a new revision number to the unchanged content of a server, if the service point serves a different revision with
// the same or a higher number. This happens after the database was restored to an earlier state. renewRevision reports whether it assigned
// one.
func renewRevision(tx *store.Tx, server, number int64, serves string) (bool, error) {
	is, _, there, err := revisionOf(tx, server)
	if err != nil || !there {
		return false, err
	}
	from, err := zonedata.ParseRevision(serves)
	if err != nil || from.Number < is.Number || from == is {
		return false, nil //nolint:nilerr // without a readable revision it gets the whole content
	}
	return true, tx.Write("UPDATE dns_server SET number = ?, settings_number = ? WHERE server = ?", number, number, server)
}
