package server

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/testkit/apitest"
)

// TestHiddenReferencesEqualMissing changes every reference field of each type to a hidden resource and to a missing one. The answers
// are equal, so that they do not reveal which resources exist.
func TestHiddenReferencesEqualMissing(t *testing.T) {
	apitest.Slow(t)
	m := startAlone(t)
	m.oneOfEach()
	rows := map[string][]*store.Resource{} // by type
	if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
		return tx.List(store.Query{From: store.Resources}, func(r *store.Resource) error {
			one := *r
			rows[r.Type] = append(rows[r.Type], &one)
			return nil
		})
	}); err != nil {
		t.Fatal(err)
	}
	above := func(r *store.Resource) map[int64]bool {
		all := map[int64]bool{r.ID: true, r.Configuration: true}
		for id := r.Parent; id > 0 && !all[id]; {
			all[id] = true
			if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
				head, err := tx.Head(id)
				id = head.Parent
				return err
			}); err != nil {
				return all
			}
		}
		return all
	}
	user, as := m.User("ref", "NO_ACCESS")
	m.Right(user, "", "FULL", "")
	const missing = "99999999"
	ids := regexp.MustCompile(`\b\d{6,8}\b`)
	asked, alike := 0, map[string]bool{}
	for _, typ := range m.Address.AllTypes() {
		c := m.Address.CollectionOf(typ)
		if len(rows[typ.Name]) == 0 || c.Inner {
			continue
		}
		source := rows[typ.Name][0]
		path := fmt.Sprintf("/api/v2/%s/%d", c.Name, source.ID)
		if r := m.Do("GET", path, "", as); r.StatusCode != 200 {
			continue
		}
		not := above(source)
		for _, f := range typ.Fields {
			if f.Kind != schema.Reference && f.Kind != schema.References || f.ReadOnly || f.Column != "" {
				continue
			}
			var target *store.Resource
			for _, of := range f.Refs {
				for _, one := range rows[of] {
					if target == nil && !not[one.ID] {
						target = one
					}
				}
			}
			if target == nil {
				continue
			}
			body := func(id string) string {
				if f.Kind == schema.References {
					return fmt.Sprintf(`{%q:[{"id":%s}]}`, f.Name, id)
				}
				return fmt.Sprintf(`{%q:{"id":%s}}`, f.Name, id)
			}
			hidden := fmt.Sprint(target.ID)
			made := m.Do("POST", "/api/v2/accessRights", `{"userScope":{"id":`+user+`},"resource":{"id":`+hidden+`},"defaultAccessLevel":"HIDE"}`)
			if made.StatusCode != 201 { // without rights to grant
				continue
			}
			if r := m.Do("GET", path, "", as); r.StatusCode == 200 {
				asked++
				var answers [2]string
				for i, id := range []string{hidden, missing} {
					r := m.Do("PATCH", path, body(id), as, apitest.MergePatch, "x-portolan-dry-run: true")
					var said struct{ Code, Message string }
					if err := json.Unmarshal(r.Body, &said); err != nil {
						t.Errorf("%s.%s: %s", typ.Name, f.Name, r.Body)
					}
					answers[i] = fmt.Sprint(r.StatusCode, " ", said.Code, " ", ids.ReplaceAllString(strings.ReplaceAll(said.Message, id, "ID"), "ID"))
				}
				if answers[0] != answers[1] {
					t.Errorf("%s.%s: hidden %s %s: %q, missing: %q", typ.Name, f.Name, target.Type, hidden, answers[0], answers[1])
				}
				alike[answers[1]] = true
			}
			m.Want(204, "DELETE", "/api/v2/accessRights/"+made.Text("id"), "")
		}
	}
	t.Logf("%d fields asked, %d different answers", asked, len(alike))
	if asked < 50 {
		t.Errorf("%d fields were asked", asked)
	}
}
