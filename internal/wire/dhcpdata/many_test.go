package dhcpdata

import (
	"fmt"
	"slices"
	"testing"
)

// TestManyClasses checks that content with 10,000 classes compiles, and that a client is a member of the last one.
func TestManyClasses(t *testing.T) {
	const count = 10_000
	p := newPlan()
	for n := range count {
		condition, _, err := ParseMatch(fmt.Sprintf(`if substring(option vendor-class-identifier, 0, 9) = "class%04d"`, n), nil)
		if err != nil {
			t.Fatal(err)
		}
		id := int64(1000 + n)
		p.with(ClassUnit(id), Class{ID: id, Name: fmt.Sprint(n), If: condition}, Option{Code: 15, Name: "domain-name", Value: Hex(fmt.Sprint(n)),
			From: Source{Level: AtClass, ID: id}})
	}
	c := p.compile(t)
	d := Decide(c, message(Discover, 1, with(60, "class9999"), with(55, "\x0f")), memory{}, now)
	if name := d.find(15); !slices.Equal(d.Classes, []string{"9999"}) || name == nil || string(name.Value) != "9999" {
		t.Errorf("the classes are %v, the domain name %v", d.Classes, name)
	}
}
