package schema

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

// What may be missing may be null, a time as anything else; numbers are numbers, and texts with a few values say which.
func TestOfGoPointers(t *testing.T) {
	type one struct {
		At    *time.Time `json:"at"`
		Since time.Time  `json:"since"`
		Tag   uint16     `json:"tag"`
		State string     `json:"state" enum:"OLD|NEW"`
	}
	text, err := json.Marshal(OfGo(reflect.TypeFor[one]())["properties"])
	if err != nil || string(text) != `{"at":{"anyOf":[{"format":"date-time","type":"string"},{"type":"null"}]},`+
		`"since":{"format":"date-time","type":"string"},"state":{"enum":["OLD","NEW"],"type":"string"},"tag":{"format":"int64","type":"integer"}}` {
		t.Errorf("%s, %v", text, err)
	}
}
