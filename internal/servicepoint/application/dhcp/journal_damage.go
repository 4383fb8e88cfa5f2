package dhcp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

// readSegment calls fn for each record. It returns the number of the last valid record, and the position of its end. After a damaged record
// it continues with the next valid one: lost is true if records are missing that no checkpoint contains.
func (j *journal) readSegment(first uint64, fn func(uint64, []byte) error) (last uint64, end int64, lost bool, err error) {
	f, err := os.Open(j.path(first))
	if err != nil {
		return 0, 0, false, err
	}
	defer func() { _ = f.Close() }()
	in := bufio.NewReaderSize(f, entryBuffer)
	for last = first - 1; ; {
		number, entry, err := readEntry(in)
		if errors.Is(err, io.EOF) || err == nil && number <= last {
			at, found, err := nextEntry(f, end, last)
			if err != nil || !found {
				return last, end, lost, err
			}
			if _, err := f.Seek(at, io.SeekStart); err != nil {
				return last, end, lost, err
			}
			in.Reset(f)
			end = at
			continue
		}
		if err == nil {
			err = fn(number, entry)
		}
		if err != nil {
			return last, end, lost, err
		}
		lost = lost || number > last+1 && number-1 > j.checkpoint
		last, end = number, end+entryHeader+int64(len(entry))
	}
}

// nextEntry returns the position of the first valid record after a position whose number is higher than last. The octets before it are
// those of damaged records. At the end of a journal there is none: an interrupted write.
func nextEntry(f *os.File, from int64, last uint64) (at int64, found bool, err error) {
	info, err := f.Stat()
	if err != nil || info.Size() <= from {
		return 0, false, err
	}
	rest := make([]byte, min(info.Size()-from, 2*defaultSegment))
	if _, err := f.ReadAt(rest, from); err != nil {
		return 0, false, err
	}
	for i := 1; i+entryHeader <= len(rest); i++ {
		length := binary.BigEndian.Uint32(rest[i:])
		if length == 0 || length > maxEntry || int(length) > len(rest)-i-entryHeader {
			continue
		}
		entry := rest[i+8 : i+entryHeader+int(length)]
		if binary.BigEndian.Uint64(entry) > last && crc32.Checksum(entry, castagnoli) == binary.BigEndian.Uint32(rest[i+4:]) {
			return from + int64(i), true, nil
		}
	}
	return 0, false, nil
}

// maxJournal is the size of the segments in bytes after which records are dropped: first those that the manager does not get, then its
// digests of renewals. Beginnings and ends of leases are never dropped.
const maxJournal = 4 << 30

// usage returns the size of all segments in bytes.
func (j *journal) usage() (total int64, err error) {
	j.mu.Lock()
	segments := append([]uint64(nil), j.segments...)
	j.mu.Unlock()
	for _, one := range segments {
		info, err := os.Stat(j.path(one))
		if err != nil {
			return 0, err
		}
		total += info.Size()
	}
	return total, nil
}

// shrink drops records of the oldest segments until the journal has at most limit bytes. Only segments whose records are in the checkpoint
// are changed. One goroutine calls shrink and writeCheckpoint.
func (j *journal) shrink(limit int64) (dropped int, err error) {
	total, err := j.usage()
	if err != nil || total <= limit {
		return 0, err
	}
	j.mu.Lock()
	segments, checkpoint := append([]uint64(nil), j.segments...), j.checkpoint
	j.mu.Unlock()
	for _, keep := range []string{string([]byte{entryEvent, entryDigest, entrySnapshot, entryPairReport}),
		string([]byte{entryEvent, entrySnapshot, entryPairReport})} {
		for i := 0; i+1 < len(segments) && segments[i+1] <= checkpoint+1; i++ {
			if total <= limit {
				return dropped, nil
			}
			freed, n, err := j.rewrite(segments[i], keep)
			if err != nil {
				return dropped, err
			}
			total, dropped = total-freed, dropped+n
		}
	}
	return dropped, nil
}

// rewrite drops the records of a segment whose kinds are not in keep.
func (j *journal) rewrite(segment uint64, keep string) (freed int64, dropped int, err error) {
	path := j.path(segment)
	f, err := os.CreateTemp(j.dir, incompleteFile)
	if err != nil {
		return 0, 0, err
	}
	out := bufio.NewWriterSize(f, 256<<10)
	size := int64(0)
	_, end, _, err := j.readSegment(segment, func(number uint64, entry []byte) error {
		for i := range len(keep) {
			if entry[0] == keep[i] {
				n, err := out.Write(appendEntry(nil, number, entry))
				size += int64(n)
				return err
			}
		}
		dropped++
		return nil
	})
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil && dropped > 0 {
		err = os.Rename(f.Name(), filepath.Clean(path))
	}
	if err != nil || dropped == 0 {
		return 0, 0, errors.Join(err, os.Remove(f.Name()))
	}
	return end - size, dropped, syncFolder(j.dir)
}

// missingRecords returns the error about records that no segment contains.
func missingRecords(first, last uint64) error {
	return fmt.Errorf("%w: the records from %d to %d are missing", errDamaged, first, last)
}
