package schema

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

// TestOfGoPointers checks that pointers may be null, that numbers are numbers, and that texts with a few values list them.
func TestOfGoPointers(t *testing.T) {
	type one struct {
		At    *time.Time `json:"at"`
		Since time.Time  `json:"since"`
		Tag   uint16     `json:"tag"`
		State string     `json:"state" enum:"OLD|NEW"`
	}
	text, err := json.Marshal(ReflectSchema(reflect.TypeFor[one]())["properties"])
	if err != nil || string(text) != `{"at":{"anyOf":[{"format":"date-time","type":"string"},{"type":"null"}]},`+
		`"since":{"format":"date-time","type":"string"},"state":{"enum":["OLD","NEW"],"type":"string"},"tag":{"format":"int64","type":"integer"}}` {
		t.Errorf("%s, %v", text, err)
	}
}
