package test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"portolan/internal/manager/model"
	"portolan/internal/testkit/pgtest"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"
)

// testdata/schema has, by its number, a database of every schema that was released: as a SQLite file,
// as pg_dump writes it, and as a backup. Each holds the same network, made by the portolan of its time.

func unpack(t *testing.T, path string) []byte {
	t.Helper()
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	data, err := z.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestUpgrades migrates a database of every released schema. Its data is complete, its tokens are valid, and it accepts changes. Outside of
// CI, PostgreSQL and the backups have the oldest and the newest released schema: the oldest passes all migrations.
func TestUpgrades(t *testing.T) {
	t.Parallel()
	schemas, err := filepath.Glob("testdata/schema/*")
	older := model.Layout().Version() - 1
	if err != nil || len(schemas) != older && len(schemas) != older+1 { // the one that a migration needs may be kept before the migration
		t.Fatalf("there are %d kept schemas and %d older than the newest (%v)", len(schemas), older, err)
	}
	complete := os.Getenv("PORTOLAN_TEST_ALL") != ""
	for _, dir := range schemas {
		oldestOrNewest := slices.Contains([]string{"1", strconv.Itoa(len(schemas))}, filepath.Base(dir))
		for name, upgrade := range map[string]func(t *testing.T, dir string){
			"SQLite": upgradeFile, "PostgreSQL": upgradePostgres,
			"backup to SQLite":     func(t *testing.T, dir string) { restored(t, dir, "--data", filepath.Join(t.TempDir(), "data")) },
			"backup to PostgreSQL": func(t *testing.T, dir string) { restored(t, dir, "--database", pgtest.URL(t)) },
		} {
			if name != "SQLite" && !complete && !oldestOrNewest {
				continue
			}
			t.Run(filepath.Base(dir)+"/"+name, func(t *testing.T) {
				t.Parallel()
				upgrade(t, dir)
			})
		}
	}
}

// upgradeFile upgrades a SQLite file.
func upgradeFile(t *testing.T, dir string) {
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "portolan.db"), unpack(t, dir+"/portolan.db.zst"), 0o600); err != nil {
		t.Fatal(err)
	}
	upgraded(t, dir, "--data", data)
}

// upgradePostgres upgrades a database of PostgreSQL.
func upgradePostgres(t *testing.T, dir string) {
	url := pgtest.URL(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.PgConn().Exec(t.Context(), string(unpack(t, dir+"/postgres.sql.zst"))).ReadAll(); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	upgraded(t, dir, "--database", url)
}

func restored(t *testing.T, dir string, where ...string) {
	t.Helper()
	(&manager{t: t}).portolan(append([]string{"restore", dir + "/backup"}, where...)...)
	upgraded(t, dir, where...)
}

// upgraded serves the data and looks at it.
func upgraded(t *testing.T, dir string, where ...string) {
	t.Helper()
	m := &manager{t: t, dir: t.TempDir(), where: where}
	m.listen() // which brings the schema up to date
	token, err := os.ReadFile(dir + "/token")
	if err != nil {
		t.Fatal(err)
	}
	m.token = strings.TrimSpace(string(token))
	for path, want := range map[string]string{
		"/networks?fields=range&orderBy=asc(id)":                  `{"range":"10.1.0.0/24"},{"range":"2001:db8:1::/64"}`,
		"/addresses?fields=address&filter=name:in('a1','a2')":     `{"address":"10.1.0.2"},{"address":"10.1.0.3"}`,
		"/resourceRecords?fields=absoluteName&orderBy=asc(name)":  `{"absoluteName":"t.example"},{"absoluteName":"www.example"}`,
		"/transactions?fields=operation&limit=1&orderBy=desc(id)": `"operation":"`,
		"/webhooks": `"count":0`,
		"/deploymentOptionDefinitions?fields=name&filter=name:'delegated-prefix-length'": `{"name":"delegated-prefix-length"}`,
	} {
		if status, text, err := m.call("GET", path, ""); err != nil || status != 200 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s %v, want %s", path, status, text, err, want)
		}
	}
	if status, text, err := call(t.Context(), "GET", "http://"+m.api+"/user/api/v1/fleetInstances?status=HEALTHY", m.token, ""); err != nil ||
		status != 200 {
		t.Errorf("the fleet: %d %s %v", status, text, err)
	}
	if status, text, err := call(t.Context(), "POST", "http://"+m.api+"/api/v1/fleetInstanceMinimumConfig", m.token,
		`{"name":"after the upgrade"}`); err != nil || status != 202 {
		t.Errorf("a new service point: %d %s %v", status, text, err)
	}
	m.id("/configurations", `{"name":"after the upgrade"}`)
	if got := m.check(); got != "no faults found" {
		t.Errorf("check: %s", got)
	}
}
