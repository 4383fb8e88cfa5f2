package resource

import (
	"encoding/json"
	"slices"
	"strings"

	"portolan/internal/store"
)

// versions checks that resources are what the change that wrote them last says they are. What is older than
// the horizon of the history is not known.
func (v *verifier) versions(rows []*store.Resource, references map[int64][]store.Ref) error {
	horizon, err := v.tx.Horizon()
	if err != nil {
		return err
	}
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	images, err := v.tx.LastImages(ids)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if c := v.api.byName[r.Collection]; c != nil && c.Unlogged {
			continue
		}
		text, ok := images[r.ID]
		if !ok {
			if horizon.At == 0 || horizon.Settled == 0 && r.Version > horizon.Transaction {
				v.fault("resource %d, of type %s, is not what the history says it is: no change wrote it", r.ID, r.Type)
			}
			continue
		}
		if what := differs(r, text, references[r.ID]); what != "" {
			v.fault("resource %d, of type %s, is not what the history says it is: %s differs", r.ID, r.Type, what)
		}
	}
	return nil
}

// differs names what an image of the history has otherwise than the resource; empty where nothing is.
func differs(r *store.Resource, text []byte, references []store.Ref) string {
	var was struct {
		store.Resource
		Body json.RawMessage `json:"body"`
	}
	if json.Unmarshal(text, &was) != nil {
		return "the image cannot be read: it"
	}
	switch {
	case was.Name != r.Name:
		return "the name"
	case was.Type != r.Type || was.Collection != r.Collection:
		return "the type"
	case was.Parent != r.Parent || was.Configuration != r.Configuration:
		return "the place"
	case string(was.Low) != string(r.Low) || string(was.High) != string(r.High) || was.Key != r.Key:
		return "the space or the key"
	case string(was.Body) != string(r.Body):
		return "the body"
	case !sameRefs(slices.Concat(was.Refs, was.Links), references):
		return "a reference"
	}
	return ""
}

// sameRefs reports whether two lists hold the same references, in whatever order.
func sameRefs(a, b []store.Ref) bool {
	order := func(x, y store.Ref) int {
		if c := strings.Compare(x.Field, y.Field); c != 0 {
			return c
		}
		return int(x.Target - y.Target)
	}
	a, b = slices.SortedFunc(slices.Values(a), order), slices.SortedFunc(slices.Values(b), order)
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}

// history checks that transactions and their changes belong together, and that every number is one given out.
func (v *verifier) history() error {
	for _, check := range []struct{ format, query, mark string }{
		{"change %d belongs to transaction %s, which is not there",
			"SELECT c.seq, CAST(c.txn AS TEXT) FROM change c LEFT JOIN txn t ON t.id = c.txn WHERE t.id IS NULL", ""},
		{"transaction %d, %s, does not name its first and its last change", "SELECT t.id, t.operation FROM txn t LEFT JOIN" +
			" (SELECT txn, min(seq) AS first, max(seq) AS last FROM change GROUP BY txn) c ON c.txn = t.id WHERE t.id <> ? AND (c.txn IS NULL " +
			"OR c.first <> t.first OR c.last <> t.last)", "horizon"},
		{"resource %d, of type %s, has a number that was never given out", "SELECT id, type FROM resource WHERE id > ?", "resource"},
		{"event %d has a number that was never given out%s", "SELECT id, '' FROM event WHERE id > ?", "resource"},
		{"transaction %d, %s, has a number that was never given out", "SELECT id, operation FROM txn WHERE id > ?", "txn"},
		{"change %d, %s, has a number that was never given out", "SELECT seq, operation FROM change WHERE seq > ?", "change"},
		{"event %d is of a resource that never was%s", "SELECT id, '' FROM event WHERE source > ?", "resource"},
	} {
		var args []any
		switch check.mark {
		case "":
		case "horizon": // which may be kept in part
			horizon, err := v.tx.Horizon()
			if err != nil {
				return err
			}
			args = append(args, horizon.Transaction)
		default:
			mark, err := v.tx.Mark(check.mark)
			if err != nil {
				return err
			}
			args = append(args, mark)
		}
		if err := v.none(check.format, check.query, args...); err != nil {
			return err
		}
	}
	return v.none("transaction %d is said to be taken back%s, and one of the two is not there",
		"SELECT r.txn, '' FROM reverting r LEFT JOIN txn t ON t.id = r.txn LEFT JOIN txn u ON u.id = r.undo WHERE t.id IS NULL OR u.id IS NULL")
}

// images checks that every image of the history, and every event, is JSON.
func (v *verifier) images() error {
	for _, what := range [][2]string{{"an image of change %d is no JSON", "SELECT seq, before, after FROM change"},
		{"event %d is no JSON", "SELECT id, body, NULL FROM event"},
		{"transaction %d is no JSON", "SELECT id, body, NULL FROM txn"}} {
		if err := v.tx.Stream(func(scan func(...any) error) error {
			var id int64
			var texts [2][]byte
			if err := scan(&id, &texts[0], &texts[1]); err != nil {
				return err
			}
			for _, text := range texts {
				if text != nil && !json.Valid(text) {
					v.fault(what[0], id)
				}
			}
			return nil
		}, what[1]); err != nil {
			return err
		}
	}
	return nil
}

// others checks what is no resource: credentials, water levels, the feed's origin.
func (v *verifier) others() error {
	for _, check := range [][2]string{
		{"user %d has a credential, %s, and is not there",
			"SELECT c.user_id, c.kind FROM credential c LEFT JOIN resource u ON u.id = c.user_id AND u.collection = 'users' WHERE u.id IS NULL " +
				"AND c.user_id <> 0"},
		{"session %d has a token%s, and is not there or has ended",
			"SELECT c.session, '' FROM credential c LEFT JOIN resource s ON s.id = c.session AND s.collection = 'sessions'" +
				" WHERE c.kind = 'session' AND c.revoked = 0 AND (s.id IS NULL OR json_extract(s.body, '$.state') <> 'LOGGED_IN')"},
		{"the water level of %d, %s, is kept, which is not there",
			"SELECT w.container, w.level FROM water w LEFT JOIN resource r ON r.id = w.container WHERE r.id IS NULL"},
	} {
		if err := v.none(check[0], check[1]); err != nil {
			return err
		}
	}
	var origins, named int64
	if err := v.tx.QueryRow("SELECT count(*), count(NULLIF(id, '')) FROM origin").Scan(&origins, &named); err != nil {
		return err
	}
	if origins != 1 || named != 1 {
		v.fault("the change feed has %d origins, %d of them with a name", origins, named)
	}
	return nil
}
