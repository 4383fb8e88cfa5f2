package dhcplease

import (
	"math"
	"net/netip"
	"testing"
)

// TestObservationsAreChecked checks that identifiers that a database cannot store, and numbers whose sums overflow, are refused.
func TestObservationsAreChecked(t *testing.T) {
	refused := func(change func(r *Refused)) Observation {
		r := Refused{Network: 7, Reason: "no-range", Message: "DISCOVER", Count: 1, First: 5, Last: 9, ClientID: "01ff"}
		change(&r)
		return Observation{Refused: []Refused{r}}
	}
	address := netip.MustParseAddr("10.0.0.1")
	for name, one := range map[string]struct {
		o     Observation
		valid bool
	}{
		"plain":            {refused(func(*Refused) {}), true},
		"no identifier":    {refused(func(r *Refused) { r.ClientID = "" }), true},
		"NUL":              {refused(func(r *Refused) { r.ClientID = "\x00" }), false},
		"odd digits":       {refused(func(r *Refused) { r.ClientID = "01f" }), false},
		"too many":         {refused(func(r *Refused) { r.Count = math.MaxInt64 }), false},
		"none":             {refused(func(r *Refused) { r.Count = 0 }), false},
		"end before start": {refused(func(r *Refused) { r.Last = 4 }), false},
		"a large number":   {Observation{Counts: []RefusedCount{{Reason: "no-range", Count: math.MaxInt64}}}, false},
		"a number":         {Observation{Counts: []RefusedCount{{Reason: "no-range", Count: 3}}}, true},
		"a wrong DUID":     {Observation{Others: []OtherServer{{DUID: "zz", Message: "REQUEST6"}}}, false},
		"a DUID":           {Observation{Others: []OtherServer{{DUID: "0001", Message: "REQUEST6"}}}, true},
		"a clone":          {Observation{Clones: []Clone{{Address: address, ClientID: "01", MACs: [2]string{"02", "03"}}}}, true},
		"without a client": {Observation{Clones: []Clone{{Address: address, MACs: [2]string{"02", "03"}}}}, false},
		"a wrong MAC":      {Observation{Clones: []Clone{{Address: address, ClientID: "01", MACs: [2]string{"02", "-"}}}}, false},
		"without address":  {Observation{Clones: []Clone{{DUID: "01", MACs: [2]string{"02", "03"}}}}, false},
		"steps":            {Observation{ClockSteps: []ClockStep{{Seconds: -5}}}, true},
		"many steps":       {Observation{ClockSteps: make([]ClockStep, MaxClockSteps+1)}, false},
	} {
		if err := one.o.Check(); (err == nil) != one.valid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
