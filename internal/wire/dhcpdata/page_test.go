package dhcpdata

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var writePage = flag.Bool("write-page", false, "write the tables of docs/dhcp.md anew")

// page is the page with the tables.
const page = "../../../docs/dhcp.md"

// TestPage compares the tables of docs/dhcp.md with the code.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before := string(text)
	after := replace(t, replace(t, before, "reasons", reasonTable()), "services", serviceTable())
	if *writePage {
		if err := os.WriteFile(page, []byte(after), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if after != before {
		t.Error("docs/dhcp.md is not current: go test ./internal/wire/dhcpdata -run TestPage -args -write-page")
	}
}

// replace replaces the text between a mark and the end mark after it.
func replace(t *testing.T, text, mark, table string) string {
	t.Helper()
	start, rest, ok := strings.Cut(text, "<!-- "+mark+" -->\n")
	_, end, ended := strings.Cut(rest, "<!-- end -->")
	if !ok || !ended {
		t.Fatalf("docs/dhcp.md lacks the mark %s", mark)
	}
	return start + "<!-- " + mark + " -->\n" + table + "<!-- end -->" + end
}

func reasonTable() string {
	out := "| reason | meaning |\n|---|---|\n"
	texts := ReasonTexts()
	for _, reason := range slices.Sorted(maps.Keys(texts)) {
		out += fmt.Sprintf("| `%s` | %s |\n", reason, texts[reason])
	}
	return out
}

func serviceTable() string {
	out := "| option | family | effect |\n|---|---|---|\n"
	all := slices.Concat(services4, services6)
	slices.SortStableFunc(all, func(a, b ServiceOption) int { return cmp.Compare(a.Name, b.Name) })
	for _, o := range all {
		family, effect := "DHCPv4", o.Effect
		if o.V6 {
			family = "DHCPv6"
		}
		if effect == "" {
			effect = "Refused: " + o.Refusal + "."
		}
		switch {
		case len(o.Without) == 0:
		case slices.Contains(o.Without, AtNetwork):
			effect += " Refused outside of classes."
		case slices.Contains(o.Without, AtClass) && slices.Contains(o.Without, AtRange):
			effect += " Refused below a network."
		case slices.Contains(o.Without, AtClass):
			effect += " Refused below a range."
		default:
			effect += " Refused at "
			for i, at := range o.Without {
				if i > 0 {
					effect += " or "
				}
				effect += map[Level]string{AtRange: "a range", AtAddress: "an address"}[at]
			}
			effect += "."
		}
		out += fmt.Sprintf("| `%s` | %s | %s |\n", o.Name, family, effect)
	}
	return out
}
