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

// key is what is read of every service point that is listed: what may change by itself, and whether what was once shown of it is still so.
type listKey struct {
	id, name, status, connection string
	lastSeen, revision, expires  int64
}

const selectKeys = "SELECT s.id, s.name, s.status, s.key_expires, s.revision, coalesce(p.last_seen, 0), coalesce(p.connected, 0) " +
	"FROM service_point s LEFT JOIN presence p ON p.service_point = s.id "

// keys reads those of service points, as they were last written down: connection is empty where that is that they ended, or fell silent.
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

// nowOf makes of some keys those of this moment, and takes away those that a filter does not name.
func (c scanner) currentKeys(keys []listKey, f *Filter) (all []listKey) {
	all = make([]listKey, 0, len(keys))
	for _, k := range keys {
		k.status = statusAt(k.status, k.expires, c.now)
		k.lastSeen, k.connection = c.seen(k.id, k.lastSeen, k.connection != "")
		if f.matchesState(k.status, k.connection, k.lastSeen) {
			all = append(all, k)
		}
	}
	return all
}

// foundKeys are the keys that a question has found.
type foundKeys struct {
	keys []listKey
	// forgotten is Service.forgotten of then: of those that were let go of since, what is written counts, and not what this manager has heard.
	forgotten int64
	// changes is Service.changes of then.
	changes int64
}

// mostQuestions is how many questions are kept, with up to mostFound keys each.
const (
	maxQuestions = 64
	maxFound     = 2 * chunkSize
)

// find gives the keys of those that a condition names, in the order of their names. What was found is kept until a service point changes:
// at once where somebody has asked for that, and of what service points say at another manager as soon as that is heard.
func (c scanner) find(tx *store.Tx, where string, args []any) ([]listKey, error) {
	s := c.service
	question := fmt.Sprintf("%s %q", where, args)
	forgotten := s.forgotten.Load()
	changes, err := s.changes(tx) // before what is found: that may be newer then, and not older
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

// pages gives fn those that a filter names, as far as their keys say, in the order of their names and some at a time.
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
		if where, args := f.where(); where != "" {
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
	// of is what it was shown for. A moment at which it was last heard of stands between head and tail, where it is not in tail, too: then
	// it has not been heard of since.
	of         listKey
	head, tail string
}

// mostShown is how many service points as they were shown are kept, of one list half as many, and mostKept how many bytes one may have.
const (
	maxShown      = 20_000
	maxShownBytes = 8 << 10
)

// shownTopic is touched by nobody: what was shown of a revision of a service point stays so, as long as the database is the same.
const shownTopic = "shown service points"

// is reports whether that is what there is to be shown of a service point, or what has come of it since it was found: a revision may be
// raised by what no list shows, and what was found stays then.
func (o *shown) isCurrent(k listKey) bool {
	return o.of.revision >= k.revision && o.of.status == k.status && o.of.connection == k.connection &&
		(k.connection == Connected || o.of.lastSeen == k.lastSeen)
}

// seenMember stands before the moment at which a service point was last heard of. No text before it has it, as quotation marks are escaped
// there; labels, of which one may have that name, come behind it.
const seenMember = `"lastSeen":`

// shows makes what is shown of a service point that was read.
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

// Show gives fn what a list shows of the service points that a filter names, in JSON, in the order of their names. What was shown of one
// before is kept until that changes. The text is fn's until it returns.
func (s *Service) Show(ctx context.Context, f Filter, fn func(text []byte) error) error {
	var text []byte
	room := maxShown / 2 // a long list leaves what others are asked for
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

// show reads those of a page of which it is not known what is shown, by their ids and places. Of those that the filter does not name
// nothing is shown. keep says that they are kept.
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
