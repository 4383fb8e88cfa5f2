package dhcp

import (
	"bytes"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"portolan/internal/base/dhcpmsg"
	"portolan/internal/wire/dhcpdata"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// TestSwapUnderLoad swaps large content while clients ask at 500/s. Each client gets its offer; the longest time is printed.
func TestSwapUnderLoad(t *testing.T) {
	networks := 200
	if os.Getenv("PORTOLAN_TEST_LONG") != "" {
		networks = 5000
	}
	u := units(t, noPing)
	for n := range networks {
		id := int64(1000 + n)
		base := netip.AddrFrom4([4]byte{172, byte(16 + n>>8), byte(n), 0})
		items := []dhcpdata.Item{dhcpdata.Network{ID: id, Prefix: netip.PrefixFrom(base, 24)}}
		for k := range 10 {
			items = append(items, dhcpdata.Reservation{ID: id*100 + int64(k),
				Address: netip.AddrFrom4([4]byte{172, byte(16 + n>>8), byte(n), byte(k + 1)}),
				MAC:     dhcpdata.Hex{2, 2, byte(n >> 8), byte(n), 0, byte(k)}})
		}
		u[dhcpdata.NetworkUnit(id)] = unit(t, dhcpdata.NetworkUnit(id), items...)
	}
	s := newService(t.TempDir(), slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = s.Close() })
	take := func(text []byte) error { return s.ApplyContent(bytes.NewReader(text)) }
	deliver(t, take, u)
	stop, ended := make(chan struct{}), make(chan []time.Duration)
	go func() {
		var all []time.Duration
		defer func() { ended <- all }()
		ticker := time.NewTicker(2 * time.Millisecond)
		defer ticker.Stop()
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
			m, err := dhcpv4.New(dhcpv4.WithMessageType(dhcpv4.MessageTypeDiscover), dhcpv4.WithGatewayIP([]byte{10, 0, 0, 1}),
				dhcpv4.WithHwAddr([]byte{2, 9, 0, byte(n >> 16), byte(n >> 8), byte(n)}))
			if err != nil {
				return
			}
			parsed, err := dhcpmsg.Parse(m.ToBytes())
			if err != nil {
				return
			}
			answered := make(chan struct{})
			began := time.Now()
			s.engine.handle(&request{message: parsed, facts: dhcpdata.Facts{Type: parsed.Type, HardwareType: 1, Hardware: parsed.Hardware,
				Options: parsed.Options, Relay: parsed.Relay}, reply: func(*dhcpdata.Decision, []byte) { close(answered) }})
			select {
			case <-answered:
				all = append(all, time.Since(began))
			case <-time.After(5 * time.Second):
				all = append(all, time.Hour)
			}
		}
	}()
	for n := range 3 {
		changed := dhcpdata.Reservation{ID: 5, Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(50 + n)}),
			MAC: dhcpdata.Hex{2, 3, 0, 0, 0, byte(n)}}
		v := units(t, noPing, changed)
		for id, one := range u {
			if v[id] == nil {
				v[id] = one
			}
		}
		deliver(t, take, v)
	}
	close(stop)
	all := <-ended
	if len(all) == 0 || slices.Max(all) == time.Hour {
		t.Fatalf("%d clients were answered, at least one was not", len(all))
	}
	slices.Sort(all)
	t.Logf("%d networks swapped 3 times: %d answers, median %v, 99 %% within %v, longest %v", networks, len(all), all[len(all)/2],
		all[len(all)*99/100], all[len(all)-1])
}
