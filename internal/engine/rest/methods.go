package rest

import (
	"net/http"
	"slices"
	"sort"
	"strings"

	"portolan/internal/engine/resource"
)

// methodsOf returns the methods of a target, sorted, without HEAD and OPTIONS.
func methodsOf(t resource.Target) []string {
	m := make([]string, 0, 4)
	add := func(yes bool, name string) {
		if yes {
			m = append(m, name)
		}
	}
	c := t.Collection
	switch {
	case t.Root, t.Any, t.Virtual:
		add(true, http.MethodGet)
	case t.Sub != nil && t.List:
		add(t.Sub.Clear, http.MethodDelete)
		add(true, http.MethodGet)
		add(t.Sub.Post, http.MethodPost)
	case t.Sub != nil:
		add(t.Sub.Drop, http.MethodDelete)
		add(t.Sub.Item, http.MethodGet)
		add(t.Sub.Change, http.MethodPatch)
		add(t.Sub.Change && !t.Sub.NoPut, http.MethodPut)
	case t.List:
		add(c.Clearable(), http.MethodDelete)
		add(true, http.MethodGet)
		add(c.Post, http.MethodPost)
	default:
		add(!c.ReadOnly && !c.NoDelete, http.MethodDelete)
		add(true, http.MethodGet)
		add(!c.ReadOnly, http.MethodPatch)
		add(!c.ReadOnly && !c.NoPut, http.MethodPut)
	}
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
