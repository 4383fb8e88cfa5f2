package convert

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// A row with a wrong quotation mark takes no other row with it.
func TestRows(t *testing.T) {
	for text, want := range map[string]string{
		"a,b\n\nc,d\r\n":                            "1 a|b, 3 c|d",
		"a,\"b\nc\",d\ne":                           "1 a|b\nc|d, 3 e",
		"19\" rack,b\nc":                            "1 19\" rack|b, 2 c",
		"a,\"b\" c,d\ne,f":                          "1 !, 2 e|f",
		"a,\"b,c\nd,e\nf,g":                         "1 !, 2 d|e, 3 f|g",
		"\"a \"\"b\"\"\",c":                         "1 a \"b\"|c",
		"x\n\"" + strings.Repeat("y\n", longestRow): "",
	} {
		rows := &csvRows{rest: text, comma: ',', line: 1}
		var all []string
		for {
			row, line, err := rows.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				row = []string{"!"}
			}
			all = append(all, fmt.Sprint(line, " ", strings.Join(row, "|")))
		}
		if got := strings.Join(all, ", "); want != "" && got != want || want == "" && len(all) != longestRow+1 {
			t.Errorf("%.40q: %.100q (%d rows), want %q", text, got, len(all), want)
		}
	}
}

// What a source leaves empty is null where that is asked for, and not said elsewhere.
func TestEmptyMembers(t *testing.T) {
	d, err := Phpipam("", []byte("Subnet,Mask,Description\n10.1.0.0,24,\n"), []byte("IP address,hostname,mac\n10.1.0.5,,\n"))
	if err != nil {
		t.Fatal(err)
	}
	d.Settle(Known{}, false)
	for clear, want := range map[bool][]string{
		false: {`{"gateway":null,"range":"10.1.0.0/24","type":"IPv4Network"}`, `{"address":"10.1.0.5","state":"STATIC","type":"IPv4Address"}`},
		true: {`{"gateway":null,"name":null,"range":"10.1.0.0/24","type":"IPv4Network"}`,
			`{"address":"10.1.0.5","macAddress":null,"name":null,"state":"STATIC","type":"IPv4Address"}`},
	} {
		all, _, err := d.JSON(clear)
		var got []string
		for _, raw := range all {
			got = append(got, string(raw))
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%v: %q %v", clear, got, err)
		}
	}
}

// An address that does not say in which VRF it is, is in that of its subnet; where several VRFs have that it is skipped. A network has one
// gateway.
func TestPhpipamPlaces(t *testing.T) {
	subnets := []byte("Subnet,Mask,VRF\n10.1.0.0,24,RED\n10.1.0.0,24,BLUE\n10.2.0.0,24,RED\n10.3.0.0,24,BLUE\n10.4.0.7,24,RED\n")
	addresses := []byte("IP address,hostname,is gateway\n10.1.0.5,both,\n10.2.0.5,red,\n10.3.0.5,blue,\n10.2.0.1,gw,1\n10.2.0.2,,1\n")
	d, err := Phpipam("RED", subnets, addresses)
	lines, notes := words(t, d, err)
	text := strings.Join(append(lines, notes...), "\n")
	for _, want := range []string{`"10.2.0.5"`, "its subnet is in the VRFs RED, BLUE", "what is in the VRF BLUE",
		"the name and the hardware address of the gateway 10.2.0.1", "the network 10.2.0.0/24 has the gateway 10.2.0.1 already",
		"the bits of 10.4.0.7/24 behind its mask: it is 10.4.0.0/24"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, `"10.3.0.5"`) || strings.Contains(text, `"address":"10.1.0.5"`) {
		t.Errorf("it has addresses of others:\n%s", text)
	}
}
