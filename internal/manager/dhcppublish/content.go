package dhcppublish

import (
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcp"
	"portolan/internal/wire/content"
	"portolan/internal/wire/dhcpdata"

	"github.com/klauspost/compress/zstd"
)

//go:embed migrations/*/*.sql
var migrations embed.FS

// extensionName is the name of the extension with the deployed content.
const extensionName = "dhcp content"

// registerContent declares the tables of deployed content. Each server has units; the differences are the recent changes.
func registerContent(r *resource.Registry) {
	live := &liveChanges{}
	r.Extension(&store.Extension{Name: extensionName, State: live, Opened: live.open, Migrations: migrations, Verify: verifyContent,
		Follow: live.follow,
		Tables: []store.Table{
			{Name: "dhcp_server", Columns: []string{"server", "hash", "number"}, Key: 1},
			{Name: "dhcp_unit", Columns: []string{"server", "unit", "hash", "records"}, Key: 2},
			{Name: "dhcp_difference", Columns: []string{"server", "number", "from_hash", "to_hash", "data"}, Key: 2,
				Derived: "a server that is behind gets its whole content"},
			{Name: "dhcp_due", Columns: []string{"configuration", "what", "changed"}, Key: 2}}})
	r.Rule(resource.Rule{Types: []string{"Server", "HAServer"}, AfterWrite: renumber, BeforeDelete: deleteContent})
}

// Compression of stored data; both are safe for concurrent use.
var (
	packer, _   = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<30))
)

// deployed returns the revision of the content of a server; there is false if nothing was deployed to it.
func deployed(tx *store.Tx, server int64) (r content.Revision, there bool, err error) {
	err = tx.QueryRow("SELECT hash, number FROM dhcp_server WHERE server = ?", server).Scan(&r.Hash, &r.Number)
	if errors.Is(err, sql.ErrNoRows) {
		return r, false, nil
	}
	return r, err == nil, err
}

// Serves reports whether a network is deployed to a server.
func Serves(tx *store.Tx, server, network int64) (bool, error) {
	n := 0
	err := tx.QueryRow("SELECT count(*) FROM dhcp_unit WHERE server = ? AND unit = ?", server, dhcpdata.NetworkUnit(network)).Scan(&n)
	return n > 0, err
}

// ServersOf returns the servers that a network is deployed to.
func ServersOf(tx *store.Tx, network int64) (servers []int64, err error) {
	err = tx.Each(func(scan func(...any) error) error {
		var id int64
		err := scan(&id)
		servers = append(servers, id)
		return err
	}, "SELECT server FROM dhcp_unit WHERE unit = ? ORDER BY server", dhcpdata.NetworkUnit(network))
	return servers, err
}

// readUnit decodes the records of a unit.
func readUnit(tx *store.Tx, id string, packed []byte) (*dhcpdata.Unit, error) {
	text, err := unpacker.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("unit %s: %w", id, err)
	}
	var records []dhcpdata.Record
	if err := json.Unmarshal(text, &records); err != nil {
		return nil, fmt.Errorf("unit %s: %w", id, err)
	}
	if records, err = openRecords(tx, records); err != nil {
		return nil, fmt.Errorf("unit %s: %w", id, err)
	}
	return dhcpdata.NewUnit(id, records)
}

// packUnit encodes records.
func packUnit(tx *store.Tx, records []dhcpdata.Record) ([]byte, error) {
	records, err := sealRecords(tx, records)
	if err != nil {
		return nil, err
	}
	if records == nil {
		records = []dhcpdata.Record{}
	}
	text, err := json.Marshal(records)
	if err != nil {
		return nil, err
	}
	return packer.EncodeAll(text, []byte{}), nil
}

// unitsOf returns the deployed units of a server; with ids, only these.
func unitsOf(tx *store.Tx, server int64, ids ...string) (dhcpdata.Units, error) {
	packed := map[string][]byte{}
	read := func(scan func(...any) error) error {
		var id string
		var records []byte
		err := scan(&id, &records)
		packed[id] = slices.Clone(records)
		return err
	}
	var err error
	if ids == nil {
		err = tx.Each(read, "SELECT unit, records FROM dhcp_unit WHERE server = ?", server)
	}
	for _, id := range ids {
		err = errors.Join(err, tx.Each(read, "SELECT unit, records FROM dhcp_unit WHERE server = ? AND unit = ?", server, id))
	}
	units := dhcpdata.Units{}
	for id, records := range packed {
		if err == nil {
			units[id], err = readUnit(tx, id, records)
		}
	}
	return units, err
}

// unitChange is the change of a unit in a difference. From is the hash before it; empty for a new unit. To is empty for a deleted one.
type unitChange struct {
	From    string            `json:"from,omitempty"`
	To      string            `json:"to,omitempty"`
	Removed []dhcpdata.Record `json:"removed,omitempty"`
	Added   []dhcpdata.Record `json:"added,omitempty"`
}

// maxDifferences is the number of differences that are kept for a server.
const maxDifferences = 200

// storeUnits replaces units of a server: those of after, and those of before that after lacks are deleted. It returns the number of the new
// revision; 0 if nothing changed.
func storeUnits(tx *store.Tx, server int64, before, after dhcpdata.Units) (number int64, err error) {
	changes := map[string]unitChange{}
	for id, one := range before {
		if after[id] == nil {
			changes[id] = unitChange{From: one.Hash}
		}
	}
	for id, one := range after {
		c, old := unitChange{To: one.Hash}, []dhcpdata.Record(nil)
		if had := before[id]; had != nil {
			c.From, old = had.Hash, had.Records
		}
		if c.From != c.To {
			c.Removed, c.Added = dhcpdata.Diff(old, one.Records)
			changes[id] = c
		}
	}
	revision, there, err := deployed(tx, server)
	if err != nil || len(changes) == 0 && there {
		return 0, err
	}
	for _, id := range sortedKeys(changes) {
		if changes[id].To == "" {
			err = tx.Write("DELETE FROM dhcp_unit WHERE server = ? AND unit = ?", server, id)
		} else {
			var packed []byte
			if packed, err = packUnit(tx, after[id].Records); err == nil {
				err = tx.Write("INSERT INTO dhcp_unit (server, unit, hash, records) VALUES (?, ?, ?, ?) ON CONFLICT (server, unit) DO UPDATE SET"+
					" hash = excluded.hash, records = excluded.records", server, id, changes[id].To, packed)
			}
		}
		if err != nil {
			return 0, err
		}
	}
	hashes := map[string]string{}
	if err := tx.Each(func(scan func(...any) error) error {
		var id, hash string
		err := scan(&id, &hash)
		hashes[id] = hash
		return err
	}, "SELECT unit, hash FROM dhcp_unit WHERE server = ?", server); err != nil {
		return 0, err
	}
	hash := dhcpdata.Total(hashes).String()
	number = max(revision.Number+1, tx.Now().UnixMilli())
	if there {
		sealed, err := sealChanges(tx, changes)
		if err != nil {
			return 0, err
		}
		text, err := json.Marshal(sealed)
		if err != nil {
			return 0, err
		}
		if err := tx.Write("INSERT INTO dhcp_difference (server, number, from_hash, to_hash, data) VALUES (?, ?, ?, ?, ?)", server, number,
			revision.Hash, hash, packer.EncodeAll(text, []byte{})); err != nil {
			return 0, err
		}
		if err := tx.Write("DELETE FROM dhcp_difference WHERE server = ? AND number <= (SELECT number FROM dhcp_difference WHERE server = ?"+
			" ORDER BY number DESC LIMIT 1 OFFSET ?)", server, server, maxDifferences); err != nil {
			return 0, err
		}
	}
	tx.Touch(contentTopic)
	return number, tx.Write("INSERT INTO dhcp_server (server, hash, number) VALUES (?, ?, ?) ON CONFLICT (server) DO UPDATE SET"+
		" hash = excluded.hash, number = excluded.number", server, hash, number)
}

// Planner provides the content of DHCP servers to service points.
type Planner struct{}

// IsBehind reports whether a service point serves an older revision than it should.
func (Planner) IsBehind(tx *store.Tx, servicePoint, serves string) (bool, error) {
	to, there, err := Planner{}.revision(tx, servicePoint)
	if err != nil {
		return false, err
	}
	if !there {
		return serves != "" && serves != dhcpdata.EmptyRevision(), nil
	}
	from, err := content.ParseRevision(serves)
	if err != nil { // it serves nothing
		return true, nil //nolint:nilerr // see above
	}
	return from.Number < to.Number, nil
}

// revision returns the revision that a service point should serve.
func (Planner) revision(tx *store.Tx, servicePoint string) (r content.Revision, there bool, err error) {
	server, err := dhcp.ServerOfPoint(tx, servicePoint)
	if err != nil || server == nil {
		return r, false, err
	}
	return deployed(tx, server.ID)
}

// Write writes the change from a revision to the deployed one. It writes the whole content if from is empty, or if the differences since
// from are no longer stored.
func (Planner) Write(tx *store.Tx, servicePoint, from string, out io.Writer) error {
	server, err := dhcp.ServerOfPoint(tx, servicePoint)
	if err != nil {
		return err
	}
	there := false
	var to content.Revision
	if server != nil {
		if to, there, err = deployed(tx, server.ID); err != nil {
			return err
		}
	}
	if !there {
		return dhcpdata.WriteAll(out, dhcpdata.EmptyRevision(), nil)
	}
	if before, err := content.ParseRevision(from); err == nil && before.Number <= to.Number {
		changes, complete, err := netChanges(tx, server.ID, before, to.Hash)
		if err != nil {
			return err
		}
		if complete {
			return writeChanges(out, from, to.String(), changes)
		}
	}
	units, err := unitsOf(tx, server.ID)
	if err != nil {
		return err
	}
	return dhcpdata.WriteAll(out, to.String(), units)
}

// netChange is the sum of the changes of a unit.
type netChange struct {
	from, to string
	records  map[string]int
}

// netChanges returns the sum of the differences since a revision. complete is false if they are no longer stored, or if a unit was deleted
// and created again.
func netChanges(tx *store.Tx, server int64, since content.Revision, to string) (all map[string]*netChange, complete bool, err error) {
	all = map[string]*netChange{}
	last, complete := since.Hash, true
	var parts [][]byte
	if err := tx.Each(func(scan func(...any) error) error {
		var fromHash, toHash string
		var packed []byte
		if err := scan(&fromHash, &toHash, &packed); err != nil {
			return err
		}
		complete = complete && fromHash == last
		last = toHash
		parts = append(parts, slices.Clone(packed))
		return nil
	}, "SELECT from_hash, to_hash, data FROM dhcp_difference WHERE server = ? AND number > ? ORDER BY number", server,
		since.Number); err != nil {
		return nil, false, err
	}
	for _, packed := range parts {
		changes, err := openChanges(tx, packed)
		if err != nil {
			return nil, false, err
		}
		for id, c := range changes {
			one := all[id]
			if one == nil {
				one = &netChange{from: c.From, records: map[string]int{}}
				all[id] = one
			} else if one.to == "" { // deleted before
				complete = false
			}
			one.to = c.To
			for _, r := range c.Removed {
				one.records[string(r)]--
			}
			for _, r := range c.Added {
				one.records[string(r)]++
			}
		}
	}
	return all, complete && last == to, nil
}

// writeChanges writes a stream with changes.
func writeChanges(out io.Writer, from, to string, all map[string]*netChange) error {
	w := dhcpdata.NewWriter(out, from, to)
	for _, id := range sortedKeys(all) {
		one := all[id]
		switch {
		case one.to == "" && one.from != "":
			w.Deleted(id)
			continue
		case one.to == one.from:
			continue
		}
		w.Change(dhcpdata.Change{Unit: id, From: one.from, To: one.to})
		for _, r := range sortedKeys(one.records) {
			if one.records[r] < 0 {
				w.Removed(dhcpdata.Record(r))
			}
		}
		for _, r := range sortedKeys(one.records) {
			if one.records[r] > 0 {
				w.Added(dhcpdata.Record(r))
			}
		}
	}
	return w.Close()
}

// verifyContent compares the stored units with their hashes.
func verifyContent(tx *store.Tx, fault func(format string, args ...any)) error {
	hashes := map[int64]map[string]string{}
	type stored struct {
		server   int64
		id, hash string
		packed   []byte
	}
	var last stored
	for { // one unit at a time: together they may be large
		var next stored
		err := tx.QueryRow("SELECT server, unit, hash, records FROM dhcp_unit WHERE server > ? OR server = ? AND unit > ?"+
			" ORDER BY server, unit LIMIT 1", last.server, last.server, last.id).Scan(&next.server, &next.id, &next.hash, &next.packed)
		if errors.Is(err, sql.ErrNoRows) {
			break
		}
		if err != nil {
			return err
		}
		last = next
		if hashes[next.server] == nil {
			hashes[next.server] = map[string]string{}
		}
		hashes[next.server][next.id] = next.hash
		one, err := readUnit(tx, next.id, next.packed)
		if err != nil {
			fault("the DHCP content of server %d: %v", next.server, err)
			continue
		}
		if one.Hash != next.hash {
			fault("the DHCP content of server %d does not match the hash of unit %s", next.server, next.id)
		}
	}
	return tx.Each(func(scan func(...any) error) error {
		var server int64
		var hash string
		if err := scan(&server, &hash); err != nil {
			return err
		}
		if dhcpdata.Total(hashes[server]).String() != hash {
			fault("the DHCP content of server %d does not match its hash", server)
		}
		return nil
	}, "SELECT server, hash FROM dhcp_server")
}

// renumber gives a server a new revision number if its service point changes, so that the new service point fetches the content. It
// requests the leases of that service point.
func renumber(c *resource.Change) error {
	now, before := c.Type.TextOf(c.New, "servicePoint"), ""
	if c.Old != nil {
		before = c.Type.TextOf(c.Old, "servicePoint")
	}
	if now == before {
		return nil
	}
	h := schema.HeadOf(c.New)
	if err := c.Tx.Write("UPDATE dhcp_server SET number = ? WHERE server = ? AND number < ?", c.Tx.Now().UnixMilli(), h.ID,
		c.Tx.Now().UnixMilli()); err != nil || now == "" {
		return err
	}
	return queueRequest(c.Tx, h.Config, h.ID)
}

// deleteContent deletes the content of a server.
func deleteContent(c *resource.Change) error {
	c.Tx.Touch(contentTopic)
	for _, table := range []string{"dhcp_unit", "dhcp_server", "dhcp_difference"} {
		if err := c.Tx.Write("DELETE FROM "+table+" WHERE server = ?", schema.HeadOf(c.Old).ID); err != nil {
			return err
		}
	}
	return nil
}
