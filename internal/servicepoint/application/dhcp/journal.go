package dhcp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// journal is the file of the leases: segments of records with sequence numbers, and a checkpoint with all leases. A record is on the disk
// before the client gets its ACK. One goroutine appends; others read.
type journal struct {
	dir     string
	options journalOptions
	// last is the sequence number of the last record that is on the disk.
	last atomic.Uint64
	// failures counts the failed writes, after which readers read the file anew.
	failures atomic.Uint64

	// writing is held while records are written, and acknowledging while the file with the acknowledged number is. Neither is held together
	// with the lock of readers: nobody else waits for the disk.
	writing, acknowledging sync.Mutex
	// The following fields are guarded by writing: the open file of the last segment with its size, the reason why it is not usable, and a
	// buffer for records.
	file   journalFile
	size   int64
	broken error
	text   []byte

	mu sync.Mutex
	// The following fields are guarded by mu: the segments by their first number, the number of the newest checkpoint, the last number that
	// the agent has stored, and a channel that is closed when records are added.
	segments   []uint64
	checkpoint uint64
	acked      uint64
	more       chan struct{}
}

// journalFile is an open segment.
type journalFile interface {
	io.Writer
	Sync() error
	Truncate(size int64) error
	Close() error
}

// journalOptions are the limits of a journal, and its access to files, which tests replace.
type journalOptions struct {
	segmentSize int64
	open        func(path string) (journalFile, error)
	// times are the sources of time at the start of an engine.
	times *times
}

// defaultSegment is the default size of a segment in bytes. maxEntry is the maximum size of a record.
const (
	defaultSegment = 64 << 20
	maxEntry       = 128 << 10
	entryHeader    = 16
	// maxKeptText is the maximum size of the buffer that is kept between two groups of records.
	maxKeptText = 1 << 20
	// entryBuffer is the size of the buffer to read records.
	entryBuffer = 256 << 10
)

// Names of files in the folder of a journal.
const (
	segmentSuffix    = ".log"
	checkpointPrefix = "checkpoint-"
	ackedFile        = "acknowledged"
	incompleteFile   = ".new-"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errDamaged reports a damaged record that is not at the end of the journal.
var errDamaged = errors.New("the journal of leases is damaged")

// openJournal opens the journal in a folder, and calls apply for the entries of the newest checkpoint, and for the records after it. It
// cuts an incomplete record at the end, which no client has an ACK for. If a record in the middle is damaged, it applies those after it,
// and returns the journal together with errDamaged.
func openJournal(dir string, o journalOptions, apply func(entry []byte) error) (*journal, error) {
	if o.segmentSize <= 0 {
		o.segmentSize = defaultSegment
	}
	if o.open == nil {
		o.open = openAppend
	}
	j := &journal{dir: dir, options: o, more: make(chan struct{})}
	if err := os.MkdirAll(dir, 0o700); err != nil { //nolint:gosec // the folder that the service point provides
		return nil, err
	}
	checkpoints, err := j.list()
	if err != nil {
		return nil, err
	}
	var damage error
	for _, number := range slices.Backward(checkpoints) {
		if err := j.readCheckpoint(number, nil); err == nil {
			if err := j.readCheckpoint(number, apply); err != nil {
				return nil, err
			}
			j.checkpoint = number
			break
		}
		damage = fmt.Errorf("%w: checkpoint %d", errDamaged, number)
	}
	j.acked = j.readAcked()
	if err := j.replay(apply); errors.Is(err, errDamaged) {
		damage = err
	} else if err != nil {
		return nil, err
	}
	return j, damage
}

// list reads the names of the files. It sets the segments and returns the numbers of the checkpoints.
func (j *journal) list() (checkpoints []uint64, err error) {
	entries, err := os.ReadDir(j.dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, incompleteFile) {
			if err := os.Remove(filepath.Join(j.dir, name)); err != nil {
				return nil, err
			}
			continue
		}
		if text, ok := strings.CutSuffix(name, segmentSuffix); ok {
			if n, err := strconv.ParseUint(text, 10, 64); err == nil {
				j.segments = append(j.segments, n)
			}
		}
		if text, ok := strings.CutPrefix(name, checkpointPrefix); ok {
			if n, err := strconv.ParseUint(text, 10, 64); err == nil {
				checkpoints = append(checkpoints, n)
			}
		}
	}
	slices.Sort(j.segments)
	slices.Sort(checkpoints)
	return checkpoints, nil
}

func (j *journal) path(segment uint64) string {
	return filepath.Join(j.dir, fmt.Sprintf("%020d%s", segment, segmentSuffix))
}

// replay applies the records after the checkpoint, and opens the last segment for appending.
func (j *journal) replay(apply func([]byte) error) error {
	last := j.checkpoint
	var damage error
	for i, first := range j.segments {
		if first > last+1 {
			damage = missingRecords(last+1, first-1)
		}
		number, end, lost, err := j.readSegment(first, func(n uint64, entry []byte) error {
			if n <= j.checkpoint {
				return nil
			}
			return apply(entry)
		})
		if err != nil {
			return err
		}
		if last = max(last, number); lost {
			damage = fmt.Errorf("%w: segment %d", errDamaged, first)
		}
		if i == len(j.segments)-1 {
			j.size = end
		}
	}
	j.last.Store(last)
	if damage != nil || len(j.segments) == 0 { // the damaged file stays for examination
		if err := j.startSegment(last + 1); err != nil {
			return err
		}
		return damage
	}
	file, err := j.options.open(j.path(j.segments[len(j.segments)-1]))
	if err == nil {
		j.file, err = file, file.Truncate(j.size)
	}
	return err
}

// appendEntry appends a record.
func appendEntry(to []byte, number uint64, entry []byte) []byte {
	at := len(to)
	to = binary.BigEndian.AppendUint32(to, uint32(len(entry)))
	to = append(to, 0, 0, 0, 0)
	to = append(binary.BigEndian.AppendUint64(to, number), entry...)
	binary.BigEndian.PutUint32(to[at+4:], crc32.Checksum(to[at+8:], castagnoli))
	return to
}

// readEntry reads a record. It returns io.EOF at the end, and for an incomplete or invalid record. The entry is valid until the next read;
// the buffer of the reader has the size of a record at least.
func readEntry(in *bufio.Reader) (number uint64, entry []byte, err error) {
	head, err := in.Peek(entryHeader)
	if err != nil {
		return 0, nil, err
	}
	length := int(binary.BigEndian.Uint32(head))
	if length == 0 || length > maxEntry {
		return 0, nil, io.EOF
	}
	text, err := in.Peek(entryHeader + length)
	if err != nil {
		return 0, nil, err
	}
	if crc32.Checksum(text[8:], castagnoli) != binary.BigEndian.Uint32(text[4:]) {
		return 0, nil, io.EOF
	}
	number = binary.BigEndian.Uint64(text[8:])
	_, err = in.Discard(entryHeader + length) // it is in the buffer
	return number, text[entryHeader:], err
}

// startSegment starts a segment. The caller holds writing, except in openJournal.
func (j *journal) startSegment(first uint64) error {
	file, err := j.options.open(j.path(first))
	if err != nil {
		return err
	}
	if err := file.Truncate(0); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := syncFolder(j.dir); err != nil {
		return errors.Join(err, file.Close())
	}
	if j.file != nil {
		err = j.file.Close()
	}
	j.file, j.size = file, 0
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.Contains(j.segments, first) {
		j.segments = append(j.segments, first)
	}
	return err
}

// append writes records and waits until they are on the disk. It writes all or none.
func (j *journal) append(entries [][]byte) (err error) {
	j.writing.Lock()
	defer j.writing.Unlock()
	if j.broken != nil {
		return j.broken
	}
	first := j.last.Load() + 1
	if j.size >= j.options.segmentSize {
		if err := j.startSegment(first); err != nil {
			j.failures.Add(1)
			return err
		}
	}
	text := j.text[:0]
	for i, entry := range entries {
		if len(entry) == 0 || len(entry) > maxEntry {
			return fmt.Errorf("a record of %d octets", len(entry))
		}
		text = appendEntry(text, first+uint64(i), entry)
	}
	if cap(text) <= maxKeptText {
		j.text = text
	}
	if _, err = j.file.Write(text); err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		j.failures.Add(1)
		if back := j.file.Truncate(j.size); back != nil {
			j.broken = errors.Join(err, back)
		}
		return err
	}
	j.size += int64(len(text))
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last.Add(uint64(len(entries)))
	close(j.more)
	j.more = make(chan struct{})
	return nil
}

// wait returns a channel that is closed when records are added.
func (j *journal) wait() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.more
}

// writeCheckpoint writes all entries as a checkpoint. The records up to number are contained in it; later ones may be. It deletes the
// segments that are not needed any more.
func (j *journal) writeCheckpoint(number uint64, each func(add func(entry []byte) error) error) error {
	f, err := os.CreateTemp(j.dir, incompleteFile)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(f, 256<<10)
	count := uint64(0)
	err = each(func(entry []byte) error {
		count++
		_, err := out.Write(appendEntry(nil, count, entry))
		return err
	})
	if err == nil { // the end mark is a record with the number of entries
		_, err = out.Write(appendEntry(nil, 0, binary.BigEndian.AppendUint64(nil, count)))
	}
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), j.checkpointPath(number))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := syncFolder(j.dir); err != nil {
		return err
	}
	j.mu.Lock()
	before := j.checkpoint
	j.checkpoint = number
	j.mu.Unlock()
	if before != 0 && before != number {
		err = os.Remove(j.checkpointPath(before))
	}
	return errors.Join(err, j.prune())
}

func (j *journal) checkpointPath(number uint64) string {
	return filepath.Join(j.dir, fmt.Sprintf("%s%020d", checkpointPrefix, number))
}

// readCheckpoint calls apply for each entry; apply may be nil. It returns an error if the checkpoint is incomplete.
func (j *journal) readCheckpoint(number uint64, apply func([]byte) error) error {
	f, err := os.Open(j.checkpointPath(number))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	in := bufio.NewReaderSize(f, entryBuffer)
	for count := uint64(1); ; count++ {
		n, entry, err := readEntry(in)
		switch {
		case err != nil:
			return fmt.Errorf("%w: checkpoint %d has no end", errDamaged, number)
		case n == 0:
			if len(entry) != 8 || binary.BigEndian.Uint64(entry) != count-1 {
				return fmt.Errorf("%w: checkpoint %d lacks entries", errDamaged, number)
			}
			return nil
		case n != count:
			return fmt.Errorf("%w: checkpoint %d lacks entries", errDamaged, number)
		}
		if apply != nil {
			if err := apply(entry); err != nil {
				return err
			}
		}
	}
}

// prune deletes the segments whose records are in the checkpoint and stored by the agent.
func (j *journal) prune() error {
	for {
		j.mu.Lock()
		done := min(j.checkpoint, j.acked)
		if len(j.segments) < 2 || j.segments[1] > done+1 {
			j.mu.Unlock()
			return nil
		}
		path := j.path(j.segments[0])
		j.segments = j.segments[1:]
		j.mu.Unlock()
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err // the next start finds the file again
		}
	}
}

// sinceCheckpoint returns the number of records after the checkpoint.
func (j *journal) sinceCheckpoint() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last.Load() - min(j.checkpoint, j.last.Load())
}

// acknowledge records that the agent has stored the records up to a number. The number is written without a sync: after a crash some
// records are sent again, and the manager skips them.
func (j *journal) acknowledge(number uint64) error {
	j.acknowledging.Lock()
	defer j.acknowledging.Unlock()
	j.mu.Lock()
	known := number <= j.acked
	j.acked = max(j.acked, number)
	j.mu.Unlock()
	if known {
		return nil
	}
	path := filepath.Join(j.dir, incompleteFile+ackedFile)
	if err := os.WriteFile(path, strconv.AppendUint(nil, number, 10), 0o600); err != nil {
		return err
	}
	return os.Rename(path, filepath.Join(j.dir, ackedFile))
}

// readAcked returns the last acknowledged number; 0 if it is unknown.
func (j *journal) readAcked() uint64 {
	text, err := os.ReadFile(filepath.Join(j.dir, ackedFile))
	if err != nil {
		return 0
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (j *journal) close() error {
	j.writing.Lock()
	defer j.writing.Unlock()
	j.broken = errors.New("the journal is closed")
	return j.file.Close()
}
