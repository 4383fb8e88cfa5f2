package store

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Verify checks the store's own tables and those of the extensions, and calls fault for each fault with a sentence.
func (tx *Tx) Verify(fault func(format string, args ...any)) error {
	for _, check := range []func(func(string, ...any)) error{tx.databaseFaults, tx.referencesFaults, tx.historyFaults, tx.chainFaults,
		tx.imagesFaults,
		tx.originFaults, tx.totalsFaults, tx.trigramFaults} {
		if err := tolerate(tx.RunShielded(func() error { return check(fault) }), fault); err != nil {
			return err
		}
	}
	for _, e := range tx.store.layout.Extensions {
		if e.Verify == nil {
			continue
		}
		if err := tx.RunShielded(func() error { return e.Verify(tx, fault) }); err != nil {
			if err := tolerate(fmt.Errorf("verify %s: %w", e.Name, err), fault); err != nil {
				return err
			}
		}
	}
	return nil
}

// tolerate reports an error caused by damage as a fault, so that the following checks still run. It returns other errors.
func tolerate(err error, fault func(string, ...any)) error {
	if !IsDamage(err) {
		return err
	}
	fault("not checked because the database is damaged there: %v", err)
	return nil
}

// ReportFaults reports every row of a query as a fault. The query selects a number and a text, which are the arguments of format.
func (tx *Tx) ReportFaults(fault func(string, ...any), format, query string, args ...any) error {
	return tx.Each(func(scan func(...any) error) error {
		var id int64
		var text string
		if err := scan(&id, &text); err != nil {
			return err
		}
		fault(format, id, text)
		return nil
	}, query, args...)
}

// databaseFaults reports the faults that the database finds in its own storage.
func (tx *Tx) databaseFaults(fault func(string, ...any)) error {
	damage, err := tx.Damage()
	for _, text := range damage {
		fault("the database is damaged: %s", text)
	}
	return err
}

func (tx *Tx) referencesFaults(fault func(string, ...any)) error {
	if err := tx.ReportFaults(fault, "the reference %[2]s of resource %[1]d has a target that does not exist",
		"SELECT f.source, f.field FROM reference f LEFT JOIN resource r ON r.id = f.target WHERE r.id IS NULL"); err != nil {
		return err
	}
	return tx.ReportFaults(fault, "the reference %[2]s has the source %[1]d, which does not exist",
		"SELECT f.source, f.field FROM reference f LEFT JOIN resource r ON r.id = f.source WHERE r.id IS NULL")
}

// orphans selects changes without a transaction. firstAndLast selects transactions whose first and last change are wrong; noChanges is
// expected if there are none. On SQLite, with its possibly outdated statistics, the queries force a look-up of each transaction. SQLite
// might run a join as a full scan for each row.
var (
	noChangesText = strconv.Itoa(noChanges)
	orphans       = SQL{SQLite: "SELECT seq, CAST(txn AS TEXT) FROM change WHERE txn NOT IN (SELECT id FROM txn)",
		PostgreSQL: "SELECT c.seq, CAST(c.txn AS TEXT) FROM change c LEFT JOIN txn t ON t.id = c.txn WHERE t.id IS NULL"}
	firstAndLast = SQL{SQLite: "SELECT t.id, t.operation FROM txn t WHERE t.id NOT IN (?, ?) AND (" +
		"t.first <> coalesce((SELECT min(seq) FROM change WHERE txn = t.id), " + noChangesText + ") OR " +
		"t.last <> coalesce((SELECT max(seq) FROM change WHERE txn = t.id), " + noChangesText + "))",
		PostgreSQL: "SELECT t.id, t.operation FROM txn t LEFT JOIN (SELECT txn, min(seq) AS first, max(seq) AS last FROM change GROUP BY txn) c" +
			" ON c.txn = t.id WHERE t.id NOT IN (?, ?) AND (coalesce(c.first, " + noChangesText + ") <> t.first OR coalesce(c.last, " +
			noChangesText + ") <> t.last)"}
)

// historyFaults checks that transactions and changes match, and that every number was assigned.
func (tx *Tx) historyFaults(fault func(string, ...any)) error {
	for _, check := range []struct{ format, query, mark string }{
		{"change %d belongs to transaction %s, which does not exist",
			tx.SQL(orphans), ""},
		{"transaction %d, %s, names the wrong first or last change", tx.SQL(firstAndLast), "horizon"},
		{"resource %d of type %s has a number that was never assigned", "SELECT id, type FROM resource WHERE id > ?", "resource"},
		{"transaction %d, %s, has a number that was never assigned", "SELECT id, operation FROM txn WHERE id > ?", "txn"},
		{"change %d, %s, has a number that was never assigned", "SELECT seq, operation FROM change WHERE seq > ?", "change"},
	} {
		var args []any
		switch check.mark {
		case "":
		case "horizon": // transactions at the horizon may be kept in part
			horizon, err := tx.Horizon()
			if err != nil {
				return err
			}
			base, err := tx.chainBase()
			if err != nil {
				return err
			}
			args = append(args, horizon.Transaction, base.Transaction)
		default:
			mark, err := tx.Mark(check.mark)
			if err != nil {
				return err
			}
			args = append(args, mark)
		}
		if err := tx.ReportFaults(fault, check.format, check.query, args...); err != nil {
			return err
		}
	}
	// Undo transactions of earlier releases do not contain what they undid. An undone transaction can be undone again after its undo was
	// undone.
	const undoes = "CAST(json_extract(t.body, '$.undoes') AS TEXT)"
	if err := tx.ReportFaults(fault, "transaction %d undid transaction %s, which is not recorded as undone", "SELECT t.id, "+undoes+
		" FROM txn t WHERE t.operation = 'UNDO' AND "+undoes+" IS NOT NULL AND NOT EXISTS (SELECT 1 FROM reverting r"+
		" WHERE CAST(r.txn AS TEXT) = "+
		undoes+") AND EXISTS (SELECT 1 FROM txn o WHERE CAST(o.id AS TEXT) = "+undoes+")"); err != nil {
		return err
	}
	if err := tx.ReportFaults(fault,
		"transaction %d is recorded as undone by transaction %s, which did not undo it", "SELECT r.txn, CAST(r.undo AS TEXT)"+
			" FROM reverting r JOIN txn t ON t.id = r.undo WHERE t.operation <> 'UNDO' OR "+undoes+" <> CAST(r.txn AS TEXT)"); err != nil {
		return err
	}
	return tx.ReportFaults(fault, "transaction %d is recorded as undone%s, but it or its undo does not exist",
		"SELECT r.txn, '' FROM reverting r LEFT JOIN txn t ON t.id = r.txn LEFT JOIN txn u ON u.id = r.undo WHERE t.id IS NULL OR u.id IS NULL")
}

// imagesFaults checks that every image of the history, and every transaction, is JSON.
func (tx *Tx) imagesFaults(fault func(string, ...any)) error {
	for _, what := range [][2]string{{"an image of change %d is not JSON", "SELECT seq, before, after FROM change"},
		{"transaction %d is not JSON", "SELECT id, body, NULL FROM txn"}} {
		if err := tx.Stream(func(scan func(...any) error) error {
			var id int64
			var texts [2][]byte
			if err := scan(&id, &texts[0], &texts[1]); err != nil {
				return err
			}
			for _, text := range texts {
				if text != nil && !json.Valid(text) {
					fault(what[0], id)
				}
			}
			return nil
		}, what[1]); err != nil {
			return err
		}
	}
	return nil
}

// originFaults checks that the feed has one origin with a name.
func (tx *Tx) originFaults(fault func(string, ...any)) error {
	var origins, named int64
	if err := tx.QueryRow("SELECT count(*), count(NULLIF(id, '')) FROM origin").Scan(&origins, &named); err != nil {
		return err
	}
	if origins != 1 || named != 1 {
		fault("the change feed has %d origins, %d of them with a name", origins, named)
	}
	return nil
}
