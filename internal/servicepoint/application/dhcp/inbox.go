package dhcp

import "sync"

// inbox is the queue between the socket that receives messages and the engine. The receiver empties the buffer of the socket without
// waiting for decisions, and messages of clients with a lease come before those of new clients: in a flood of new clients the others are
// served.
type inbox[T any] struct {
	urgent, arrivals chan T
	working          sync.WaitGroup
	// full is called for each message that is dropped because its queue is full.
	full func()
	// outbox sends the replies to several messages together.
	outbox *outbox
}

// Sizes of the queues of an inbox in messages.
const (
	maxUrgent   = 4096
	maxArrivals = 1024
)

// newInbox starts an inbox. It calls handle for one message after the other.
func newInbox[T any](handle func(T), full func(), out *outbox) *inbox[T] {
	b := &inbox[T]{urgent: make(chan T, maxUrgent), arrivals: make(chan T, maxArrivals), full: full, outbox: out}
	b.working.Go(func() { b.work(handle) })
	return b
}

// put adds a message. arrives is true for a client that has no lease yet.
func (b *inbox[T]) put(x T, arrives bool) {
	to := b.urgent
	if arrives {
		to = b.arrivals
	}
	select {
	case to <- x:
	default:
		b.full()
	}
}

func (b *inbox[T]) work(handle func(T)) {
	for {
		var x T
		ok := true
		select {
		case x, ok = <-b.urgent:
		default:
			select {
			case x, ok = <-b.urgent:
			case x = <-b.arrivals:
			}
		}
		if !ok {
			return
		}
		b.outbox.openBatch()
		handle(x)
		for range maxHandled - 1 {
			if !b.next(handle) {
				break
			}
		}
		b.outbox.closeBatch()
	}
}

// next handles a message that waits. It returns false if there is none.
func (b *inbox[T]) next(handle func(T)) bool {
	if len(b.urgent) == 0 && len(b.arrivals) == 0 {
		return false
	}
	select {
	case x, ok := <-b.urgent:
		if ok {
			handle(x)
		}
		return ok
	default:
	}
	select {
	case x := <-b.arrivals:
		handle(x)
	default:
	}
	return true
}

// close ends the inbox after the message in work. Nobody puts messages any more.
func (b *inbox[T]) close() {
	close(b.urgent)
	b.working.Wait()
}

// isNewClient reports whether a packet of DHCPv4 is of a client without a lease, as far as its beginning tells: each message but those that
// have a type other than DISCOVER.
func isNewClient(packet []byte) bool {
	const optionsAt, discover = 240, 1
	for at := optionsAt; at+2 < len(packet); {
		switch code := packet[at]; code {
		case 53:
			return packet[at+2] == discover
		case 255:
			return true
		case 0:
			at++
		default:
			at += 2 + int(packet[at+1])
		}
	}
	return true
}
