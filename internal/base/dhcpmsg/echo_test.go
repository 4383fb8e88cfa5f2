package dhcpmsg

import (
	"bytes"
	"testing"
)

// TestEchoedOptionsStay checks that a full reply leaves out configured options, and not the client identifier that follows them.
func TestEchoedOptionsStay(t *testing.T) {
	r := reply(t, 100, 150)
	r.File, r.ServerName = "boot", "host"
	id := bytes.Repeat([]byte{7}, 100)
	r.Options = append(r.Options, Option{Code: 61, Value: id})
	p, dropped := r.Append(nil, 548)
	m, err := Parse(change(p, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	if len(p) > 548 || len(dropped) != 1 || !bytes.Equal(m.Options[61], id) {
		t.Errorf("%d octets, dropped %v, option 61 is %x", len(p), dropped, m.Options[61])
	}
}
