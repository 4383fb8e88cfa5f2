package dhcp

import (
	"encoding/hex"
	"net/netip"
	"testing"
	"time"

	"portolan/internal/engine/schema"
	"portolan/internal/wire/dhcplease"
)

// FuzzDecodeRecord checks that arbitrary records of servers do not panic, and that each accepted one is a change whose times and
// identifiers the manager can read again.
func FuzzDecodeRecord(f *testing.F) {
	for _, text := range []string{
		`{"journal":"a","sequence":1,"at":5,"event":{"kind":"BEGIN","lease":{"network":1,"address":"10.0.0.9","start":5,"expires":9,` +
			`"mac":"00005e005301","clientId":"01"}}}`,
		`{"journal":"a","sequence":2,"previous":1,"snapshot":{"id":7,"last":true,"leases":[{"network":1,"address":"2001:db8::","start":5,` +
			`"expires":9,"duid":"0001","prefixLength":56,"abandoned":true}]}}`,
		`{"journal":"a","sequence":3,"renewals":{"network":1,"packed":"AAAA"}}`, `{"journal":"a","sequence":4,"pair":{"partner":1}}`,
	} {
		f.Add([]byte(text))
	}
	r := NewReporter(nil)
	f.Fuzz(func(t *testing.T, text []byte) {
		decoded, err := r.Decode(text)
		if err != nil {
			return
		}
		record, ok := decoded.(dhcplease.Record)
		if !ok {
			t.Fatalf("the record is a %T", decoded)
		}
		var events []dhcplease.Event
		if record.Event != nil {
			events = append(events, *record.Event)
		}
		if record.Snapshot != nil {
			for _, l := range record.Snapshot.Leases {
				events = append(events, dhcplease.Event{Kind: dhcplease.Change, Lease: l})
			}
		}
		for _, e := range events {
			c, _ := changeOf(&e, time.UnixMilli(record.At))
			for _, at := range []time.Time{c.start, c.began, c.end} {
				if again, err := time.Parse(time.RFC3339, schema.FormatTime(at)); err != nil || again.Unix() != at.Unix() {
					if !at.IsZero() {
						t.Errorf("the time %s cannot be read: %v", schema.FormatTime(at), err)
					}
				}
			}
			if _, err := hex.DecodeString(c.clientID); err != nil {
				t.Errorf("the client is %q", c.clientID)
			}
			if c.prefix != 0 && !netip.PrefixFrom(c.address, c.prefix).IsValid() {
				t.Errorf("the prefix is %s/%d", c.address, c.prefix)
			}
		}
	})
}
