package dhcp

import (
	"net"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/net/ipv4"
)

// fakeSocket records the batches that it sends. It refuses packets whose first octet is 0.
type fakeSocket struct{ batches [][]byte }

func (f *fakeSocket) WriteBatch(messages []ipv4.Message, _ int) (int, error) {
	var batch []byte
	for _, m := range messages {
		if m.Buffers[0][0] == 0 {
			if len(batch) > 0 {
				break
			}
			return -1, syscall.EHOSTUNREACH
		}
		batch = append(batch, m.Buffers[0][0])
	}
	f.batches = append(f.batches, batch)
	return len(batch), nil
}

// TestOutbox checks that replies outside of a batch leave at once, that those of a batch leave together when it ends or is full, and that
// one that cannot be sent does not delay the others.
func TestOutbox(t *testing.T) {
	var o outbox
	one, other := &fakeSocket{}, &fakeSocket{}
	failed := 0
	send := func(s *fakeSocket, first byte) {
		o.send(s, []byte{first}, nil, &net.UDPAddr{}, func(err error) {
			if failed++; err == nil {
				t.Error("a failure has no reason")
			}
		})
	}
	expect := func(s *fakeSocket, want ...string) {
		t.Helper()
		var got []string
		for _, b := range s.batches {
			got = append(got, string(b))
		}
		if !slices.Equal(got, want) {
			t.Errorf("sent %q, want %q", got, want)
		}
		s.batches = nil
	}
	send(one, 'a')
	expect(one, "a")
	o.openBatch()
	send(one, 'b')
	send(one, 0)
	send(one, 'c')
	send(one, 'd')
	send(other, 'e')
	expect(one)
	o.closeBatch()
	expect(one, "b", "cd")
	expect(other, "e")
	if failed != 1 {
		t.Errorf("%d replies failed", failed)
	}
	o.openBatch()
	o.openBatch()
	for range batchSize {
		send(one, 'x')
	}
	send(one, 'y')
	if len(one.batches) != 1 || len(one.batches[0]) != batchSize {
		t.Errorf("a full batch waits: %q", one.batches)
	}
	one.batches = nil
	o.closeBatch()
	expect(one, "y")
	send(one, 'z')
	o.closeBatch()
	expect(one, "z")
}
