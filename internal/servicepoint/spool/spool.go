// Package spool stores records on the disk of a service point until the manager has acknowledged them (portolan/internal/wire/stream).
// Only one process may use a spool.
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

// Options are the limits of a spool.
type Options struct {
	// MaxBytes is the maximum size of the records in bytes; 0 means 16 MiB.
	MaxBytes int64
	// Lossy drops the oldest records when the spool is full. Without it Append fails with ErrFull.
	Lossy bool
}

// defaultBytes is the default of MaxBytes. segmentParts is the number of segments in a full spool.
const (
	defaultBytes = 16 << 20
	segmentParts = 8
)

// ErrFull is the error of Append if the spool is full and not Lossy.
var ErrFull = errors.New("the spool is full because the manager does not acknowledge records")

// ErrEmpty is the error of an empty record.
var ErrEmpty = errors.New("the record is empty")

// Spool is a queue of records on the disk. It is safe for concurrent use.
type Spool struct {
	dir     string
	name    string
	options Options
	segment int64 // bytes of a segment

	mu sync.Mutex
	// The following fields are guarded by mu. segments are the files, the oldest first. last is the open file of the last segment, which
	// grows.
	segments []*segment
	last     *os.File
	// acknowledged is the number of the first unacknowledged record. lost counts the records dropped since Open.
	acknowledged, lost int64
	// stored is the value of acknowledged on the disk.
	stored int64
	// more is closed when a record is added.
	more chan struct{}
	// broken is the permanent error of Append; nil while it works.
	broken error
}

// segment is a file of records.
type segment struct {
	path        string
	first, next int64 // the number of its first record, and the number after its last one
	size        int64
}

// digits is the number of digits in a segment's file name.
const digits = 20

// nameFile contains the name of the spool. acknowledgedFile contains the number of the first unacknowledged record.
const (
	nameFile         = "name"
	acknowledgedFile = "acknowledged"
)

// Open opens the spool in a directory and creates the directory if necessary. It removes an incomplete record that a crash left; Append
// has not confirmed such a record.
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
	for _, e := range entries { // sorted by number, because all names have the same length
		first, err := strconv.ParseInt(e.Name(), 10, 64)
		if err != nil || first < 1 || len(e.Name()) != digits {
			continue
		}
		one := &segment{path: filepath.Join(dir, e.Name()), first: first}
		if err := one.each(func([]byte) bool { return true }); err != nil { // finds the end of the segment
			return nil, err
		}
		s.segments = append(s.segments, one)
	}
	acknowledged, err := s.readAcknowledged()
	if err != nil {
		return nil, err
	}
	s.stored = acknowledged
	if len(s.segments) == 0 {
		s.acknowledged = max(1, acknowledged)
		return s, s.addSegment(s.acknowledged)
	}
	s.acknowledged = max(s.segments[0].first, acknowledged)
	tail := s.segments[len(s.segments)-1]
	if tail.next < s.acknowledged { // the segment is damaged: its numbers must not be reused
		return s, s.addSegment(s.acknowledged)
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

// readAcknowledged returns the number of the first unacknowledged record; 0 if the file is missing or unreadable.
func (s *Spool) readAcknowledged() (int64, error) {
	text, err := os.ReadFile(filepath.Join(s.dir, acknowledgedFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil { // all records are sent again; the manager skips duplicates
		return 0, nil //nolint:nilerr // see above
	}
	return n, nil
}

// readName reads the name of the spool, or creates one.
func (s *Spool) readName() error {
	path := filepath.Join(s.dir, nameFile)
	text, err := os.ReadFile(path) //nolint:gosec // a file of the service point
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

// write replaces a file atomically and syncs it to the disk.
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

// addSegment creates a segment. The caller holds mu, except in Open.
func (s *Spool) addSegment(first int64) error {
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

// header is the size of a record's header: its length and its checksum, 32 bits each.
const header = 8

// table is the checksum table.
var table = crc32.MakeTable(crc32.Castagnoli)

// each calls fn with each record until it returns false. It sets the end of the segment before the first incomplete record.
func (s *segment) each(fn func(record []byte) bool) error {
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
			return ignoreEOF(err)
		}
		length := binary.BigEndian.Uint32(head[:])
		if length == 0 || length > stream.MaxRecord { // an empty record is unwritten space that a file system left after a crash
			return nil
		}
		record := make([]byte, length)
		if _, err := io.ReadFull(in, record); err != nil {
			return ignoreEOF(err)
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

// ignoreEOF converts an end of file to nil.
func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// Append stores records on the disk. It stores all or none, and returns ErrFull, ErrEmpty, stream.ErrTooLong or an error of the disk.
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
	if err := s.freeSpace(int64(len(text))); err != nil {
		return err
	}
	err := s.write(text)
	for s.options.Lossy && errors.Is(err, syscall.ENOSPC) && len(s.segments) > 1 && s.broken == nil { // drop the oldest segment to free space
		s.lost += max(0, s.segments[0].next-s.acknowledged)
		s.acknowledged = max(s.acknowledged, s.segments[0].next)
		if err = s.drop(); err == nil {
			err = s.write(text)
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

// Skip counts records that were lost before they reached the spool: it passes over their numbers, so that the manager counts them.
func (s *Spool) Skip(n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n <= 0 || s.broken != nil {
		return s.broken
	}
	s.lost += n
	return s.addSegment(s.segments[len(s.segments)-1].next + n)
}

// write writes text after the last complete record. After an error it removes the incomplete text. The caller holds mu.
func (s *Spool) write(text []byte) error {
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

// freeSpace drops acknowledged segments and, if the spool is Lossy, the oldest ones. The caller holds mu.
func (s *Spool) freeSpace(size int64) error {
	if tail := s.segments[len(s.segments)-1]; tail.size > 0 && tail.size+size > s.segment {
		if err := s.addSegment(tail.next); err != nil {
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

// drop removes the oldest segment. The caller holds mu.
func (s *Spool) drop() error {
	err := os.Remove(s.segments[0].path)
	s.segments = s.segments[1:]
	return err
}

// Next returns the next batch of records to send; ok is false if there are none. The records stay until they are acknowledged.
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
		case one.first != b.First+int64(len(b.Records)): // after a gap in the numbers a new batch starts
			return b, true, nil
		}
		number, full, copied := one.first, false, *one
		if err := copied.each(func(record []byte) bool {
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
		if copied.next < one.next && i < len(s.segments)-1 { // the segment was damaged meanwhile; the manager counts the missing records
			one.next = copied.next
		}
	}
	return b, len(b.Records) > 0, nil
}

// ErrForeign reports an acknowledgement of records that the spool never contained. The manager knows a later state, because the machine
// was restored to an earlier one. Call Renew to continue under another name.
var ErrForeign = errors.New("the manager has records that this spool lacks: the spool was restored to an earlier state")

// Acknowledge deletes the records before a number. After an error the caller must call it again.
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
	if s.acknowledged == tail.next && tail.size > 0 { // an empty segment preserves the number
		err = s.addSegment(tail.next)
	}
	for len(s.segments) > 1 && s.segments[0].next <= s.acknowledged {
		if failed := s.drop(); failed != nil {
			return errors.Join(err, failed)
		}
	}
	if s.acknowledged != s.stored {
		if failed := write(filepath.Join(s.dir, acknowledgedFile), strconv.AppendInt(nil, s.acknowledged, 10)); failed != nil {
			return errors.Join(err, failed)
		}
		s.stored = s.acknowledged
	}
	return err
}

// Renew gives the spool a new name. The manager then treats unacknowledged records as those of a new source.
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

// Arrivals returns a channel that is closed when a record is added.
func (s *Spool) Arrivals() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.more
}

// Waiting returns the number of unacknowledged records.
func (s *Spool) Waiting() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.segments[len(s.segments)-1].next - s.acknowledged
}

// Dropped returns the number of records dropped since Open because the spool was full.
func (s *Spool) Dropped() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// Close closes the spool. Its records stay on the disk.
func (s *Spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = errors.New("the spool is closed")
	return s.last.Close()
}
