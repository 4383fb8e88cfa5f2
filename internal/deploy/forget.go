package deploy

import (
	"portolan/internal/store"
	"portolan/internal/zonedata"
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
	for _, id := range zones {
		if err := strip(tx, id); err != nil {
			return err
		}
	}
	tx.Touch(deployments)
	return nil
}

// strip takes the records of a zone away that no server serves any more. Its serial number stays: should it be served again, those who
// copied it are to see that it has changed.
func strip(tx *store.Tx, zone string) error {
	var servers int
	if err := tx.QueryRow("SELECT count(*) FROM dns_served WHERE zone = ?", zone).Scan(&servers); err != nil || servers > 0 {
		return err
	}
	for _, table := range []string{"dns_part", "dns_difference"} {
		if err := tx.Write("DELETE FROM "+table+" WHERE zone = ?", zone); err != nil {
			return err
		}
	}
	if err := tx.Write("UPDATE dns_zone SET hash = ?, records = 0, complete = 0 WHERE zone = ?", zonedata.Hash{}.String(), zone); err != nil {
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
