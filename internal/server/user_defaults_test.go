package server

import (
	"fmt"
	"testing"
)

// A filter finds a resource that shows the default of a field like one that sets the same value, whatever is asked.
func TestDefaultsAreFound(t *testing.T) {
	m := startAlone(t)
	_, _, _, block, _ := m.basics()
	for i, value := range []string{"7", "12.5", "north 7"} {
		name := fmt.Sprintf("field%d", i)
		networks := "/api/v2/blocks/" + block + "/networks"
		set := m.id(networks, fmt.Sprintf(`{"type":"IPv4Network","range":"10.%d.0.0/24","userDefinedFields":{"%s":"%s"}}`, i+10, name, value))
		unset := m.id(networks, fmt.Sprintf(`{"type":"IPv4Network","range":"10.%d.1.0/24"}`, i+10))
		other := m.id(networks, fmt.Sprintf(`{"type":"IPv4Network","range":"10.%d.2.0/24","userDefinedFields":{"%s":"other"}}`, i+10, name))
		field := "userDefinedFields." + name
		ids := "id:in(" + set + "," + unset + "," + other + ")"
		both := func(expr string, want ...string) {
			t.Helper()
			r := m.want(200, "GET", "/api/v2/networks?orderBy=id&"+filter(ids+" and "+field+":"+expr), "")
			got := ""
			for i := range r.count() {
				got += r.text(fmt.Sprintf("data.%d.id", i)) + " "
			}
			if len(want) > 0 && got != want[0] {
				t.Errorf("%s of %q finds %q, want %q", expr, value, got, want[0])
			}
			if hasSet, hasUnset := holdsAll(got, set), holdsAll(got, unset); hasSet != hasUnset {
				t.Errorf("%s finds what sets %q: %v, and what shows it: %v", expr, value, hasSet, hasUnset)
			}
		}
		both("null and id:"+set, "") // before there is a default one of them has none
		definition := m.id("/api/v2/userDefinedFieldDefinitions",
			`{"name":"`+name+`","displayName":"x","resourceType":"IPv4Network","dataType":"TEXT","defaultValue":"`+value+`"}`)
		if r := m.want(200, "GET", "/api/v2/networks/"+unset, ""); r.text(field) != value {
			t.Fatalf("it shows %s", r.body)
		}
		both("'"+value+"'", set+" "+unset+" ")
		both("ne('"+value+"')", other+" ")
		both("null", "")
		both("ne(null)", set+" "+unset+" "+other+" ")
		for _, op := range []string{"eq", "ne", "gt", "ge", "lt", "le", "contains", "startsWith", "endsWith"} {
			for _, v := range []string{"7", "'7'", "12.5", "12", "-1", "1e1", "'north 7'", "'north'", "'NORTH'", "''", "'o'", "'other'",
				"' 7'", "'7x'"} {
				both(op + "(" + v + ")")
			}
		}
		both("in('x','"+value+"')", set+" "+unset+" ")
		both("in('x','other')", other+" ")
		m.want(200, "PATCH", "/api/v2/userDefinedFieldDefinitions/"+definition, `{"defaultValue":null}`, mergePatch)
		if r := m.want(200, "GET", "/api/v2/networks?"+filter(ids+" and "+field+":null"), ""); r.text("data.0.id") != unset || r.count() != 1 {
			t.Errorf("without a default %s", r.body)
		}
	}
	m.verify()
}
