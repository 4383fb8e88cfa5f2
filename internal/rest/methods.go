package rest

import (
	"net/http"
	"slices"
	"sort"
	"strings"

	"portolan/internal/resource"
)

// methodsOf gives the methods the target takes, sorted, without HEAD and OPTIONS.
func methodsOf(t resource.Target) []string {
	var m []string
	add := func(yes bool, name string) {
		if yes {
			m = append(m, name)
		}
	}
	m = append(m, http.MethodGet)
	c := t.Collection
	switch {
	case t.Root, t.Any:
	case t.Sub != nil && t.List:
		add(t.Sub.Post, http.MethodPost)
		add(t.Sub.Clear, http.MethodDelete)
	case t.Sub != nil:
		if !t.Sub.Item {
			m = nil
		}
		add(t.Sub.Change && !t.Sub.NoPut, http.MethodPut)
		add(t.Sub.Change, http.MethodPatch)
		add(t.Sub.Drop, http.MethodDelete)
	case t.List:
		add(c.Post, http.MethodPost)
		add(c.Clearable(), http.MethodDelete)
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
