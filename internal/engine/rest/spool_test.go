package rest

import (
	"bytes"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
)

// TestSpoolInMemory checks the limits of pieces in memory: a list may have many while all lists together have few, and some otherwise.
// Further pieces wait in a file, and all are sent in order. The counters are zero at the end.
func TestSpoolInMemory(t *testing.T) {
	var all backlog
	var own atomic.Int64
	fill := func(pieces int) *spool {
		s := newSpool(&all, &own, slog.Default())
		for i := range pieces {
			if _, err := s.put([]byte{byte(i)}); err != nil {
				t.Fatal(err)
			}
		}
		s.end()
		return s
	}
	one := fill(maxAhead + 2)
	if len(one.queue) != maxAhead || one.wrote != 2 {
		t.Errorf("alone, %d pieces are in memory and %d bytes in the file", len(one.queue), one.wrote)
	}
	many := []*spool{one}
	for all.pieces.Load() < maxAllAhead {
		many = append(many, fill(maxAhead))
	}
	late := fill(maxQueued + 3)
	if many = append(many, late); len(late.queue) != maxQueued || late.wrote != 3 {
		t.Errorf("beside many, %d pieces are in memory and %d bytes in the file", len(late.queue), late.wrote)
	}
	var read []byte
	for {
		piece, err := one.next(make([]byte, 8))
		if err != nil {
			t.Fatal(err)
		}
		if piece == nil {
			break
		}
		read = append(read, piece...)
	}
	want := make([]byte, maxAhead+2)
	for i := range want {
		want[i] = byte(i)
	}
	if !bytes.Equal(read, want) {
		t.Errorf("what comes out is %v", read)
	}
	for _, s := range many {
		s.free()
	}
	if all.pieces.Load() != 0 || all.bytes.Load() != 0 || own.Load() != 0 {
		t.Errorf("%d pieces and %d bytes are left of nothing", all.pieces.Load(), all.bytes.Load())
	}
}

// TestFullSpoolResumes checks that a list without room in files waits, and continues when its client has read some data.
func TestFullSpoolResumes(t *testing.T) {
	var all backlog
	var own atomic.Int64
	own.Store(maxOwnFiles - 1) // room for one byte more
	s := newSpool(&all, &own, slog.Default())
	const pieces = maxAhead + 50
	go func() {
		defer s.end()
		for i := range pieces {
			if _, err := s.put([]byte{byte(i)}); err != nil {
				t.Error(err)
			}
		}
	}()
	for i := range pieces {
		piece, err := s.next(make([]byte, 8))
		if err != nil || len(piece) != 1 || piece[0] != byte(i) {
			t.Fatalf("piece %d is %v: %v", i, piece, err)
		}
	}
	if piece, err := s.next(nil); piece != nil || err != nil {
		t.Errorf("behind the end is %v: %v", piece, err)
	}
	s.free()
	if all.bytes.Load() != 0 || own.Load() != maxOwnFiles-1 {
		t.Errorf("%d bytes are left", all.bytes.Load())
	}
}

// TestSpoolOnAFullDisk adds more pieces than fit into memory while the disk is full: the list waits for its client, and no data is lost.
// It runs often, so that the client also reads all pieces in memory during a write that fails.
func TestSpoolOnAFullDisk(t *testing.T) {
	for range 5000 {
		sendWithFullDisk(t)
	}
}

// sendWithFullDisk sends more pieces than fit into memory through a spool whose file is full.
func sendWithFullDisk(t *testing.T) {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("the system has no full disk: %v", err)
	}
	var all backlog
	var own atomic.Int64
	s := newSpool(&all, &own, slog.Default())
	s.file = full
	const pieces = maxAhead + 50
	go func() {
		defer s.end()
		for i := range pieces {
			if _, err := s.put([]byte{byte(i)}); err != nil {
				t.Error(err)
			}
		}
	}()
	s.mu.Lock()
	for len(s.queue) < maxAhead { // further pieces go to the disk
		s.moved.Wait()
	}
	s.mu.Unlock()
	for i := range pieces {
		piece, err := s.next(make([]byte, 8))
		if err != nil || len(piece) != 1 || piece[0] != byte(i) {
			t.Fatalf("piece %d is %v, %v", i, piece, err)
		}
	}
	if piece, err := s.next(make([]byte, 8)); piece != nil || err != nil {
		t.Errorf("behind the end: %v, %v", piece, err)
	}
	s.free()
	if all.pieces.Load() != 0 || all.bytes.Load() != 0 || own.Load() != 0 {
		t.Errorf("%d pieces and %d bytes are left of nothing", all.pieces.Load(), all.bytes.Load())
	}
}
