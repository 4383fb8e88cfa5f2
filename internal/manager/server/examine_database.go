package server

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"portolan/internal/engine/store"
)

// examineClock returns the finding about this machine's clock, which certificates and signatures depend on.
func examineClock() Finding {
	f := Finding{What: "clock", Is: time.Now().UTC().Format(time.RFC3339)}
	switch follows, known := clockFollows(); {
	case !known:
		f.Is += ", of this machine"
	case follows:
		f.Is += ", synchronized with time servers"
	default:
		f.Is += "; the kernel reports that it is not synchronized"
		f.Do = "synchronize the clock (chronyc tracking, timedatectl); certificates and signatures depend on it"
	}
	return f
}

// setting is a PostgreSQL setting that a manager depends on.
type setting struct {
	name string
	// good reports whether a value is sufficient; remedy is the remedy, with the consequence of the present value.
	good   func(value string) bool
	remedy string
}

func isOn(value string) bool { return value != "off" }

// postgresSettings are the checked settings (docs/scale.md).
var postgresSettings = []setting{
	{"fsync", isOn, "set fsync = on: without it a crash of the machine loses the database"},
	{"full_page_writes", isOn, "set full_page_writes = on: without it a crash of the machine damages the database"},
	{"synchronous_commit", isOn, "set synchronous_commit = on: with off an acknowledged change can be lost"},
	{"max_connections", func(value string) bool { n, err := strconv.Atoi(value); return err == nil && n >= 40 },
		"set max_connections to 40 for each manager, and more for administrators"},
	{"autovacuum", isOn, "set autovacuum = on: without it tables grow and queries become slow"},
}

// examineSettings checks the settings of a database.
func examineSettings(ctx context.Context, s *store.Store, postgres bool) (all []Finding) {
	if !postgres {
		var mode string
		if err := s.View(ctx, func(tx *store.Tx) error { return tx.QueryRow("PRAGMA journal_mode").Scan(&mode) }); err != nil {
			return []Finding{{"settings", err.Error(), "check the permissions of the file", true}}
		}
		f := Finding{What: "settings", Is: "journal_mode " + mode}
		if !strings.EqualFold(mode, "wal") {
			f.Do = "start the manager once: it sets WAL, which concurrent readers need, and which network file systems do not support"
		}
		return []Finding{f}
	}
	values := map[string]string{}
	names := make([]string, len(postgresSettings))
	for i, one := range postgresSettings {
		names[i] = "'" + one.name + "'"
	}
	if err := s.View(ctx, func(tx *store.Tx) error {
		return tx.Each(func(scan func(...any) error) error {
			var name, value string
			err := scan(&name, &value)
			values[name] = value
			return err
		}, "SELECT name, setting FROM pg_settings WHERE name IN ("+strings.Join(names, ",")+")")
	}); err != nil {
		return []Finding{{"settings", err.Error(), "check that the database answers (psql)", true}}
	}
	good := ""
	for _, one := range postgresSettings {
		if value := values[one.name]; one.good(value) {
			good += fmt.Sprintf(", %s %s", one.name, value)
		} else {
			all = append(all, Finding{"settings", one.name + " is " + value, one.remedy, false})
		}
	}
	return append(all, Finding{What: "settings", Is: strings.TrimPrefix(good, ", ")})
}
