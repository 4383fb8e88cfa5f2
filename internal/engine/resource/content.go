package resource

import (
	"context"
	"errors"
	"io"
	"os"

	"portolan/internal/engine/store"
)

// Contents are the bytes that resources of some types have beside their fields, such as files.
type Contents struct {
	// Types are the types; empty where none has any.
	Types []string
	// Tables are those of them that a table makes which is sent as it is (text/csv) below another resource; TypeOfTable says which of those
	// that there can be it is.
	Tables      []string
	TypeOfTable func(file io.Reader, those []string) (string, error)
	// Check, where there is one, looks at a content before the transaction that takes it: whatever takes long. The rules find what it gives
	// in Content.Checked.
	Check func(ctx context.Context, c *Content, a *API) (any, error)
	// Open, where there is one, gives how long the content of a resource is, and what reads its parts, by their numbers from 1; nil
	// behind the last.
	Open func(row *store.Resource, a *API) (size int64, part func(tx *store.Tx, number int) ([]byte, error), err error)
}

// Content is what came along with a request beside its fields. It waits in a temporary file.
type Content struct {
	// File is the temporary file.
	File *os.File
	// Name is what the file is called where it comes from, Type the media type that it is sent as; empty where that is not said.
	Name, Type string
	// Size is how long it is, in bytes; MD5 and SHA256 are its sums.
	Size   int64
	MD5    [16]byte
	SHA256 [32]byte
	// Checked is what Contents.Check gave.
	Checked any
}

// Parts calls fn for the parts of the content, each of at most so many bytes.
func (c *Content) Parts(most int, fn func(part []byte) error) error {
	if _, err := c.File.Seek(0, io.SeekStart); err != nil {
		return err
	}
	buffer := make([]byte, most)
	for {
		n, err := io.ReadFull(c.File, buffer)
		if n > 0 {
			if err := fn(buffer[:n:n]); err != nil {
				return err
			}
			buffer = make([]byte, most) // what was given may still be written
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// Drop takes the temporary file away, unless it has gone already.
func (c *Content) Drop() error {
	err := c.File.Close()
	if gone := os.Remove(c.File.Name()); !errors.Is(gone, os.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}
