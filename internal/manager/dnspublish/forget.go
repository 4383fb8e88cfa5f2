package dnspublish

import (
	"portolan/internal/engine/store"
	"portolan/internal/wire/zonedata"
)

// forget takes away what is kept of what a server serves, and of who waits for it.
func forget(tx *store.Tx, server int64) error {
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
	if err := strip(tx, zones...); err != nil {
		return err
	}
	tx.Touch(deployments)
	return nil
}

// strip takes the records of zones away that no server serves any more. Their serial numbers stay: should they be served again, those who
// copied them are to see that they have changed. Those that are copied from others are looked at anew then.
func strip(tx *store.Tx, zones ...string) error {
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

// passSerial keeps the serial number that a zone has elsewhere, so that those that it is served with from here come behind it.
func passSerial(tx *store.Tx, zone string, configuration int64, serial uint32) error {
	if err := tx.Write("INSERT INTO dns_zone (zone, configuration, serial, hash, records, number, complete) VALUES (?, ?, ?, ?, 0, 0, 0)"+
		" ON CONFLICT (zone) DO UPDATE SET serial = excluded.serial WHERE dns_zone.records = 0", zone, configuration, int64(serial),
		zonedata.Hash{}.String()); err != nil {
		return err
	}
	_, there, err := readDeployed(tx, zone)
	if err != nil || there { // it is served, by serial numbers of its own
		return err
	}
	return writePart(tx, zone, []byte{}, nil)
}

// anew gives a server another revision of the same content where its service point serves one that is not older, and not this one: that of
// a database that was restored to an earlier moment. It reports whether it did.
func anew(tx *store.Tx, server, number int64, serves string) (bool, error) {
	is, _, there, err := revisionOf(tx, server)
	if err != nil || !there {
		return false, err
	}
	from, err := zonedata.ParseRevision(serves)
	if err != nil || from.Number < is.Number || from == is {
		return false, nil //nolint:nilerr // it serves nothing that can be read, and is given all
	}
	return true, tx.Write("UPDATE dns_server SET number = ?, settings_number = ? WHERE server = ?", number, number, server)
}
