package dhcp

import (
	"bufio"
	"errors"
	"io"
	"os"
)

// cursor reads the records of a journal in order.
type cursor struct {
	j *journal
	// next is the number of the next record to return, and at that of the next record in the file. segment is the number of the file.
	next, at, segment uint64
	// end is the position of the end of the last record in the file.
	end      int64
	file     *os.File
	in       *bufio.Reader
	failures uint64
}

// cursor returns a cursor at the first record that the agent lacks.
func (j *journal) cursor() *cursor {
	j.mu.Lock()
	defer j.mu.Unlock()
	first := j.acked + 1
	if len(j.segments) > 0 {
		first = max(first, j.segments[0])
	}
	return &cursor{j: j, next: min(first, j.last.Load()+1)}
}

// read returns the next record; ok is false if there is none yet. It passes over records that are damaged or deleted.
func (c *cursor) read() (number uint64, entry []byte, ok bool, err error) {
	for c.next <= c.j.last.Load() {
		if f := c.j.failures.Load(); f != c.failures || c.file == nil { // a failed write was rolled back, and may be in the buffer
			c.failures = f
			if err := errors.Join(c.close(), c.open(0)); err != nil {
				return 0, nil, false, err
			}
		}
		number, entry, err = readEntry(c.in)
		if errors.Is(err, io.EOF) || err == nil && number < c.at { // the segment ends here, or has a damaged record
			if err := c.skip(); err != nil {
				return 0, nil, false, err
			}
			continue
		}
		if err != nil {
			return 0, nil, false, err
		}
		c.at, c.end = number+1, c.end+entryHeader+int64(len(entry)) // dropped records leave gaps
		if number >= c.next {
			c.next = number + 1
			return number, entry, true, nil
		}
	}
	return 0, nil, false, nil
}

// skip passes over damaged records to the next valid one, or to the next segment.
func (c *cursor) skip() error {
	at, found, err := nextEntry(c.file, c.end, c.at-1)
	if err != nil || !found {
		return errors.Join(err, c.close(), c.open(c.segment))
	}
	c.end = at
	_, err = c.file.Seek(at, io.SeekStart)
	c.in.Reset(c.file)
	return err
}

// open opens the segment with the next record, or the first one after a segment.
func (c *cursor) open(after uint64) (err error) {
	c.j.mu.Lock()
	segment := uint64(0)
	for _, one := range c.j.segments {
		if one > after && (segment == 0 || after == 0 && one <= c.next) {
			segment = one
		}
	}
	c.j.mu.Unlock()
	if segment == 0 {
		return errDamaged
	}
	c.next, c.at, c.segment, c.end = max(c.next, segment), segment, segment, 0
	if c.file, err = os.Open(c.j.path(segment)); err == nil {
		c.in = bufio.NewReaderSize(c.file, entryBuffer)
	}
	return err
}

func (c *cursor) close() error {
	if c.file == nil {
		return nil
	}
	err := c.file.Close()
	c.file, c.in = nil, nil
	return err
}
