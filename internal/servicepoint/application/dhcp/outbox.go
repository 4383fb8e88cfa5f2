package dhcp

import (
	"cmp"
	"io"
	"net"
	"sync"

	"golang.org/x/net/ipv4"
)

// outbox collects replies while several messages are handled, so that one system call sends many. Outside of a batch a reply is sent at
// once. The messages of golang.org/x/net are those of both families.
type outbox struct {
	mu sync.Mutex
	// The following fields are guarded by mu: the number of open batches, and the replies that wait for the end of one.
	open    int
	waiting []outgoing
}

// outgoing is a reply of a socket. failed is called if it cannot be sent.
type outgoing struct {
	socket  packetSocket
	message ipv4.Message
	failed  func(error)
}

// packetSocket is an ipv4.PacketConn or an ipv6.PacketConn.
type packetSocket interface {
	WriteBatch(messages []ipv4.Message, flags int) (int, error)
}

// batchSize is the maximum number of messages that one system call receives or sends, and maxHandled the maximum number of received
// messages whose replies wait for each other.
const (
	batchSize  = 32
	maxHandled = 16
)

// replyCapacity is the first capacity of a reply in bytes.
const replyCapacity = 576

// replies are buffers of replies to use again.
var replies = sync.Pool{New: func() any { b := make([]byte, 0, replyCapacity); return &b }}

// send sends a packet, or adds it to the open batch. control is the control message, and may be nil. The packet is used again when it has
// been sent.
func (o *outbox) send(socket packetSocket, packet, control []byte, to net.Addr, failed func(error)) {
	one := outgoing{socket, ipv4.Message{Buffers: [][]byte{packet}, OOB: control, Addr: to}, failed}
	o.mu.Lock()
	if o.open > 0 {
		if o.waiting = append(o.waiting, one); len(o.waiting) < batchSize {
			o.mu.Unlock()
			return
		}
	}
	all := o.waiting
	if o.waiting = nil; o.open == 0 {
		all = []outgoing{one}
	}
	o.mu.Unlock()
	transmit(all)
}

// openBatch opens a batch, which the caller closes.
func (o *outbox) openBatch() {
	o.mu.Lock()
	o.open++
	o.mu.Unlock()
}

// closeBatch closes a batch and sends the replies that wait, also those of other batches that are open.
func (o *outbox) closeBatch() {
	o.mu.Lock()
	o.open--
	all := o.waiting
	o.waiting = nil
	o.mu.Unlock()
	transmit(all)
}

// transmit sends replies, with one system call for those of a socket that follow each other.
func transmit(all []outgoing) {
	for len(all) > 0 {
		same := 1
		for same < len(all) && all[same].socket == all[0].socket {
			same++
		}
		messages := make([]ipv4.Message, same)
		for i := range messages {
			messages[i] = all[i].message
		}
		for sent := 0; sent < same; {
			n, err := all[sent].socket.WriteBatch(messages[sent:], 0)
			if sent += max(n, 0); (err != nil || n <= 0) && sent < same { // the first of the rest cannot be sent
				all[sent].failed(cmp.Or(err, io.ErrShortWrite))
				sent++
			}
		}
		for i := range messages {
			packet := messages[i].Buffers[0][:0]
			replies.Put(&packet)
		}
		all = all[same:]
	}
}
