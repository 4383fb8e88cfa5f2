package transfer

import (
	"embed"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/ipam"
)

// registerDynamicAddresses declares the table of addresses that were assigned because an update or a followed server named them.
func registerDynamicAddresses(r *resource.Registry) {
	r.Extension(&store.Extension{Name: "dynamicAddresses", Migrations: dynamicAddressMigrations,
		Tables: []store.Table{{Name: "dynamic_address", Columns: []string{"address"}, Key: 1}}})
}

//go:embed migrations/*/0012_dynamic_address.sql
var dynamicAddressMigrations embed.FS

// markAssigned records the addresses that were assigned because the change names them.
func (u *updater) markAssigned() error {
	for _, f := range u.importer.assigned {
		rows, err := u.c.Tx.ListBelow(f.network, "addresses", store.AddrKey(f.addr), store.AddrKey(f.addr))
		if err != nil {
			return err
		}
		for _, r := range rows {
			if err := u.c.Tx.Write("INSERT INTO dynamic_address (address) VALUES (?) ON CONFLICT DO NOTHING", r.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// releaseAddresses deletes addresses that were assigned because an update named them and that have no other use.
func (u *updater) releaseAddresses(addresses []int64) error {
	for _, id := range addresses {
		var ours int
		if err := u.c.Tx.QueryRow("SELECT count(*) FROM dynamic_address WHERE address = ?", id).Scan(&ours); err != nil {
			return err
		}
		if ours == 0 {
			continue
		}
		gone, err := ipam.ReleaseUnused(u.c, id)
		if err != nil {
			return err
		}
		if gone {
			if err := u.c.Tx.Write("DELETE FROM dynamic_address WHERE address = ?", id); err != nil {
				return err
			}
		}
	}
	return nil
}
