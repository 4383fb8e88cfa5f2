package dnspublish

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/wire/zonedata"
)

// IsBehind reports whether a service point serves an older revision than it should. A service point with a newer revision is not behind, as
// after the restore of an older backup: the older content is sent only by the next deployment.
func (p Planner) IsBehind(tx *store.Tx, servicePoint, serves string) (bool, error) {
	server, err := serverOfPoint(tx, servicePoint)
	if err != nil {
		return false, err
	}
	var to zonedata.Revision
	there := false
	if server != nil {
		if to, _, there, err = revisionOf(tx, server.ID); err != nil {
			return false, err
		}
	}
	if !there {
		return serves != "" && serves != zonedata.EmptyRevision(), nil
	}
	from, err := zonedata.ParseRevision(serves)
	if err != nil { // it serves nothing
		return true, nil //nolint:nilerr // see above
	}
	return from.Number < to.Number, nil
}

// serverRow are the stored settings of a server.
type serverRow struct {
	settings       string
	settingsNumber int64
}

func revisionOf(tx *store.Tx, server int64) (r zonedata.Revision, row serverRow, there bool, err error) {
	var hash string
	err = tx.QueryRow("SELECT settings, settings_number, hash, number FROM dns_server WHERE server = ?", server).
		Scan(&row.settings, &row.settingsNumber, &hash, &r.Number)
	if errors.Is(err, sql.ErrNoRows) {
		return r, row, false, nil
	}
	if err == nil {
		r.Hash, err = zonedata.ParseHash(hash)
	}
	return r, row, err == nil, err
}

// Planner provides the content of name servers and resolvers.
type Planner struct{ Sealer resource.Sealer }

// Write writes the change from a revision to the one that a service point should serve. It writes the whole content if from is empty, or if
// the changes since from are no longer stored.
func (p Planner) Write(tx *store.Tx, servicePoint, from string, out io.Writer) error {
	server, err := serverOfPoint(tx, servicePoint)
	if err != nil {
		return err
	}
	var to zonedata.Revision
	var row serverRow
	there := false
	if server != nil {
		if to, row, there, err = revisionOf(tx, server.ID); err != nil {
			return err
		}
	}
	if !there {
		return zonedata.WriteEmpty(out)
	}
	before, err := zonedata.ParseRevision(from)
	if err != nil || before.Number > to.Number {
		from, before = "", zonedata.Revision{}
	}
	w := zonedata.NewWriter(out, zonedata.Header{From: from, To: to.String()})
	structural := from == "" || row.settingsNumber > before.Number
	if structural {
		settings, err := p.Sealer.Open(tx, settingsOfServer, row.settings)
		if err != nil {
			return err
		}
		w.Settings([]byte(settings))
	}
	if to.Number > before.Number {
		if err := writeZones(tx, w, server.ID, structural, before.Number); err != nil {
			return err
		}
	}
	return w.Close()
}

// servedZone is a zone of a server; since is the number of the change since which the server serves it.
type servedZone struct {
	deployedZone
	since int64
}

// writeZones writes the changes of the zones of a server after a number; 0 is that of a receiver without content. structural reports that
// the settings have changed, which name the zones of the server: otherwise it serves the same zones as before, and those that have changed
// are found by their number.
func writeZones(tx *store.Tx, w *zonedata.Writer, server int64, structural bool, after int64) error {
	all := after == 0
	query, args := "dns_zone z CROSS JOIN dns_served s WHERE s.zone = z.zone AND s.server = ? AND z.number > ?", []any{server, after}
	if structural {
		query, args = "dns_served s JOIN dns_zone z ON z.zone = s.zone WHERE s.server = ? AND (z.number > ? OR s.number > ?)", append(args, after)
	}
	var zones []servedZone
	if err := tx.Each(func(scan func(...any) error) error {
		var z servedZone
		err := scan(&z.id, &z.serial, &z.hash, &z.number, &z.records, &z.since)
		zones = append(zones, z)
		return err
	}, "SELECT z.zone, z.serial, z.hash, z.number, z.records, s.number FROM "+query+" ORDER BY z.zone", args...); err != nil {
		return err
	}
	if !all && structural {
		if err := tx.Each(func(scan func(...any) error) error {
			var id string
			err := scan(&id)
			w.Deleted(id)
			return err
		}, "SELECT zone FROM dns_gone WHERE server = ? AND number > ? ORDER BY zone", server, after); err != nil {
			return err
		}
	}
	for _, z := range zones {
		if !all && z.since <= after {
			done, err := z.writeChange(tx, w, after)
			if err != nil {
				return err
			}
			if done {
				continue
			}
		}
		if err := z.writeWhole(tx, w); err != nil {
			return err
		}
	}
	return nil
}

// writeChange writes the changes of a zone after a number; done is false if they are no longer stored: see publication.writeDifference.
func (z *servedZone) writeChange(tx *store.Tx, w *zonedata.Writer, after int64) (done bool, err error) {
	first, last := "", ""
	net := zonedata.Net{}
	whole := true
	if err := tx.Each(func(scan func(...any) error) error {
		var from, to string
		var data []byte
		if err := scan(&from, &to, &data); err != nil {
			return err
		}
		if first == "" {
			first, last = from, from
		}
		if whole = whole && last == from && from != ""; !whole {
			return nil
		}
		last = to
		return readDifference(data, func(r zonedata.Record) error { net.Removed(r); return nil },
			func(r zonedata.Record) error { net.Added(r); return nil })
	}, "SELECT from_hash, to_hash, data FROM dns_difference WHERE zone = ? AND number > ? ORDER BY number", z.id, after); err != nil {
		return false, err
	}
	if !whole || last != z.hash {
		return false, nil
	}
	w.Zone(zonedata.Change{ID: z.id, From: first, To: z.hash, Serial: uint32(z.serial)})
	for _, removed := range []bool{true, false} {
		for text, n := range net {
			switch {
			case removed && n < 0:
				w.Removed(zonedata.Record(text))
			case !removed && n > 0:
				w.Added(zonedata.Record(text))
			}
		}
	}
	return true, nil
}

// writeWhole writes all records of a zone.
func (z *servedZone) writeWhole(tx *store.Tx, w *zonedata.Writer) error {
	w.Zone(zonedata.Change{ID: z.id, To: z.hash, Serial: uint32(z.serial)})
	if z.records > maxInline {
		tx.ReadOnce()
	}
	return tx.Each(func(scan func(...any) error) error {
		var data []byte
		if err := scan(&data); err != nil {
			return err
		}
		text, err := unpacker.DecodeAll(data, nil)
		if err != nil {
			return fmt.Errorf("read the deployed data of zone %s: %w", z.id, err)
		}
		return zonedata.Records(text, func(r zonedata.Record) error {
			w.Added(slices.Clone(r))
			return nil
		})
	}, "SELECT data FROM dns_part WHERE zone = ? ORDER BY first", z.id)
}
