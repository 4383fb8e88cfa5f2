package naming

import (
	"encoding/hex"
	"strings"
	"testing"

	dns "portolan/internal/base/dnsmsg"
)

// TestEncodedData compares data that the DNS library reads differently with the octets that BIND writes (named-compilezone -F raw, 9.18).
func TestEncodedData(t *testing.T) {
	for line, want := range map[string]string{
		`CAA 0 issue "a\\b"`:                              "0005697373756561" + "5c62",
		`CAA 128 tag ""`:                                  "8003746167",
		`URI 1 2 "a\\b"`:                                  "00010002" + "615c62",
		`ISDN 150862028003217`:                            "0f" + hex.EncodeToString([]byte("150862028003217")),
		`ISDN "1" "2"`:                                    "0131" + "0132",
		`NXT a A NS`:                                      "0161076578616d706c6500" + "60",
		`NXT @ A TXT 127`:                                 "076578616d706c6500" + "40008000000000000000000000000001",
		`AMTRELAY 128 1 3 amtrelays.example.com.`:         "8083" + "09616d7472656c617973076578616d706c6503636f6d00",
		`AMTRELAY 10 1 2 2001:db8::15`:                    "0a82" + "20010db8000000000000000000000015",
		`AMTRELAY 10 0 1 203.0.113.15`:                    "0a01" + "cb00710f",
		`DNSKEY 0400 3 8 AQID`:                            "01900308" + "010203",
		`DNSKEY 0x100 3 8 AQID`:                           "01000308" + "010203",
		`DS 1 NSEC3RSASHA1 1 ` + strings.Repeat("ab", 20): "00010701" + strings.Repeat("ab", 20),
		`WALLET "  a  "`:                                  "0520206120" + "20",
		`A6 10 ::1 @`:                                     "0a" + "000000000000000000000000000001" + "076578616d706c6500",
		`URI 1 2 "` + strings.Repeat("x", 1200) + `"`:     "00010002" + strings.Repeat("78", 1200),
		`CAA 0 issue "` + strings.Repeat("y", 400) + `"`:  "00056973737565" + strings.Repeat("79", 400),
	} {
		z, err := ReadZone(strings.NewReader("$TTL 60\n@ SOA . . 1 1 1 1 1\nr "+line+"\n"), "example", nil)
		if err != nil || len(z.Records) != 2 {
			t.Errorf("%s: %+v, %v", line, z, err)
			continue
		}
		var unknown dns.RFC3597
		if known, is := z.Records[1].(*dns.RFC3597); is {
			unknown = *known
		} else if err := unknown.ToRFC3597(z.Records[1]); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if unknown.Rdata != want {
			t.Errorf("%s is %s, want %s", line, unknown.Rdata, want)
		}
	}
	// Data in the form of RFC 3597 is unchanged.
	for _, data := range []string{`AMTRELAY \# 18 0a8220010db8000000000000000000000015`, `NXT \# 10 076578616d706c650060`, `ISDN \# 2 0131`} {
		kind, rest, _ := strings.Cut(data, " ")
		rr, err := NewRecord("r.example.", 60, kind, rest)
		unknown, is := rr.(*dns.RFC3597)
		if err != nil || !is || !strings.HasSuffix(data, " "+unknown.Rdata) {
			t.Errorf("%s: %v, %v", data, rr, err)
		}
	}
	z, err := ReadZone(strings.NewReader("$TTL 60\n@ SOA . . 1 1 1 1 1\n\"@\" TXT own\n"+
		"$GENERATE 1-1 n$ NAPTR \"100 10 \\\"u\\\" \\\"E2U+sip\\\" \\\"\\\" a.\"\n"),
		"example", nil)
	if err != nil || len(z.Records) != 3 || z.Records[1].Header().Name != "example." ||
		!strings.HasSuffix(z.Records[2].String(), `100 10 "u" "E2U+sip" "" a.`) {
		t.Errorf("%+v, %v", z, err)
	}
}
