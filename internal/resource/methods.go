package resource

import (
	"net/http"
	"slices"
	"sort"
	"strings"
)

// methodsOf gives the methods the target takes, sorted, without HEAD and OPTIONS.
func methodsOf(t target) []string {
	var m []string
	add := func(yes bool, name string) {
		if yes {
			m = append(m, name)
		}
	}
	m = append(m, http.MethodGet)
	c := t.collection
	switch {
	case t.root, t.any:
	case t.sub != nil && t.list:
		add(t.sub.Post, http.MethodPost)
	case t.sub != nil:
		if !t.sub.Item {
			m = nil
		}
		add(t.sub.Drop, http.MethodDelete)
	case t.list:
		add(c.Post, http.MethodPost)
	default:
		add(!c.ReadOnly && !c.NoPut, http.MethodPut)
		add(!c.ReadOnly, http.MethodPatch)
		add(!c.ReadOnly && !c.NoDelete, http.MethodDelete)
	}
	sort.Strings(m)
	return m
}

func allow(methods []string) string {
	all := slices.Clone(methods)
	if slices.Contains(all, http.MethodGet) {
		all = append(all, http.MethodHead)
	}
	all = append(all, http.MethodOptions)
	sort.Strings(all)
	return strings.Join(all, ", ")
}
