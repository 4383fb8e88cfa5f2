package archive

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// maxHead is how long the first line of a backup may be, in bytes.
const maxHead = 64 << 10

// errNone is a file that is no backup.
var errNone = errors.New("it is no backup of portolan's")

// Created gives of what moment a backup is, by its first line; what follows is not looked at. It fails where the file is none, and where it
// is cut off before the end of that line or cannot be read.
func Created(in io.Reader) (at time.Time, err error) {
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return at, err
	}
	defer z.Close()
	text, err := bufio.NewReader(io.LimitReader(z, maxHead)).ReadBytes('\n')
	var h head
	switch {
	case errors.Is(err, zstd.ErrMagicMismatch):
		return at, errNone
	case err != nil:
		return at, fmt.Errorf("%w: it ends too early (%w)", errDamaged, err)
	case json.Unmarshal(text, &h) != nil || h.Format == 0 || h.Portolan == "":
		return at, errNone
	}
	return h.Created, nil
}

// Unfinished ends the names of backups that are being written, or were when their writer was killed.
const Unfinished = ".part"

// Newest gives the path of the newest backup of a directory, by the moment that each is of, and path itself where that is a file. What is
// no backup or may not be read is passed over, and given with the reason, as is without a word what is being written (Unfinished). It fails
// where there is none, where one is damaged, which may be the newest, and where path is neither a file nor a directory.
func Newest(path string) (newest string, passed []string, err error) {
	is, err := os.Stat(path)
	switch {
	case err != nil:
		return path, nil, err
	case is.Mode().IsRegular():
		return path, nil, nil
	case !is.IsDir():
		return path, nil, fmt.Errorf("%s is no file", path)
	}
	files, err := os.ReadDir(path)
	if err != nil {
		return "", nil, err
	}
	when := time.Time{}
	for _, f := range files {
		name := filepath.Join(path, f.Name())
		if strings.HasPrefix(f.Name(), ".") || strings.HasSuffix(f.Name(), Unfinished) || f.IsDir() { // such as what was sent
			continue
		}
		created, err := createdOf(name)
		switch {
		case os.IsNotExist(err): // its schedule has made room
		case errors.Is(err, errDamaged):
			return "", passed, fmt.Errorf("%s: %w", name, err)
		case err != nil:
			passed = append(passed, fmt.Sprintf("%s: %v", name, err))
		case newest == "" || created.After(when):
			newest, when = name, created
		}
	}
	if newest == "" {
		return "", passed, fmt.Errorf("%s holds no backup", path)
	}
	return newest, passed, nil
}

// createdOf is Created of a file by its name.
func createdOf(name string) (at time.Time, err error) {
	is, err := os.Stat(name)
	if err != nil {
		return at, err
	}
	if !is.Mode().IsRegular() {
		return at, errNone
	}
	f, err := os.Open(name) //nolint:gosec // of a directory that whoever calls this names
	if err != nil {
		return at, err
	}
	defer func() { _ = f.Close() }() // it was read alone
	return Created(f)
}
