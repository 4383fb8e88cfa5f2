package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"portolan/internal/engine/store"
)

// listKey are the columns read of every listed service point. They include the values that change with time, and tell whether a cached list
// entry is current.
type listKey struct {
	id, name, status, connection string
	lastSeen, revision, expires  int64
}

const selectKeys = "SELECT s.id, s.name, s.status, s.key_expires, s.revision, coalesce(p.last_seen, 0), coalesce(p.connected, 0) " +
	"FROM service_point s LEFT JOIN presence p ON p.service_point = s.id "

// keys reads the keys of service points as they are in the database. connection is empty for service points that are disconnected there.
func (c scanner) keys(tx *store.Tx, where string, args []any) (all []listKey, err error) {
	return all, tx.Each(func(scan func(...any) error) error {
		var k listKey
		connected := 0
		err := scan(&k.id, &k.name, &k.status, &k.expires, &k.revision, &k.lastSeen, &connected)
		if connected == 1 {
			k.connection = Connected
		}
		all = append(all, k)
		return err
	}, selectKeys+where, args...)
}

// currentKeys updates keys to the current time, and removes those that do not match a filter.
func (c scanner) currentKeys(keys []listKey, f *Filter) (all []listKey) {
	all = make([]listKey, 0, len(keys))
	for _, k := range keys {
		k.status = statusAt(k.status, k.expires, c.now)
		k.lastSeen, k.connection = c.lastContact(k.id, k.lastSeen, k.connection != "")
		if f.matchesState(k.status, k.connection, k.lastSeen) {
			all = append(all, k)
		}
	}
	return all
}

// foundKeys is the cached result of a query.
type foundKeys struct {
	keys []listKey
	// forgotten is the value of Service.forgotten at that time. A forgotten service point has only its written presence, so the cached keys
	// may be outdated.
	forgotten int64
	// changes is the value of Service.changes at that time.
	changes int64
}

// maxQuestions is the number of cached queries, maxFound the number of keys of each.
const (
	maxQuestions = 64
	maxFound     = 2 * chunkSize
)

// find returns the keys that match a condition, in the order of the names. The result is cached until a service point changes. Changes by
// requests take effect at once, reports at another manager after its notification.
func (c scanner) find(tx *store.Tx, where string, args []any) ([]listKey, error) {
	s := c.service
	question := fmt.Sprintf("%s %q", where, args)
	forgotten := s.forgotten.Load()
	changes, err := s.changes(tx) // read first, so that the keys may be newer than the count but not older
	if err != nil {
		return nil, err
	}
	if f, ok := s.keyCache.Get(tx, question); ok && f.forgotten == forgotten && f.changes == changes {
		return f.keys, nil
	}
	keys, err := c.keys(tx, where+" ORDER BY s.name", args)
	if err == nil && len(keys) <= maxFound {
		s.keyCache.Put(tx, question, foundKeys{keys, forgotten, changes})
	}
	return keys, err
}

// eachPage calls fn for the service points that match a filter by their keys, in the order of their names, one page at a time.
func (s *Service) eachPage(ctx context.Context, f Filter, fn func(c scanner, tx *store.Tx, page []listKey) error) error {
	if err := f.check(); err != nil {
		return err
	}
	c := s.scanner()
	return s.store.View(ctx, func(tx *store.Tx) error {
		page := func(keys []listKey) error {
			if keys = c.currentKeys(keys, &f); len(keys) == 0 {
				return nil
			}
			return fn(c, tx, keys)
		}
		if where, args := f.whereClause(); where != "" {
			keys, err := c.find(tx, where, args)
			for part := range slices.Chunk(keys, chunkSize) {
				if err == nil {
					err = page(part)
				}
			}
			return err
		}
		for after := ""; ; {
			keys, err := c.keys(tx, "WHERE s.name > ? ORDER BY s.name LIMIT ?", []any{after, chunkSize})
			if err != nil || len(keys) == 0 {
				return err
			}
			after = keys[len(keys)-1].name
			if err := page(keys); err != nil || len(keys) < chunkSize {
				return err
			}
		}
	})
}

// shown is a service point as a list shows it, in JSON.
type shown struct {
	// of is the key that it was rendered for. The time of the last contact is inserted between head and tail.
	of         listKey
	head, tail string
}

// maxShown is the number of cached list entries; one list adds at most half as many. maxShownBytes is the maximum size of an entry.
const (
	maxShown      = 20_000
	maxShownBytes = 8 << 10
)

// shownTopic is never touched: a rendered revision of a service point stays valid as long as the database is the same.
const shownTopic = "shown service points"

// isCurrent reports whether the entry is as new as a key, or newer. A cached key can be older, because a revision may be raised without a
// change that lists show.
func (o *shown) isCurrent(k listKey) bool {
	return o.of.revision >= k.revision && o.of.status == k.status && o.of.connection == k.connection &&
		(k.connection == Connected || o.of.lastSeen == k.lastSeen)
}

// seenMember precedes the time of the last contact in JSON. No text before it can contain it, as quotation marks are escaped there. A label
// may have this name, but labels follow.
const seenMember = `"lastSeen":`

// render renders a service point that was read.
func (i *Instance) render() (*shown, error) {
	text, err := json.Marshal(i)
	if err != nil {
		return nil, err
	}
	head, tail, _ := strings.Cut(string(text), seenMember)
	tail = strings.TrimLeft(tail, "-0123456789")
	of := listKey{id: i.ID, name: i.Name, status: i.Status, connection: i.ConnectionStatus, lastSeen: i.LastSeen, revision: i.revision}
	return &shown{of, head + seenMember, tail}, nil
}

// Show calls fn with the list entry, in JSON, of each service point that matches a filter, in the order of their names. Entries are cached
// until they change. fn must not keep the text after it returns.
func (s *Service) Show(ctx context.Context, f Filter, fn func(text []byte) error) error {
	var text []byte
	room := maxShown / 2 // a long list leaves space for entries of other lists
	return s.eachPage(ctx, f, func(c scanner, tx *store.Tx, page []listKey) error {
		all := make([]*shown, len(page))
		unknown := map[string]int{}
		for i, k := range page {
			if one, ok := s.shownCache.Get(tx, k.id); ok && one.isCurrent(k) && !f.needsReport() {
				all[i] = one
			} else {
				unknown[k.id] = i
			}
		}
		if err := c.renderMissing(tx, f, page, all, unknown, room > 0); err != nil {
			return err
		}
		room -= len(page)
		for i, one := range all {
			if one == nil {
				continue
			}
			text = append(strconv.AppendInt(append(text[:0], one.head...), page[i].lastSeen, 10), one.tail...)
			if err := fn(text); err != nil {
				return err
			}
		}
		return nil
	})
}

// renderMissing reads and renders the service points of a page that are not cached. unknown has their places in the page by id. Service
// points that do not match the filter stay nil. keep adds the entries to the cache.
func (c scanner) renderMissing(tx *store.Tx, f Filter, page []listKey, all []*shown, unknown map[string]int, keep bool) error {
	if len(unknown) == 0 {
		return nil
	}
	read, err := c.listed(tx, toArgs(slices.Collect(maps.Keys(unknown))))
	for i := range read {
		at := unknown[read[i].ID]
		if err != nil || !f.matches(&read[i]) {
			continue
		}
		if all[at], err = read[i].render(); err == nil {
			page[at].lastSeen = read[i].LastSeen
			if one := all[at]; keep && len(one.head)+len(one.tail) <= maxShownBytes {
				c.service.shownCache.Put(tx, one.of.id, one)
			}
		}
	}
	return err
}
