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

// By gives a context of a request with who sends it: what it changes of the fleet stands in the history under that name.
func By(ctx context.Context, author store.Author) context.Context {
	return context.WithValue(ctx, authorKey{}, author)
}

// authorOf is who has sent the request of a context; of what the manager does by itself nobody.
func authorOf(ctx context.Context) store.Author {
	author, _ := ctx.Value(authorKey{}).(store.Author)
	return author
}

// noted has a change that somebody has asked for stand in the history: an operation, and a sentence. Of what the manager, or a service
// point, does by itself the events of the service point tell.
func addHistory(tx *store.Tx, operation, format string, args ...any) error {
	if tx.Author() == (store.Author{}) {
		return nil
	}
	plain := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) { // of a description that somebody else has typed
			return ' '
		}
		return r
	}, fmt.Sprintf(format, args...))
	return tx.Note(operation, truncate(plain, maxNote))
}

// maxNote bounds a sentence of the history, maxNoted a value in it, in bytes.
const (
	maxNote  = 1_000
	maxNoted = 100
)

// cut is the beginning of a text, of so many bytes at most.
func truncate(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// notedOf is noted of a service point that is there: args are its name, and those that are given.
func addPointHistory(tx *store.Tx, id, operation, format string, args ...any) error {
	if tx.Author() == (store.Author{}) {
		return nil
	}
	var name string
	if err := tx.QueryRow("SELECT name FROM service_point WHERE id = ?", id).Scan(&name); err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			return Unknown(id)
		}
		return err
	}
	return addHistory(tx, operation, format, append([]any{name}, args...)...)
}

// settings are what requests change of a service point, as the history tells of them, by their names.
type settings map[string]string

// settingsOf reads those that a change is about.
func settingsOf(tx *store.Tx, id string, c InstanceChange) (settings, error) {
	var name, description, target, servers, anycast string
	var count int64
	if err := tx.QueryRow("SELECT name, coalesce(description, ''), target_version, ntp_servers, anycast, node_count FROM service_point "+
		"WHERE id = ?", id).Scan(&name, &description, &target, &servers, &anycast, &count); err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			return nil, Unknown(id)
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

// different words what is not as it was: "label site: oslo -> bergen".
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
		case name == "anycast": // passwords are in it
			all = append(all, "how routers are told of anycast addresses")
		default:
			all = append(all, fmt.Sprintf("%s: %s -> %s", name, value(s, name), value(now, name)))
		}
	}
	return strings.Join(all, ", ")
}

// notedChange notes what a change of a service point came to: nothing where all is as it was.
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
