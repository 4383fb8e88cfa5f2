// Package udpbatch reads and writes UDP packets in batches, so that a server makes one system call for many packets. It allocates no memory
// for a packet that is answered within its batch. The servers of DNS use it; it knows nothing about their messages.
package udpbatch

// Sizes of a batch.
const (
	// Size is the maximum number of packets in a batch.
	Size = 32
	// MaxQuery is the maximum size of a received packet in bytes. The rest of a longer packet is lost.
	MaxQuery = 4096
	// MaxAnswer is the capacity of the buffer for an answer in bytes.
	MaxAnswer = 1744
)
