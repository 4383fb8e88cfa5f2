package schema

import (
	"encoding/json"
	"testing"
)

// FuzzTableRow checks that any two cells of a row yield valid JSON, or an error.
func FuzzTableRow(f *testing.F) {
	for _, s := range [][4]string{{"crew", `[{"name":"a"}]`, "crew[0].name", "b"}, {"engine.fuel", "SUN", "engine", "null"}, {"x", "", "x.y", "1"},
		{"a[0][0]", "x", "a[1]", "'=1"}, {"name", "TRUE", "days", "MON"}, {"engine", "null", "engine.litres", "5"}} {
		f.Add(s[0], s[1], s[2], s[3])
	}
	t := Declare(&boat{})
	f.Fuzz(func(test *testing.T, first, one, second, other string) {
		row := NewTableRow(t)
		for _, c := range [][2]string{{first, one}, {second, other}} {
			column, err := ParseColumn(c[0])
			if err != nil || row.SetCell(column, c[1]) != nil {
				return
			}
		}
		members, err := row.Members()
		if err != nil {
			test.Fatalf("%q %q %q %q: %v", first, one, second, other, err)
		}
		for name, raw := range members {
			if !json.Valid(raw) {
				test.Errorf("%s is %s", name, raw)
			}
		}
	})
}

// TestCellsRoundTrip checks that the cell of a text is read as the same text.
func TestCellsRoundTrip(t *testing.T) {
	column := ColumnAt("name")
	for _, text := range []string{"=1+1", "'=1", "'", "''x", "null", "'null", "a, b", "-5", "x"} {
		raw, _ := json.Marshal(text)
		shown := column.Text(map[string]json.RawMessage{"name": raw})
		row := NewTableRow(Declare(&boat{}))
		if err := row.SetCell(column, shown); err != nil {
			t.Fatal(err)
		}
		members, err := row.Members()
		if err != nil || string(members["name"]) != string(raw) {
			t.Errorf("%q is shown as %q, and read as %s (%v)", text, shown, members["name"], err)
		}
	}
}
