package deploy

import (
	"portolan/internal/store"
	"portolan/internal/zonedata"
)

// forget takes away what is kept of what a server serves, and of who waits for it.
func forget(tx *store.Tx, server int64) error {
	for _, table := range []string{"dns_served", "dns_gone", "dns_server", "deployment_wait"} {
		if err := tx.Write("DELETE FROM "+table+" WHERE server = ?", server); err != nil {
			return err
		}
	}
	tx.Touch(deployments)
	return nil
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
