package tftp

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"portolan/internal/wire/content"
	"portolan/internal/wire/filetree"
)

// tree is an immutable tree of files.
type tree struct {
	// revision is the revision of the content; empty without content. files are the files by their path.
	revision string
	files    map[string]*blob
	// blobs are the contents of the files by their hash.
	blobs map[string]*blob
	bytes int64
}

// blob is the content of a file. It is a part of a temporary file, or in memory where no temporary file can be created.
type blob struct {
	reader io.ReaderAt
	offset int64
	size   int64
	hash   string
}

// open returns a reader for the content.
func (b *blob) open() *io.SectionReader { return io.NewSectionReader(b.reader, b.offset, b.size) }

// loader applies one stream to a tree. It implements filetree.Receiver.
type loader struct {
	before *tree
	after  *tree
	// space receives the new contents.
	space *space
	// now is the content that arrives; sum is its hash so far. Both are nil before the first one.
	now      *blob
	sum      hash.Hash
	manifest filetree.Manifest
	envelope content.Envelope
}

// Start checks that the stream applies to the tree.
func (l *loader) Start(h content.Envelope, m filetree.Manifest) error {
	if h.From != "" && h.From != l.before.revision {
		return fmt.Errorf("the files begin at revision %q, and revision %q is served", h.From, l.before.revision)
	}
	l.manifest, l.envelope = m, h
	l.after = &tree{revision: h.To, files: map[string]*blob{}, blobs: map[string]*blob{}}
	return nil
}

// Blob begins a content.
func (l *loader) Blob(hash string) error {
	if err := l.finish(); err != nil {
		return err
	}
	l.now, l.sum = &blob{hash: hash, reader: l.space, offset: l.space.size}, sha256.New()
	return nil
}

// Data adds octets to the content.
func (l *loader) Data(data []byte) error {
	l.now.size += int64(len(data))
	if l.now.size > filetree.MaxFile || l.space.size+int64(len(data)) > filetree.MaxTotal {
		return fmt.Errorf("file content %.16s…: exceeds %d MiB for one file or %d MiB for all files", l.now.hash, filetree.MaxFile>>20,
			filetree.MaxTotal>>20)
	}
	_, _ = l.sum.Write(data) // a hash does not fail
	return l.space.add(data)
}

// finish ends the content that arrived.
func (l *loader) finish() error {
	if l.now == nil {
		return nil
	}
	if hex.EncodeToString(l.sum.Sum(nil)) != l.now.hash {
		return fmt.Errorf("the content %.16s… does not have this hash", l.now.hash)
	}
	l.after.blobs[l.now.hash], l.now = l.now, nil
	return nil
}

// End checks that the contents of all files are there.
func (l *loader) End() error {
	if err := l.finish(); err != nil {
		return err
	}
	arrived := l.after.blobs
	l.after.blobs = map[string]*blob{}
	for _, f := range l.manifest.Files {
		b := arrived[f.Hash]
		if b == nil && l.envelope.From != "" {
			b = l.before.blobs[f.Hash]
		}
		if b == nil || b.size != f.Size {
			return fmt.Errorf("the content of the file %q is missing", f.Path)
		}
		l.after.blobs[f.Hash] = b
		l.after.files[f.Path] = b
		l.after.bytes += f.Size
	}
	return nil
}

// load applies consecutive streams to a tree. After an error it returns the tree of the last complete stream, or the tree before if the
// first stream contains everything.
func load(in io.Reader, before *tree, s *space) (after *tree, err error) {
	r := bufio.NewReaderSize(in, 64<<10)
	after = before
	for first, replaced := true, false; ; first = false {
		if _, err := r.Peek(1); errors.Is(err, io.EOF) && !first {
			return after, nil
		}
		l := &loader{before: after, space: s}
		if err := filetree.Read(r, l); err != nil {
			if replaced {
				return before, err
			}
			return after, err
		}
		after, replaced = l.after, replaced || first && l.envelope.From == ""
	}
}

// space stores contents: in a temporary file without a name, which disappears when nothing refers to it, or in memory where none can be
// created.
type space struct {
	file *os.File
	text []byte
	size int64
	fail error
}

// newSpace returns an empty space.
func newSpace() *space {
	s := &space{}
	f, err := os.CreateTemp("", "portolan-files-")
	if err == nil {
		if err = os.Remove(f.Name()); err == nil {
			s.file = f
			return s
		}
		_ = f.Close()
	}
	s.fail = err
	return s
}

// maxMemory is the maximum number of octets that a space keeps in memory.
const maxMemory = 128 << 20

func (s *space) add(data []byte) (err error) {
	switch {
	case s.file != nil:
		_, err = s.file.WriteAt(data, s.size)
	case s.size+int64(len(data)) > maxMemory:
		err = fmt.Errorf("no temporary file can be created (%w), and the files have more than %d MiB", s.fail, maxMemory>>20)
	default:
		s.text = append(s.text, data...)
	}
	s.size += int64(len(data))
	return err
}

// ReadAt reads from the contents.
func (s *space) ReadAt(to []byte, offset int64) (int, error) {
	if s.file != nil {
		return s.file.ReadAt(to, offset)
	}
	return bytes.NewReader(s.text).ReadAt(to, offset)
}
