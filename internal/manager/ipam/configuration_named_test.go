package ipam_test

import (
	"strings"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/manager/ipam"
)

// TestConfigurationNamed checks that commands do not require the name of the configuration if there is only one.
func TestConfigurationNamed(t *testing.T) {
	m := start(t)
	find := func(name string) (id int64, err error) {
		err = m.Store.View(t.Context(), func(tx *store.Tx) error {
			row, err := ipam.ConfigurationNamed(tx, name)
			if err == nil {
				id = row.ID
			}
			return err
		})
		return id, err
	}
	refused := func(name, says string) {
		t.Helper()
		if id, err := find(name); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q is %d, %v", name, id, err)
		}
	}
	refused("", "no configuration exists")
	m.ID("/api/v2/configurations", `{"name":"one"}`)
	only, err := find("")
	if one, e := find("one"); err != nil || e != nil || only != one || only == 0 {
		t.Errorf("the only one is %d, %v, and by its name %d, %v", only, err, one, e)
	}
	m.ID("/api/v2/configurations", `{"name":"two"}`)
	refused("", "several configurations exist")
	refused("three", `configuration "three" does not exist`)
}
