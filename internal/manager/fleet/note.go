package fleet

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"portolan/internal/engine/store"
)

type authorKey struct{}

// WithAuthor returns a context with the author of a request. Changes of the fleet made with this context appear in the history under that
// author.
func WithAuthor(ctx context.Context, author store.Author) context.Context {
	return context.WithValue(ctx, authorKey{}, author)
}

// authorOf returns the author of the request of a context. It is empty for the manager's own work.
func authorOf(ctx context.Context) store.Author {
	author, _ := ctx.Value(authorKey{}).(store.Author)
	return author
}

// addHistory adds an entry with an operation and a sentence to the history if the transaction has an author. Changes by the manager or a
// service point itself are recorded as events instead.
func addHistory(tx *store.Tx, operation, format string, args ...any) error {
	if tx.Author() == (store.Author{}) {
		return nil
	}
	plain := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) { // the text may contain a description typed by a user
			return ' '
		}
		return r
	}, fmt.Sprintf(format, args...))
	return tx.Note(operation, truncate(plain, maxNote))
}

// maxNote is the length limit of a sentence of the history, maxNoted that of a value in it, both in bytes.
const (
	maxNote  = 1_000
	maxNoted = 100
)

// truncate returns at most the first limit bytes of a text, without a partial character at its end.
func truncate(text string, limit int) string {
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
}

// addPointHistory is addHistory for a service point: its name is the first argument of format. It returns an error if the service point
// does not exist.
func addPointHistory(tx *store.Tx, id, operation, format string, args ...any) error {
	if tx.Author() == (store.Author{}) {
		return nil
	}
	var name string
	if err := tx.QueryRow("SELECT name FROM service_point WHERE id = ?", id).Scan(&name); err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			return UnknownProblem(id)
		}
		return err
	}
	return addHistory(tx, operation, format, append([]any{name}, args...)...)
}

// settings are the settings of a service point that a request can change, by the names used in the history.
type settings map[string]string

// settingsOf reads the settings that a change may affect.
func settingsOf(tx *store.Tx, id string, c InstanceChange) (settings, error) {
	var name, description, target, servers, anycast string
	var count int64
	if err := tx.QueryRow("SELECT name, coalesce(description, ''), target_version, ntp_servers, anycast, node_count FROM service_point "+
		"WHERE id = ?", id).Scan(&name, &description, &target, &servers, &anycast, &count); err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			return nil, UnknownProblem(id)
		}
		return nil, err
	}
	all := settings{"name": name, "description": description, "targetVersion": target, "ntpServers": servers, "anycast": anycast,
		"nodeCount": fmt.Sprint(count)}
	return all, tx.Each(func(scan func(...any) error) error {
		var label, value string
		err := scan(&label, &value)
		if _, asked := c.Labels[label]; asked {
			all["label "+label] = value
		}
		return err
	}, "SELECT name, value FROM label WHERE service_point = ?", id)
}

// diff describes the settings that differ: "label site: oslo -> bergen".
func (s settings) diff(now settings) string {
	both := maps.Clone(s)
	maps.Copy(both, now)
	var all []string
	value := func(from settings, name string) string {
		if from[name] == "" {
			return "none"
		}
		return truncate(from[name], maxNoted)
	}
	for _, name := range slices.Sorted(maps.Keys(both)) {
		switch {
		case s[name] == now[name]:
		case name == "anycast": // it contains passwords
			all = append(all, "anycast settings")
		default:
			all = append(all, fmt.Sprintf("%s: %s -> %s", name, value(s, name), value(now, name)))
		}
	}
	return strings.Join(all, ", ")
}

// withHistory calls change and adds a history entry with the settings that it changed. It adds none if nothing changed.
func withHistory(tx *store.Tx, id string, c InstanceChange, change func() error) error {
	if tx.Author() == (store.Author{}) {
		return change()
	}
	before, err := settingsOf(tx, id, c)
	if err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	now, err := settingsOf(tx, id, c)
	if err != nil {
		return err
	}
	if says := before.diff(now); says != "" {
		return addHistory(tx, "UPDATE_SERVICE_POINT", "Changed service point %s: %s", before["name"], says)
	}
	return nil
}
