// Package spool keeps records on the disk of a service point until a manager has acknowledged them (portolan/internal/wire/stream). A spool
// belongs to one process.
package spool

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"portolan/internal/wire/stream"
)

// Options bound a spool.
type Options struct {
	// MaxBytes is how many octets the records may take; 0 means 16 MiB.
	MaxBytes int64
	// Lossy gives up the oldest records where there is no room. Without it Append fails with ErrFull.
	Lossy bool
}

// defaultBytes is MaxBytes where nothing is said, and segmentParts how many segments the room is divided into.
const (
	defaultBytes = 16 << 20
	segmentParts = 8
)

// ErrFull is the error of Append where there is no room and nothing may be given up.
var ErrFull = errors.New("the spool is full: the manager acknowledges nothing")

// ErrEmpty is the error of a record without octets.
var ErrEmpty = errors.New("the record is empty")

// Spool is a queue of records on the disk. It is safe for concurrent use.
type Spool struct {
	dir     string
	name    string
	options Options
	segment int64 // octets of a segment

	mu sync.Mutex
	// What follows is guarded by mu. segments are the files, the oldest first; the last one is open, and grows.
	segments []*segment
	last     *os.File
	// acknowledged is the number of the first record that is not, lost how many records were given up since Open.
	acknowledged, lost int64
	// noted is the number that the disk has of acknowledged.
	noted int64
	// more is closed when a record comes.
	more chan struct{}
	// broken is why nothing can be appended any more; nil while that works.
	broken error
}

// segment is a file of records.
type segment struct {
	path        string
	first, next int64 // the numbers of its first record, and of the one behind its last
	size        int64
}

// digits is how many digits the name of a segment has.
const digits = 20

// nameFile has the name of the spool, acknowledgedFile the number of the first record that is not acknowledged.
const (
	nameFile         = "name"
	acknowledgedFile = "acknowledged"
)

// Open opens the spool of a directory, which is made where it is missing. What a crash has left of a record that was being written is cut
// off; it was not acknowledged to the caller of Append.
func Open(dir string, o Options) (*Spool, error) {
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultBytes
	}
	s := &Spool{dir: dir, options: o, segment: max(o.MaxBytes/segmentParts, 1), acknowledged: 1, more: make(chan struct{})}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := s.readName(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries { // in the order of their numbers, which have as many digits
		first, err := strconv.ParseInt(e.Name(), 10, 64)
		if err != nil || first < 1 || len(e.Name()) != digits {
			continue
		}
		one := &segment{path: filepath.Join(dir, e.Name()), first: first}
		if err := one.read(func([]byte) bool { return true }); err != nil { // which finds its end
			return nil, err
		}
		s.segments = append(s.segments, one)
	}
	acknowledged, err := s.readAcknowledged()
	if err != nil {
		return nil, err
	}
	s.noted = acknowledged
	if len(s.segments) == 0 {
		s.acknowledged = max(1, acknowledged)
		return s, s.begin(s.acknowledged)
	}
	s.acknowledged = max(s.segments[0].first, acknowledged)
	tail := s.segments[len(s.segments)-1]
	if tail.next < s.acknowledged { // it is damaged: the numbers of what it had are not given again
		return s, s.begin(s.acknowledged)
	}
	if s.last, err = os.OpenFile(tail.path, os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if err := s.last.Truncate(tail.size); err != nil {
		return nil, errors.Join(err, s.last.Close())
	}
	_, err = s.last.Seek(tail.size, io.SeekStart)
	return s, err
}

// readAcknowledged reads the number of the first record that is not acknowledged; 0 where none is.
func (s *Spool) readAcknowledged() (int64, error) {
	text, err := os.ReadFile(filepath.Join(s.dir, acknowledgedFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil { // without it what is there is sent again, and passed over
		return 0, nil //nolint:nilerr // as it says
	}
	return n, nil
}

// readName reads the name of the spool, or makes one.
func (s *Spool) readName() error {
	path := filepath.Join(s.dir, nameFile)
	text, err := os.ReadFile(path) //nolint:gosec // the service point's own
	if err == nil && stream.IsName(string(text)) {
		s.name = string(text)
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.name = rand.Text()
	return write(path, []byte(s.name))
}

// write writes a file, and makes it last.
func write(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// begin begins a segment. mu is held, but in Open.
func (s *Spool) begin(first int64) error {
	one := &segment{path: filepath.Join(s.dir, fmt.Sprintf("%0*d", digits, first)), first: first, next: first}
	f, err := os.OpenFile(one.path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := syncDir(s.dir); err != nil {
		return errors.Join(err, f.Close())
	}
	if s.last != nil {
		err = s.last.Close()
	}
	s.segments, s.last = append(s.segments, one), f
	return err
}

// header is how long the head of a record is: its length and its checksum, of 32 bits each.
const header = 8

// table is that of the checksums.
var table = crc32.MakeTable(crc32.Castagnoli)

// read gives each record to fn until it returns false, and notes where the segment ends: before the first record that is not whole.
func (s *segment) read(fn func(record []byte) bool) error {
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	in := bufio.NewReader(f)
	s.next, s.size = s.first, 0
	for {
		var head [header]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return ended(err)
		}
		length := binary.BigEndian.Uint32(head[:])
		if length == 0 || length > stream.MaxRecord { // an empty one is what a file system leaves of an end that was not written
			return nil
		}
		record := make([]byte, length)
		if _, err := io.ReadFull(in, record); err != nil {
			return ended(err)
		}
		if crc32.Checksum(record, table) != binary.BigEndian.Uint32(head[4:]) {
			return nil
		}
		s.next++
		s.size += header + int64(length)
		if !fn(record) {
			return nil
		}
	}
}

// ended takes an end of the file as none.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// Append adds records, which are on the disk when it returns. It fails as a whole: with ErrFull, where a record is too long, or where the
// disk does.
func (s *Spool) Append(records ...json.RawMessage) error {
	var text []byte
	for _, r := range records {
		if len(r) == 0 {
			return ErrEmpty
		}
		if len(r) > stream.MaxRecord {
			return stream.ErrTooLong
		}
		text = binary.BigEndian.AppendUint32(text, uint32(len(r))) //nolint:gosec // at most MaxRecord
		text = binary.BigEndian.AppendUint32(text, crc32.Checksum(r, table))
		text = append(text, r...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return s.broken
	}
	if err := s.makeRoom(int64(len(text))); err != nil {
		return err
	}
	err := s.put(text)
	for s.options.Lossy && errors.Is(err, syscall.ENOSPC) && len(s.segments) > 1 && s.broken == nil { // the oldest makes room
		s.lost += max(0, s.segments[0].next-s.acknowledged)
		s.acknowledged = max(s.acknowledged, s.segments[0].next)
		if err = s.drop(); err == nil {
			err = s.put(text)
		}
	}
	if err != nil {
		return err
	}
	tail := s.segments[len(s.segments)-1]
	tail.size += int64(len(text))
	tail.next += int64(len(records))
	close(s.more)
	s.more = make(chan struct{})
	return nil
}

// put writes text behind the last whole record. Where that fails, nothing of it is left behind that. mu is held.
func (s *Spool) put(text []byte) error {
	tail := s.segments[len(s.segments)-1]
	_, err := s.last.Write(text)
	if err == nil {
		err = s.last.Sync()
	}
	if err == nil {
		return nil
	}
	back := s.last.Truncate(tail.size)
	if _, at := s.last.Seek(tail.size, io.SeekStart); back != nil || at != nil {
		s.broken = errors.Join(err, back, at)
	}
	return err
}

// makeRoom gives up what is acknowledged and, where that may be, what is oldest. mu is held.
func (s *Spool) makeRoom(size int64) error {
	if tail := s.segments[len(s.segments)-1]; tail.size > 0 && tail.size+size > s.segment {
		if err := s.begin(tail.next); err != nil {
			return err
		}
	}
	total := size
	for _, one := range s.segments {
		total += one.size
	}
	for total > s.options.MaxBytes && len(s.segments) > 1 {
		oldest := s.segments[0]
		if oldest.next > s.acknowledged && !s.options.Lossy {
			return ErrFull
		}
		s.lost += max(0, oldest.next-s.acknowledged)
		s.acknowledged = max(s.acknowledged, oldest.next)
		total -= oldest.size
		if err := s.drop(); err != nil {
			return err
		}
	}
	if total > s.options.MaxBytes && !s.options.Lossy {
		return ErrFull
	}
	return nil
}

// drop removes the oldest segment. mu is held.
func (s *Spool) drop() error {
	err := os.Remove(s.segments[0].path)
	s.segments = s.segments[1:]
	return err
}

// Next returns the records that are to be sent next, as many as a batch has room for; ok is false where there are none. They stay until
// they are acknowledged.
func (s *Spool) Next() (b stream.Batch, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.Spool = s.name
	size := 0
	for i, one := range s.segments {
		if one.next <= s.acknowledged {
			continue
		}
		switch {
		case len(b.Records) == 0:
			b.First = max(s.acknowledged, one.first)
		case one.first != b.First+int64(len(b.Records)): // something is missing in between: another batch begins there
			return b, true, nil
		}
		number, full, copied := one.first, false, *one
		if err := copied.read(func(record []byte) bool {
			if number++; number <= s.acknowledged {
				return true
			}
			if full = len(b.Records) == stream.MaxRecords || size+len(record) > stream.MaxBatch; !full {
				b.Records, size = append(b.Records, record), size+len(record)
			}
			return !full
		}); err != nil {
			return b, false, err
		}
		if full {
			break
		}
		if copied.next < one.next && i < len(s.segments)-1 { // it was damaged since: what is missing is counted by the manager
			one.next = copied.next
		}
	}
	return b, len(b.Records) > 0, nil
}

// ErrForeign is the error of an acknowledgement of records that the spool never numbered: the manager knows a later state of it, as where a
// machine was set back to an earlier one. Renew goes on under another name.
var ErrForeign = errors.New("the manager has records that this spool does not: it was set back to an earlier state")

// Acknowledge forgets the records before a number. Where the disk does not let it note that, it is to be called again.
func (s *Spool) Acknowledge(next int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return s.broken
	}
	tail := s.segments[len(s.segments)-1]
	if next > tail.next {
		return ErrForeign
	}
	s.acknowledged = max(s.acknowledged, next)
	var err error
	if s.acknowledged == tail.next && tail.size > 0 { // an empty segment keeps the number
		err = s.begin(tail.next)
	}
	for len(s.segments) > 1 && s.segments[0].next <= s.acknowledged {
		if failed := s.drop(); failed != nil {
			return errors.Join(err, failed)
		}
	}
	if s.acknowledged != s.noted {
		if failed := write(filepath.Join(s.dir, acknowledgedFile), strconv.AppendInt(nil, s.acknowledged, 10)); failed != nil {
			return errors.Join(err, failed)
		}
		s.noted = s.acknowledged
	}
	return err
}

// Renew gives the spool another name: what is not acknowledged is sent as that of a new source.
func (s *Spool) Renew() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := rand.Text()
	if err := write(filepath.Join(s.dir, nameFile), []byte(name)); err != nil {
		return err
	}
	s.name = name
	return nil
}

// More returns a channel that is closed when a record comes.
func (s *Spool) More() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.more
}

// Waiting returns how many records are not acknowledged.
func (s *Spool) Waiting() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.segments[len(s.segments)-1].next - s.acknowledged
}

// Lost returns how many records were given up since Open for want of room.
func (s *Spool) Lost() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// Close closes the spool. What is in it stays.
func (s *Spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = errors.New("the spool is closed")
	return s.last.Close()
}
