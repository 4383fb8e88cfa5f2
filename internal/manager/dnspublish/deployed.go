package dnspublish

import (
	"bytes"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"portolan/internal/base/plural"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/wire/zonedata"

	"github.com/klauspost/compress/zstd"
)

//go:embed migrations/*/*.sql
var migrations embed.FS

// registerDeployed declares the tables of deployed content. A zone has one content, which all of its servers share. number is the number of
// the change that wrote it, in one sequence for all zones. dns_difference contains the recent changes: see publication.writeDifference.
func registerDeployed(r *resource.Registry) {
	live := &liveViews{}
	r.Report("zones", servingReport())
	reportSigning(r)
	r.Extension(&store.Extension{Name: deployedName, State: live, Opened: live.open, Follow: live.follow, Migrations: migrations,
		Verify: verifyDeployed, Tables: []store.Table{
			{Name: "dns_zone", Columns: []string{"zone", "configuration", "serial", "hash", "records", "number", "complete"}, Key: 1},
			{Name: "dns_part", Columns: []string{"zone", "first", "data"}, Key: 2},
			{Name: "dns_difference", Columns: []string{"zone", "number", "from_hash", "to_hash", "data"}, Key: 2,
				Derived: "a server that is behind gets whole zones"},
			{Name: "dns_server", Columns: []string{"server", "settings", "settings_number", "hash", "number"}, Key: 1},
			{Name: "dns_served", Columns: []string{"server", "zone", "number"}, Key: 2},
			{Name: "deployment_wait", Columns: []string{"deployment", "server", "number", "until", "state", "message"}, Key: 2},
			{Name: "dns_key", Columns: []string{"zone", "tag", "published", "parent", "signing", "warned"}, Key: 2},
			{Name: "dns_copy", Columns: []string{"zone", "configuration", "refreshed", "expired", "notified"}, Key: 1},
			{Name: "dns_gone", Columns: []string{"server", "zone", "number"}, Key: 2, Derived: "a server that is behind gets its whole content"},
			{Name: "dns_due", Columns: []string{"configuration", "kind", "what", "changed", "lane"}, Key: 3},
			{Name: "dns_frame", Columns: []string{"zone", "data"}, Key: 1, Derived: "zones without a frame are examined as a whole"},
			{Name: "deployment_record", Columns: []string{"deployment", "kind", "record"}, Key: 3},
			{Name: string(deletedRecords), Columns: []string{"id", "collection", "type", "name", "parent", "configuration", "low", "high", "key",
				"version", "refs", "body"}, Key: 1}}})
}

// verifyDeployed checks the stored parts of zones against their hashes.
func verifyDeployed(tx *store.Tx, fault func(format string, args ...any)) error {
	all := map[string]deployedZone{}
	if err := tx.Each(func(scan func(...any) error) error {
		var z deployedZone
		if err := scan(&z.id, &z.serial, &z.hash, &z.number); err != nil {
			return err
		}
		all[z.id] = z
		return nil
	}, "SELECT zone, serial, hash, number FROM dns_zone"); err != nil {
		return err
	}
	for id, z := range all {
		entries, err := readParts(tx, id)
		if err != nil {
			return err
		}
		var h zonedata.Hash
		for _, e := range entries {
			h.Add(e.Record())
		}
		if h.String() != z.hash {
			fault("the deployed data of zone %s does not match its hash", id)
		}
	}
	return nil
}

// deployedZone is the deployed state of a zone.
type deployedZone struct {
	id     string
	serial int64 // of 32 bits
	hash   string
	number int64
	// records is the number of records.
	records int64
	// complete is a time in Unix milliseconds: all changes of records before it are deployed. 0 means unknown: the whole zone must be
	// examined.
	complete int64
}

// readDeployed returns the deployed state of a zone. there is false if the zone is not deployed, even if its serial number is stored (see
// deleteUnserved and continueSerial).
func readDeployed(tx *store.Tx, id string) (z deployedZone, there bool, err error) {
	z.id = id
	err = tx.QueryRow("SELECT serial, hash, number, records, complete FROM dns_zone WHERE zone = ?", id).
		Scan(&z.serial, &z.hash, &z.number, &z.records, &z.complete)
	if errors.Is(err, sql.ErrNoRows) {
		return z, false, nil
	}
	return z, err == nil && z.records > 0, err
}

// readAllDeployed returns the deployed states of the zones of a configuration. The number of records of a zone that is not deployed is 0.
func readAllDeployed(tx *store.Tx, configuration int64) (map[string]deployedZone, error) {
	all := map[string]deployedZone{}
	err := tx.Each(func(scan func(...any) error) error {
		var z deployedZone
		err := scan(&z.id, &z.serial, &z.hash, &z.number, &z.records, &z.complete)
		all[z.id] = z
		return err
	}, "SELECT zone, serial, hash, number, records, complete FROM dns_zone WHERE configuration = ?", configuration)
	return all, err
}

// partEntries is the approximate number of records in a part of a zone. A part with twice as many is split between two names.
const partEntries = 512

// Compression of stored data; both are safe for concurrent use.
var (
	packer, _   = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<30))
)

// readParts returns the deployed records of a zone, sorted.
func readParts(tx *store.Tx, id string) (entries []zonedata.Entry, err error) {
	err = eachDeployed(tx, id, func(e zonedata.Entry) { entries = append(entries, e) })
	return entries, err
}

// eachDeployed calls use with the deployed records of a zone, in order. A record shares its memory with some thousand others.
func eachDeployed(tx *store.Tx, id string, use func(zonedata.Entry)) error {
	return tx.Each(func(scan func(...any) error) error {
		var data []byte
		if err := scan(&data); err != nil {
			return err
		}
		text, err := unpacker.DecodeAll(data, nil)
		if err != nil {
			return fmt.Errorf("read the deployed data of zone %s: %w", id, err)
		}
		return zonedata.Records(text, func(r zonedata.Record) error {
			use(zonedata.NewEntry(r))
			return nil
		})
	}, "SELECT data FROM dns_part WHERE zone = ? ORDER BY first", id)
}

// readDifference decodes the output of publication.difference.
func readDifference(data []byte, removed, added func(zonedata.Record) error) error {
	text, err := unpacker.DecodeAll(data, nil)
	if err != nil {
		return err
	}
	head, rest, _ := bytes.Cut(text, []byte("\n"))
	var length int
	if _, err := fmt.Sscan(string(head), &length); err != nil || length < 0 || length > len(rest) {
		return fmt.Errorf("a difference of %q bytes", head)
	}
	if err := zonedata.Records(rest[:length], removed); err != nil {
		return err
	}
	return zonedata.Records(rest[length:], added)
}

// changeParts updates the parts that contain removed or added records. Both lists must be sorted.
func changeParts(tx *store.Tx, zone string, removed, added []zonedata.Entry) error {
	for len(removed)+len(added) > 0 {
		var key []byte
		switch {
		case len(removed) == 0:
			key = added[0].Key()
		case len(added) == 0 || bytes.Compare(removed[0].Key(), added[0].Key()) < 0:
			key = removed[0].Key()
		default:
			key = added[0].Key()
		}
		first, next, entries, err := readPart(tx, zone, key)
		if err != nil {
			return err
		}
		gone, more := countBefore(removed, next), countBefore(added, next)
		entries = slices.DeleteFunc(entries, func(e zonedata.Entry) bool {
			_, found := slices.BinarySearchFunc(removed[:gone], e, zonedata.Entry.Compare)
			return found
		})
		entries = append(entries, added[:more]...)
		slices.SortFunc(entries, zonedata.Entry.Compare)
		removed, added = removed[gone:], added[more:]
		if len(entries) == 0 && len(first) > 0 {
			err = tx.Write("DELETE FROM dns_part WHERE zone = ? AND first = ?", zone, first)
		} else {
			err = writePart(tx, zone, first, entries)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// countBefore returns the number of entries before a key; all if the key is nil.
func countBefore(entries []zonedata.Entry, next []byte) int {
	if next == nil {
		return len(entries)
	}
	n, _ := slices.BinarySearchFunc(entries, next, func(e zonedata.Entry, key []byte) int { return bytes.Compare(e.Key(), key) })
	return n
}

// readPart returns the part of a zone that contains a key: its first key, the first key of the next part, and its records. next is nil for
// the last part.
func readPart(tx *store.Tx, zone string, key []byte) (first, next []byte, entries []zonedata.Entry, err error) {
	var data []byte
	if err := tx.QueryRow("SELECT first, data FROM dns_part WHERE zone = ? AND first <= ? ORDER BY first DESC LIMIT 1", zone, key).
		Scan(&first, &data); err != nil {
		return nil, nil, nil, fmt.Errorf("read the deployed data of zone %s: %w", zone, err)
	}
	err = tx.QueryRow("SELECT first FROM dns_part WHERE zone = ? AND first > ? ORDER BY first LIMIT 1", zone, key).Scan(&next)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, nil, nil, err
	}
	text, err := unpacker.DecodeAll(data, nil)
	if err == nil {
		err = zonedata.Records(text, func(r zonedata.Record) error {
			entries = append(entries, zonedata.NewEntry(r))
			return nil
		})
	}
	return slices.Clone(first), slices.Clone(next), entries, err
}

// writePart stores entries as a part with a first key, and splits them into several parts if they are too many.
func writePart(tx *store.Tx, zone string, first []byte, entries []zonedata.Entry) error {
	for {
		end := len(entries)
		if end > 2*partEntries {
			for end = partEntries; end < len(entries) && bytes.Equal(entries[end].Key(), entries[end-1].Key()); end++ {
			}
		}
		var text []byte
		for _, e := range entries[:end] {
			text = zonedata.AppendRecord(text, e.Record())
		}
		if err := tx.Write("INSERT INTO dns_part (zone, first, data) VALUES (?, ?, ?) "+
			"ON CONFLICT (zone, first) DO UPDATE SET data = excluded.data", zone, notNil(first), notNil(packer.EncodeAll(text, nil))); err != nil {
			return err
		}
		if entries = entries[end:]; len(entries) == 0 {
			return nil
		}
		first = entries[0].Key()
	}
}

// notNil returns b, or an empty slice for nil, which a database would store as NULL.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// publish stores new contents of zones as the change with a number, and returns the servers whose content changed. read is the moment of
// the snapshot that they were computed from.
func publish(tx *store.Tx, configuration, number int64, all []*publication, read readTime) (servers []int64, err error) {
	for _, c := range all {
		now, there, err := readDeployed(tx, c.zone.id)
		switch {
		case err != nil:
			return nil, err
		case c.empty && there: // it was copied meanwhile
			continue
		case there && c.existed && now.hash != c.before.hash && c.rebases:
			c.rebased = true
			if c, err = c.rebase(tx, now, read); err != nil {
				return nil, err
			}
		case there != c.existed || there && now.hash != c.before.hash:
			return nil, errConcurrentDeployment
		}
		if err := c.write(tx, configuration, number); err != nil {
			return nil, err
		}
		read.record(number, c.hash)
		var serving []int64
		if err := tx.Each(func(scan func(...any) error) error {
			var id int64
			err := scan(&id)
			serving = append(serving, id)
			return err
		}, "SELECT server FROM dns_served WHERE zone = ?", c.zone.id); err != nil {
			return nil, err
		}
		for _, id := range serving {
			if err := updateHash(tx, id, number, func(h *zonedata.Hash) {
				h.RemoveZone(c.zone.id, c.before.hash)
				h.AddZone(c.zone.id, c.hash)
			}); err != nil {
				return nil, err
			}
			if !slices.Contains(servers, id) {
				servers = append(servers, id)
			}
		}
	}
	return servers, nil
}

// updateHash updates the hash of a server and assigns a new revision number.
func updateHash(tx *store.Tx, server, number int64, change func(*zonedata.Hash)) error {
	var text string
	if err := tx.QueryRow("SELECT hash FROM dns_server WHERE server = ?", server).Scan(&text); err != nil {
		return err
	}
	h, err := zonedata.ParseHash(text)
	if err != nil {
		return err
	}
	change(&h)
	return tx.Write("UPDATE dns_server SET hash = ?, number = ? WHERE server = ?", h.String(), number, server)
}

// settingsOfServer is the purpose that the settings of a server are sealed for: they contain secret keys.
const settingsOfServer = "settings of a name server"

// errNoContent is the error for a zone in the content of a server that is not deployed.
var errNoContent = errors.New("the zone is in the content of the server and is not deployed")

// checkBase returns errConcurrentDeployment if the settings of the server have changed since the snapshot: the content may lack zones that
// were deployed meanwhile, and contain zones that were deleted.
func (s *serving) checkBase(tx *store.Tx, server int64) error {
	_, now, _, err := revisionOf(tx, server)
	if err == nil && now.settingsNumber != s.base {
		err = errConcurrentDeployment
	}
	return err
}

// errSettingsSize is the error for the settings of a server that a service point would refuse.
var errSettingsSize = errors.New("the settings are too large")

// checkSettingsSize returns errSettingsSize for settings that a service point would refuse.
func checkSettingsSize(size, zones int) error {
	if size <= zonedata.MaxPart {
		return nil
	}
	return fmt.Errorf("%w: %d MiB for %s, at most %d MiB: use shorter access control lists, or several servers", errSettingsSize, size>>20,
		plural.Count(zones, "zone"), zonedata.MaxPart>>20)
}

// serve stores the content of a server, and reports whether it has changed.
func (s *serving) serve(tx *store.Tx, server, number int64) (changed bool, err error) {
	for i, z := range s.settings.Zones { // zones may have been copied meanwhile
		if z.Copied {
			refreshed, expired, err := readCopy(tx, z.ID)
			if err != nil {
				return false, err
			}
			s.settings.Zones[i].Void = refreshed == 0 || expired
		}
	}
	settings, err := json.Marshal(s.settings)
	if err == nil {
		err = checkSettingsSize(len(settings), len(s.settings.Zones))
	}
	if err != nil {
		return false, err
	}
	var before string
	var settingsNumber, at int64
	var hash string
	err = tx.QueryRow("SELECT settings, settings_number, hash, number FROM dns_server WHERE server = ?", server).
		Scan(&before, &settingsNumber, &hash, &at)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return false, err
	}
	if before != "" {
		if before, err = s.sealer.Open(tx, settingsOfServer, before); err != nil {
			return false, err
		}
	}
	if before != string(settings) {
		settingsNumber = number
	}
	served := map[string]bool{}
	if err := tx.Each(func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		served[id] = true
		return err
	}, "SELECT zone FROM dns_served WHERE server = ?", server); err != nil {
		return false, err
	}
	contents := map[string]string{}
	s.unserved = nil
	deployed, err := readAllDeployed(tx, s.configuration)
	if err != nil {
		return false, err
	}
	for _, z := range s.zones {
		d := deployed[z.id]
		if d.records == 0 {
			return false, fmt.Errorf("zone %s: %w", z.id, errNoContent)
		}
		if contents[z.id] = d.hash; !served[z.id] {
			if err := tx.Write("INSERT INTO dns_served (server, zone, number) VALUES (?, ?, ?)", server, z.id, number); err != nil {
				return false, err
			}
			if err := tx.Write("DELETE FROM dns_gone WHERE server = ? AND zone = ?", server, z.id); err != nil {
				return false, err
			}
		}
		delete(served, z.id)
	}
	for id := range served {
		if err := tx.Write("DELETE FROM dns_served WHERE server = ? AND zone = ?", server, id); err != nil {
			return false, err
		}
		s.unserved = append(s.unserved, id)
		if err := tx.Write("INSERT INTO dns_gone (server, zone, number) VALUES (?, ?, ?)", server, id, number); err != nil {
			return false, err
		}
	}
	total := zonedata.Total(settings, contents).String()
	if total == hash {
		return false, nil
	}
	sealed, err := s.sealer.Seal(tx, settingsOfServer, string(settings))
	if err != nil {
		return false, err
	}
	return true, tx.Write("INSERT INTO dns_server (server, settings, settings_number, hash, number) VALUES (?, ?, ?, ?, ?)"+
		" ON CONFLICT (server) DO UPDATE SET settings = excluded.settings, settings_number = excluded.settings_number, hash = excluded.hash,"+
		" number = excluded.number", server, sealed, settingsNumber, total, number)
}
