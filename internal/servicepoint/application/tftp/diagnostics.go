package tftp

import (
	"sync"
	"sync/atomic"
)

// The reasons of requests that got no file, as shown in the diagnostics.
const (
	refusedName     = "fileNotFound"
	refusedPath     = "invalidName"
	refusedMode     = "unsupportedMode"
	refusedWrite    = "write"
	refusedPacket   = "malformed"
	refusedBusy     = "tooManyTransfers"
	refusedRepeated = "repeated"
	// receiveFailed counts failures of a socket, not requests.
	receiveFailed = "receiveFailed"
)

// counts are the numbers of transfers and octets, and of refused requests by reason.
type counts struct {
	done, failed, bytes, webAnswers, webBytes atomic.Int64

	mu      sync.Mutex
	refused map[string]int64 // guarded by mu
}

// refuse counts a refused request.
func (c *counts) refuse(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused == nil {
		c.refused = map[string]int64{}
	}
	c.refused[reason]++
}

// Diagnostics are the diagnostics of the application.
type Diagnostics struct {
	// Revision is the revision of the content in use; empty if there is none.
	Revision string `json:"revision"`
	Files    int    `json:"files"`
	Bytes    int64  `json:"bytes"`
	// ID is the start time in Unix milliseconds.
	ID int64 `json:"id"`
	// Active is the number of current transfers over TFTP. Completed and Failed count the ended ones since the start, Sent the octets of
	// files that clients acknowledged.
	Active    int   `json:"active"`
	Completed int64 `json:"completed"`
	Failed    int64 `json:"failed"`
	Sent      int64 `json:"sent"`
	// HTTPAnswers counts the files sent over HTTP, HTTPSent their octets.
	HTTPAnswers int64 `json:"httpAnswers"`
	HTTPSent    int64 `json:"httpSent"`
	// Refused counts the requests without a file, by reason.
	Refused map[string]int64 `json:"refused"`
}

// Diagnostics returns the size of the tree and the numbers of transfers.
func (s *server) Diagnostics() any {
	t := s.tree.Load()
	s.mu.Lock()
	active := len(s.active)
	s.mu.Unlock()
	d := Diagnostics{Revision: t.revision, Files: len(t.files), Bytes: t.bytes, ID: s.started.UnixMilli(), Active: active,
		Completed: s.counts.done.Load(), Failed: s.counts.failed.Load(), Sent: s.counts.bytes.Load(),
		HTTPAnswers: s.counts.webAnswers.Load(), HTTPSent: s.counts.webBytes.Load(), Refused: map[string]int64{}}
	s.counts.mu.Lock()
	defer s.counts.mu.Unlock()
	for reason, n := range s.counts.refused {
		d.Refused[reason] = n
	}
	return d
}
