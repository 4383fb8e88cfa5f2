package tftp

import (
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"portolan/internal/testkit/freeport"

	peer "github.com/pin/tftp/v3"
)

// BenchmarkFetch fetches a file of 8 MB in blocks of 1,408 octets: in turn from the library github.com/pin/tftp/v3, from this server, and
// from this server in windows of 16. It reports the speeds relative to that of the library.
func BenchmarkFetch(b *testing.B) {
	const name, size, block = "image", 8_000_000, 1408
	data := random(size)
	_, own, _ := start(b, map[string]string{name: data}, "")
	other := freeport.Reserve(b)
	conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(other))
	if err != nil {
		b.Fatal(err)
	}
	f := &blob{reader: &space{text: []byte(data)}, size: size}
	library := peer.NewServer(func(_ string, to io.ReaderFrom) error {
		_, err := to.ReadFrom(f.open())
		return err
	}, nil)
	go func() { _ = library.Serve(conn) }()
	defer library.Shutdown()
	var times [3]time.Duration
	for b.Loop() {
		for i, c := range []struct {
			at     netip.AddrPort
			window int
		}{{other, 0}, {own, 0}, {own, 16}} {
			began := time.Now()
			if n := fetchPlain(b, c.at, name, block, c.window); n != size {
				b.Fatal(n)
			}
			times[i] += time.Since(began)
		}
	}
	b.ReportMetric(float64(times[0])/float64(times[1]), "own/library")
	b.ReportMetric(float64(times[0])/float64(times[2]), "window16/library")
}

// fetchPlain fetches a file without loss and returns its size.
func fetchPlain(b *testing.B, at netip.AddrPort, name string, block, window int) (size int) {
	r := newRaw(b, at)
	options := []string{name, "octet", "blksize", itoa(block)}
	if window > 0 {
		options = append(options, "windowsize", itoa(window))
	}
	r.request(opRead, options...)
	if r.receive(soon) == "" {
		b.Fatal("no answer")
	}
	r.ack(0)
	for last := 1; ; last++ {
		n := len(r.receive(soon)) - 4
		if n < 0 {
			b.Fatal("no packet")
		}
		if size += n; n < block || last%max(window, 1) == 0 {
			r.ack(uint16(last)) //nolint:gosec // wraps around
		}
		if n < block {
			return size
		}
	}
}
