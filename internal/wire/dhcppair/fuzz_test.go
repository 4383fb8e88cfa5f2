package dhcppair

import (
	"encoding/json"
	"net/netip"
	"testing"
)

// noRecords are the records of a server without leases.
type noRecords struct{}

func (noRecords) Record(a netip.Addr) Record { return NewRecord(a) }
func (noRecords) Data(netip.Addr) []byte     { return nil }

// FuzzMessage checks that a server handles arbitrary messages of its partner without a panic, before and after the hello.
func FuzzMessage(f *testing.F) {
	const now = 1_000_000
	partner := New(Config{Side: Secondary, MCLT: 60, Split: 128}, Status{}, "b", now, true, false)
	hello, err := json.Marshal(partner.Connected(now * 1000))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(hello, []byte(`{"sequence":1,"bindings":[{"address":"10.0.0.1"}]}`))
	f.Add([]byte(`{"hello":{"side":0}}`), []byte(`{"ack":{"sequence":7}}`))
	f.Add(hello, []byte(`{"ask":[{"address":"::"}],"answer":[{"address":"10.0.0.1","version":1,"rest":-1}]}`))
	f.Fuzz(func(_ *testing.T, first, second []byte) {
		m := New(Config{Side: Primary, MCLT: 60, Split: 128}, Status{}, "a", now, true, false)
		m.Connected(now * 1000)
		for i, text := range [][]byte{hello, first, second, second} {
			var in Message
			if json.Unmarshal(text, &in) != nil {
				continue
			}
			_, _ = m.Receive(in, noRecords{}, now+int64(i))
			m.Outgoing(noRecords{}, now+int64(i))
			m.Tick(now + int64(i))
		}
	})
}
