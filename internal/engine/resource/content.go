package resource

import (
	"context"
	"errors"
	"io"
	"os"

	"portolan/internal/engine/store"
)

// Contents describes the bytes that resources of some types have in addition to their fields, such as files.
type Contents struct {
	// Types are the types with bytes; empty if there are none.
	Types []string
	// Tables are the types that a table creates which is sent as a plain body (text/csv) below another resource. TypeOfTable returns the
	// type of a table, out of the possible types.
	Tables      []string
	TypeOfTable func(file io.Reader, those []string) (string, error)
	// Check does time-consuming checks of a content before the transaction. The rules find its result in Content.Checked. nil without
	// such checks.
	Check func(ctx context.Context, c *Content, a *API) (any, error)
	// Open returns the size of a resource's content in bytes, and a function that reads its parts by their numbers from 1, and returns
	// nil after the last. nil for contents that cannot be read.
	Open func(row *store.Resource, a *API) (size int64, part func(tx *store.Tx, number int) ([]byte, error), err error)
}

// Content are the bytes that a request carried in addition to the fields, in a temporary file.
type Content struct {
	File *os.File
	// Name is the file name at the client, Type the declared media type; empty if the request has none.
	Name, Type string
	// Size is in bytes; MD5 and SHA256 are the checksums.
	Size   int64
	MD5    [16]byte
	SHA256 [32]byte
	// Checked is the result of Contents.Check.
	Checked any
}

// Parts calls fn for the parts of the content, each of at most maxBytes bytes.
func (c *Content) Parts(maxBytes int, fn func(part []byte) error) error {
	if _, err := c.File.Seek(0, io.SeekStart); err != nil {
		return err
	}
	buffer := make([]byte, maxBytes)
	for {
		n, err := io.ReadFull(c.File, buffer)
		if n > 0 {
			if err := fn(buffer[:n:n]); err != nil {
				return err
			}
			buffer = make([]byte, maxBytes) // fn may have kept the part
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// Drop closes and deletes the temporary file, if it still exists.
func (c *Content) Drop() error {
	err := c.File.Close()
	if removeErr := os.Remove(c.File.Name()); !errors.Is(removeErr, os.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	return err
}
