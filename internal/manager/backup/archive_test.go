package backup_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/engine/store/archive"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/catalog"
	"portolan/internal/manager/fleet"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/model"
	"portolan/internal/manager/server"
	"portolan/internal/manager/webhook"
	"portolan/internal/manager/workflow"
	"portolan/internal/servicepoint/application/all"
	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/pgtest"
	"portolan/internal/wire/dhcpdata"

	"github.com/klauspost/compress/zstd"
)

func quiet(int64) {}

// started starts a manager.
func started(t *testing.T, o server.Options) *server.Manager {
	t.Helper()
	o.Listen, o.CheckinListen, o.AdminPassword, o.Version = "127.0.0.1:0", "127.0.0.1:0", "a password for tests", "test"
	o.Programs = all.Programs()
	o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	m, err := server.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// sample creates the data of a manager with the sample organisation and a service point.
func sample(t *testing.T, o server.Options) {
	t.Helper()
	m := started(t, o)
	if err := server.Sample(t.Context(), m.Address); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Fleet.Create(t.Context(), fleet.Wanted{Name: "quay", Endpoint: "https://x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Identity.CreateToken(t.Context(), identity.Grant{Name: "t", Role: authz.Analyst}); err != nil {
		t.Fatal(err)
	}
	var made int64
	for _, do := range []func(c *resource.Change) error{func(c *resource.Change) (err error) { // a change that is undone
		made, err = c.Tx.Number()
		if err == nil {
			x := &catalog.TagGroup{}
			x.Type, x.Name, x.Parent = "TagGroup", "for a while", resource.RootID
			_, err = c.Create(m.Address.TypeNamed(x.Type), x)
		}
		return err
	}, func(c *resource.Change) error { return c.Undo(made, false) }} {
		if err := m.Store.Update(t.Context(), store.Author{}, func(tx *store.Tx) error {
			return do(&resource.Change{Tx: tx, API: m.Address, SetFields: map[string]bool{}, Extra: map[string]string{}})
		}); err != nil {
			t.Fatal(err)
		}
	}
	for deadline, heads := time.Now().Add(time.Minute),
		0; heads == 0; time.Sleep(20 * time.Millisecond) { // until the history is linked and signed
		if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
			return tx.QueryRow("SELECT count(*) FROM history_head").Scan(&heads)
		}); err != nil || time.Now().After(deadline) {
			t.Fatalf("%d heads signed, %v", heads, err)
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	// Rows for each copied table that the sample leaves empty. No manager is running that would act on them.
	s, err := store.Open(store.Options{Layout: model.Layout(), Dir: o.Data})
	if err != nil {
		t.Fatal(err)
	}
	unit, err := dhcpdata.NewUnit(dhcpdata.ServerUnit, nil)
	if err != nil {
		t.Fatal(err)
	}
	packer, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	packedUnit := packer.EncodeAll([]byte("[]"), nil)
	if err := s.Update(t.Context(), store.Author{}, func(tx *store.Tx) error { // as if it had checked in
		return cmp.Or(tx.Write("INSERT INTO presence (service_point, last_seen, connected) SELECT id, 7, 1 FROM service_point"),
			tx.Write("INSERT INTO application (id, service_point, name, version, status, configuration, generation, created) "+
				"SELECT 'a', id, 'http-probe-service', '1', 'HEALTHY', '{}', 2, 7 FROM service_point"),
			tx.Write("INSERT INTO lineage (service_point, node, process, body) SELECT id, 1, 'p', '{}' FROM service_point"),
			tx.Write("INSERT INTO stream (service_point, node, application, kind, spool, next) "+
				"SELECT id, 1, '', 'events', 's', 2 FROM service_point"),
			tx.Write("INSERT INTO dhcp_lease (id, type, parent, configuration, low, high, version, body, state, server) "+
				"SELECT 990001, 'DHCPv4Lease', id, configuration, low, low, 1, '{}', 'DHCP_FREE', 1 FROM resource "+
				"WHERE collection = 'networks' AND type = 'IPv4Network' ORDER BY id LIMIT 1"),
			tx.Write("INSERT INTO dhcp_lease_page (configuration, first, ends) VALUES (1, ?, ?)", []byte{0}, []byte{1, 0, 0, 0, 1}),
			tx.Write("INSERT INTO dhcp_lease_span (id, parent, configuration, low, high, version, body, start)"+
				" VALUES (990002, 1, 1, ?, ?, 1, '{}', 7)",
				[]byte{0}, []byte{0}),
			tx.Write("INSERT INTO dhcp_lease_import (id, configuration, low, data) VALUES (4, 1, ?, '{}')", []byte{4, 10, 0, 0, 1}),
			tx.Write("INSERT INTO dhcp_lease_history (container, samples) VALUES (1, ?)", []byte{0, 0, 0, 1, 0, 0, 0, 1}),
			tx.Write("INSERT INTO dhcp_refused_client (id, parent, configuration, version, body, identity, last)"+
				" SELECT 990003, id, configuration, 1, '{}', 'i', 7 FROM resource WHERE collection = 'networks' ORDER BY id LIMIT 1"),
			tx.Write("INSERT INTO observation (id, parent, configuration, low, high, version, body)"+
				" SELECT 990005, id, configuration, low, low, 1, '{}' FROM resource WHERE collection = 'networks' ORDER BY id LIMIT 1"),
			tx.Write("INSERT INTO dhcp_refused_count (id, parent, configuration, version, body, identity, day, n)"+
				" SELECT 990004, id, configuration, 1, '{}', 'i', 7, 1 FROM resource WHERE collection = 'networks' ORDER BY id LIMIT 1"),
			tx.Write("INSERT INTO telemetry_event (id, service, at, body) VALUES (1, 1, 7, '{}')"),
			tx.Write("INSERT INTO dhcp_lease_mark (server, node, journal, sequence) VALUES (1, 1, 'j', 3)"),
			tx.Write("INSERT INTO dhcp_server (server, hash, number) VALUES (1, ?, 3)",
				dhcpdata.Total(map[string]string{"server": unit.Hash}).String()),
			tx.Write("INSERT INTO dhcp_unit (server, unit, hash, records) VALUES (1, 'server', ?, ?)", unit.Hash, packedUnit),
			tx.Write("INSERT INTO dhcp_due (configuration, what, changed) VALUES (1, 1, 7)"),
			tx.Write("INSERT INTO deleted_service_point (id) VALUES ('gone')"),
			tx.Write("INSERT INTO spent_key (key_hash, until) VALUES ('k', 99999999999)"),
			tx.Write("INSERT INTO node (service_point, number, key_public) SELECT id, 1, 'p' FROM service_point"),
			tx.Write("INSERT INTO label (service_point, name, value) SELECT id, 'site', 'oslo' FROM service_point"),
			tx.Write("INSERT INTO rollout (id, created, version, plan, status) VALUES ('r', 7, '2', '{\"version\":\"2\"}', 'DONE')"),
			tx.Write("INSERT INTO rollout_member (rollout, service_point, wave, state) SELECT 'r', id, 0, 'UPDATED' FROM service_point"),
			tx.Write("INSERT INTO report (service_point, sequence, digest, body) SELECT id, 3, 'd', '{}' FROM service_point"))
	}); err != nil {
		t.Fatal(err)
	}
	api := model.NewAPI(s)
	if err := s.Update(t.Context(), store.Author{Name: "test"}, func(tx *store.Tx) error {
		var network int64
		if err := tx.QueryRow("SELECT id FROM resource WHERE collection = 'networks' ORDER BY id LIMIT 1").Scan(&network); err != nil {
			return err
		}
		for _, statement := range []string{`INSERT INTO event (id, source, user_id, body) VALUES (1, 100, 0, '{"message":"it happened"}')`,
			"INSERT INTO marker (name, value) VALUES ('a marker', '1')"} {
			if err := tx.Write(statement); err != nil {
				return err
			}
		}
		if err := tx.Write("INSERT INTO file_part (hash, number, data) VALUES ('h', 1, ?)", []byte("content")); err != nil {
			return err
		}
		if err := tx.Write("INSERT INTO tftp_tree (server, number, hash, manifest) VALUES (1, 2, 'h', ?)", []byte("{}")); err != nil {
			return err
		}
		if err := tx.Write("INSERT INTO import_part (import, number, data) VALUES (7, 1, ?)", []byte("name")); err != nil {
			return err
		}
		for _, statement := range []string{
			"INSERT INTO dns_zone (zone, configuration, serial, hash, records, number, complete) VALUES ('1/a', 1, 2, '" +
				strings.Repeat("0", 64) + "', 3, 4, 5)",
			"INSERT INTO dns_server (server, settings, settings_number, hash, number) VALUES (1, '{}', 2, 'h', 3)",
			"INSERT INTO dns_served (server, zone, number) VALUES (1, '1/a', 2)",
			"INSERT INTO dynamic_address (address) VALUES (7)",
			"INSERT INTO import_met (import, resource, at) VALUES (7, 8, 'line 1')",
			"INSERT INTO dns_key (zone, tag, published, parent, signing, warned) VALUES ('1/a', 2, 3, 4, 5, 0)",
			"INSERT INTO dns_copy (zone, configuration, refreshed, expired, notified) VALUES ('1/b', 1, 3, 0, 0)",
			"INSERT INTO dns_due (configuration, kind, what, changed) VALUES (1, 'name', 'a', 2)",
			"INSERT INTO deployment_wait (deployment, server, number, until, state, message) VALUES (1, 2, 3, 4, 's', 'm')",
			"INSERT INTO sweep_finding (policy, address, kind, since) VALUES (1, '10.0.0.1', 'unknown', 2)",
			"INSERT INTO timetable (schedule, version, next, last, since) VALUES (1, 2, 3, 4, 5)",
			"INSERT INTO deployment_record (deployment, kind, record) VALUES (1, 'added', 2)",
			"INSERT INTO history_base (place, txn, at, hash, public, signature) SELECT 0, txn, at, hash, public," +
				" signature FROM history_head LIMIT 1",
			"INSERT INTO credential_used (id, used) SELECT id, 7 FROM credential WHERE kind = 'bearer'",
			"INSERT INTO user_preference (user_id, name, value, changed) SELECT id, 'a', '{}', 7 FROM resource WHERE collection = 'users'",
			"INSERT INTO deployment_deleted (id, collection, type, parent, configuration, version, refs, body) VALUES (9, 'resourceRecords', " +
				"'TXTRecord', 2, 1, 3, '', '{}')",
		} {
			if err := tx.Write(statement); err != nil {
				return err
			}
		}
		if err := tx.Write("INSERT INTO dns_part (zone, first, data) VALUES ('1/a', ?, ?)", []byte("k"), []byte{}); err != nil {
			return err
		}
		if err := tx.Write("INSERT INTO import_line (import, number, line) VALUES (7, 1, 'l')"); err != nil {
			return err
		}
		if err := tx.Write("INSERT INTO name_number (value, last) VALUES (7, 9)"); err != nil {
			return err
		}
		if err := tx.Write("INSERT INTO import_starter (import, user_id, token, name) VALUES (7, 1, '', 'n')"); err != nil {
			return err
		}
		if err := tx.Write("INSERT INTO idempotency (user_id, key, request, location, etag, answer, created) VALUES (1, 'k', 'r', 'l', 'e', "+
			"?, 99999999999)", []byte("a")); err != nil {
			return err
		}
		typ, _ := api.Type("Webhook")
		hook := typ.New().(*webhook.Webhook)
		hook.Type, hook.Name, hook.URL, hook.Enabled = typ.Name, "w", "http://127.0.0.1:9/", false
		hook.Secret = "whsec_" + strings.Repeat("QUJD", 8)
		c := resource.Change{Tx: tx, API: api, SetFields: map[string]bool{}, Extra: map[string]string{}}
		if _, err := c.Create(typ, hook); err != nil {
			return err
		}
		asking, _ := api.Type("WorkflowRequest")
		request := asking.New().(*workflow.WorkflowRequest)
		request.Type, request.Parent, request.State = asking.Name, resource.RootID, "PENDING"
		row, err := c.Create(asking, request)
		if err != nil {
			return err
		}
		if err := cmp.Or(tx.Write("INSERT INTO workflow_hold (request, collection, scope, key, high) VALUES (?, 'zones', 2, 'k', '')", row.ID),
			tx.Write("INSERT INTO workflow_asked (request, token, asked) VALUES (?, '', '{}')", row.ID)); err != nil {
			return err
		}
		return tx.Write("INSERT INTO water (container, level) VALUES (?, 'HIGH') ON CONFLICT (container) DO UPDATE SET level = excluded.level",
			network)
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, o store.Options) *store.Store {
	t.Helper()
	s, err := store.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// saved writes an archive of a database.
func saved(t *testing.T, s *store.Store) ([]byte, archive.Summary) {
	t.Helper()
	var b bytes.Buffer
	sum, err := archive.Write(t.Context(), s, &b, "test", quiet)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), sum
}

// content returns a backup without its head, which contains the time.
func content(t *testing.T, file []byte) string {
	t.Helper()
	z, err := zstd.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n")
	rest, _, _ = strings.Cut(rest, `{"end":`)
	return rest
}

// TestCopyToPostgreSQLAndBack checks that data copied from SQLite to PostgreSQL and back is identical to the byte, passes verification, and
// can be changed.
func TestCopyToPostgreSQLAndBack(t *testing.T) {
	apitest.OnSQLite(t)
	from := t.TempDir()
	sample(t, server.Options{Data: from})
	first, sum := saved(t, open(t, store.Options{Layout: model.Layout(), Dir: from}))
	if sum.Counts["resource"] < 10000 || sum.Counts["service_point"] != 1 {
		t.Errorf("the backup contains %v", sum.Counts)
	}
	for _, table := range model.Layout().ListCarried() {
		if sum.Counts[table.Name] == 0 {
			t.Errorf("the sample has no rows in %s, so their loss would not be detected", table.Name)
		}
	}
	url := pgtest.URL(t)
	if _, err := archive.Restore(t.Context(), store.Options{Layout: model.Layout(), Database: url}, bytes.NewReader(first),
		quiet); err != nil {
		t.Fatal(err)
	}
	pg := open(t, store.Options{Layout: model.Layout(), Database: url})
	verify(t, pg)
	second, _ := saved(t, pg)
	if content(t, first) != content(t, second) {
		t.Error("the backup from PostgreSQL differs from the original")
	}
	if _, err := archive.Restore(t.Context(), store.Options{Layout: model.Layout(), Database: url}, bytes.NewReader(first),
		quiet); !errors.Is(err,
		store.ErrNotEmpty) {
		t.Errorf("restoring to a database with data returned %v", err)
	}
	dir := t.TempDir()
	if _, err := archive.Restore(t.Context(), store.Options{Layout: model.Layout(), Dir: dir, Exclusive: true}, bytes.NewReader(second),
		quiet); err != nil {
		t.Fatal(err)
	}
	back := open(t, store.Options{Layout: model.Layout(), Dir: dir, Exclusive: true})
	verify(t, back)
	for _, s := range []*store.Store{pg, back} { // new numbers follow the copied ones
		api := model.NewAPI(s)
		if err := s.Update(context.Background(), store.Author{}, func(tx *store.Tx) error {
			return tx.Insert(&store.Resource{Collection: "users", Type: "User", Name: "x", Body: []byte(`{"email":"x"}`)})
		}); err != nil {
			t.Error(err)
		}
		_ = api
		verify(t, s)
	}
}

func verify(t *testing.T, s *store.Store) {
	t.Helper()
	api := model.NewAPI(s)
	if err := s.View(t.Context(), func(tx *store.Tx) error {
		faults, err := api.Verify(tx)
		for _, f := range faults {
			t.Error(f)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedFiles checks that a file with a wrong bit, a truncated file and a file of a newer version are rejected and leave nothing
// behind.
func TestDamagedFiles(t *testing.T) {
	apitest.OnSQLite(t)
	dir := t.TempDir()
	if err := started(t, server.Options{Data: dir}).Close(); err != nil {
		t.Fatal(err)
	}
	file, _ := saved(t, open(t, store.Options{Layout: model.Layout(), Dir: dir}))
	pack := func(text string) []byte {
		var b bytes.Buffer
		z, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := z.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	z, err := zstd.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	plain := string(text)
	flipped := bytes.Clone(file)
	flipped[len(flipped)/2] ^= 1
	for what, c := range map[string]struct {
		file []byte
		want string
	}{
		"nothing":         {nil, "damaged"},
		"something else":  {[]byte("something else"), "not a backup"},
		"cut short":       {file[:len(file)/2], "damaged"},
		"a flipped bit":   {flipped, ""},
		"a changed value": {pack(strings.Replace(plain, "admin", "owner", 1)), "does not match its hash"},
		"a row less": {pack(strings.Replace(plain, plain[strings.Index(plain,
			"\n{\"t\":\"resource\""):][:strings.Index(plain[strings.Index(plain, "\n{\"t\":\"resource\"")+1:], "\n")+1], "", 1)),
			"does not match its hash"},
		"longer than it should be": {pack(plain + "{}\n"), "after its end"},
		"without its end":          {pack(plain[:strings.Index(plain, `{"end":`)]), "ends too early"},
		"of a newer portolan": {pack(strings.Replace(plain, fmt.Sprintf(`"schema":%d`, model.Layout().Version()), `"schema":99`, 1)),
			"newer portolan"},
		"of a newer form":       {pack(strings.Replace(plain, `"format":1`, `"format":2`, 1)), "newer portolan"},
		"with an unknown table": {pack(strings.Replace(plain, `{"t":"resource"`, `{"t":"nonsense"`, 1)), "unknown table"},
	} {
		dir := t.TempDir()
		_, err := archive.Restore(t.Context(), store.Options{Layout: model.Layout(), Dir: dir, Exclusive: true}, bytes.NewReader(c.file), quiet)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("a file that is %s returned %v, want %q", what, err, c.want)
		}
		if _, sum := saved(t, open(t, store.Options{Layout: model.Layout(), Dir: dir})); sum.Rows() != 0 {
			t.Errorf("a file that is %s left %v", what, sum.Counts)
		}
	}
}

// TestVerify checks that untrusted files are read with limited memory and until the context ends. A valid file is read to its end.
func TestVerify(t *testing.T) {
	apitest.OnSQLite(t)
	dir := t.TempDir()
	sample(t, server.Options{Data: dir})
	s := open(t, store.Options{Layout: model.Layout(), Dir: dir})
	file, sum := saved(t, s)
	layout := s.Layout()
	if got, err := archive.Verify(t.Context(), layout, bytes.NewReader(file)); err != nil || got.Rows() != sum.Rows() {
		t.Errorf("%d rows of %d: %v", got.Rows(), sum.Rows(), err)
	}
	packed := func(write func(w io.Writer)) *bytes.Reader {
		t.Helper()
		var b bytes.Buffer
		z, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		write(z)
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return bytes.NewReader(b.Bytes())
	}
	z, err := zstd.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(text), "\n")
	endless := packed(func(w io.Writer) {
		part := bytes.Repeat([]byte("a"), 1<<20)
		_, _ = io.WriteString(w, head+"\n")
		for range 72 {
			_, _ = w.Write(part)
		}
	})
	if _, err := archive.Verify(t.Context(), layout, endless); err == nil || !strings.Contains(err.Error(), "a line of more than") {
		t.Errorf("a line without an end returned %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := archive.Verify(ctx, layout, bytes.NewReader(file)); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled verification returned %v", err)
	}
}
