package dhcpdata

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestExpressions checks the values of expressions for a message.
func TestExpressions(t *testing.T) {
	f := &Facts{HardwareType: 1, Hardware: []byte{2, 0, 0, 0xab, 0xcd, 0xef}, Packet: []byte("packet octets"),
		Options: map[uint8][]byte{60: []byte("PXEClient:Arch:00007"), 12: []byte("Crane"), 93: {0, 7}, 82: {1, 3, 'a', 'b', 'c', 2, 1, 'r'}}}
	for text, want := range map[string]bool{
		`if option vendor-class-identifier = "PXEClient:Arch:00007"`:                   true,
		`if substring(option vendor-class-identifier, 0, 9) = "PXEClient"`:             true,
		`match if substring (option vendor-class-identifier, 0, 3) = "pxe";`:           false,
		`if option arch = 00:07 and exists host-name`:                                  true,
		`if option arch = 0x0007 and not exists user-class`:                            true,
		`if option user-class = "x" or option agent.circuit-id = "abc"`:                true,
		`if option user-class != "x"`:                                                  true,
		`if option user-class = option dhcp-client-identifier`:                         false,
		`if (option agent.remote-id = "r" or known) and not (known)`:                   true,
		`if hardware = 1:2:0:0:ab:cd:ef`:                                               true,
		`if substring(hardware, 1, 3) = 02:00:00`:                                      true,
		`if binary-to-ascii(16, 8, ":", substring(hardware, 1, 6)) = "2:0:0:ab:cd:ef"`: true,
		`if suffix(hardware, 2) = cd:ef`:                                               true,
		`if concat(option host-name, "-", option agent.circuit-id) = "Crane-abc"`:      true,
		`if lcase(option host-name) = "crane" and ucase(option host-name) = "CRANE"`:   true,
		`if pick-first-value(option user-class, option host-name) = "Crane"`:           true,
		`if packet(0, 6) = "packet"`:                                                   true,
		`if substring(option host-name, 900, 9) = ""`:                                  true,
		`if option host-name ~= "^Cr[a-z]+$"`:                                          true,
		`if option host-name ~= "^cr"`:                                                 false,
		`if option host-name ~~ "^cr"`:                                                 true,
		`if option host-name = "Cr\x61ne"`:                                             true,
		`if not option host-name = "\103rane"`:                                         false,
	} {
		x, condition, err := ParseMatch(text, nil)
		if err != nil || !condition {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := x.holds(f); got != want {
			t.Errorf("%s is %v", text, got)
		}
		again, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		var copied Expression
		if err := json.Unmarshal(again, &copied); err != nil || copied.check(true) != nil || copied.holds(f) != want {
			t.Errorf("%s differs after a round trip", text)
		}
	}
	x, condition, err := ParseMatch("option agent.circuit-id", nil)
	if err != nil || condition {
		t.Fatal(err)
	}
	if data, ok := x.evaluate(f); !ok || string(data) != "abc" {
		t.Errorf("the circuit id is %q", data)
	}
	x, err = MatchOf("hardware", 1, 6)
	if err != nil {
		t.Fatal(err)
	}
	if data, ok := x.evaluate(f); !ok || string(data) != string(f.Hardware) {
		t.Errorf("the hardware address is %x", data)
	}
}

// TestInvalidExpressions checks that an invalid expression is rejected with its reason.
func TestInvalidExpressions(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "too early",
		"if":                                    "too early",
		"if option":                             "unknown option",
		"if option colour = 1":                  "unknown option \"colour\"",
		"if option host-name":                   "expected",
		"if known known":                        "follows the end",
		"if option host-name ~= \"(\"":          "missing closing",
		"if option host-name = \"a":             "no end",
		"substring(option host-name, 1)":        "expected",
		"substring(hardware, -1, 2)":            "not a number",
		"substring(hardware, 1, 99999)":         "not a number",
		"encode-int(1, 8)":                      "not a data expression",
		"known":                                 "not a data expression",
		"if hardware % 2":                       "not allowed",
		"binary-to-ascii(1, 8, \"\", hardware)": "base",
		"if " + strings.Repeat("not ", 4000) + "known":                          "deep",
		"if " + strings.Repeat("(", 4000) + "known" + strings.Repeat(")", 4000): "deep",
		strings.Repeat("lcase(", 4000) + "hardware" + strings.Repeat(")", 4000): "more than",
		strings.Repeat("lcase(", 200) + "hardware" + strings.Repeat(")", 200):   "deep",
		"if known" + strings.Repeat(" or known", 1000):                          "more than",
	} {
		if _, _, err := ParseMatch(text, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", text, err, want)
		}
	}
}

// FuzzParseMatch checks that arbitrary texts do not panic, and that accepted expressions can be evaluated.
func FuzzParseMatch(f *testing.F) {
	f.Add(`if substring(option vendor-class-identifier, 0, 9) = "PXEClient" and not known`)
	f.Add(`binary-to-ascii(16, 8, ":", substring(hardware, 1, 6))`)
	f.Fuzz(func(_ *testing.T, text string) {
		x, condition, err := ParseMatch(text, nil)
		if err != nil {
			return
		}
		facts := &Facts{Hardware: []byte{1, 2, 3}, Options: map[uint8][]byte{60: []byte("PXEClient"), 12: {0}}}
		if condition {
			x.holds(facts)
			return
		}
		x.evaluate(facts)
	})
}
