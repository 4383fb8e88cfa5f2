package apitest

import (
	"strings"
	"testing"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
)

// ZoneFile returns a zone of the view internal of the configuration main as a zone file.
func ZoneFile(t testing.TB, a *resource.API, name string) string {
	t.Helper()
	var out strings.Builder
	if err := a.Store.View(t.Context(), func(tx *store.Tx) error {
		row, err := dns.FindZone(tx, "main", "internal", name)
		if err != nil {
			return err
		}
		z, err := dns.ZoneData(tx, a, row, dns.Served{})
		if err != nil {
			return err
		}
		return z.Write(&out)
	}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
