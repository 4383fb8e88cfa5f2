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

// maxHead is the maximum length in bytes of the first line of a backup.
const maxHead = 64 << 10

// errNone is returned for a file that is not a backup.
var errNone = errors.New("not a backup of portolan")

// Created returns the time of a backup. It reads only the first line. It returns an error if the file is not a backup, is truncated
// within that line, or cannot be read.
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

// Unfinished is the suffix of backups that are being written, or whose writer was killed.
const Unfinished = ".part"

// Newest returns the path of the newest backup in a directory, by the time in the backup. If path is a file, it returns path. Files that
// are not backups or cannot be read are skipped and returned in passed with the reason; files with the suffix Unfinished are skipped
// silently. Newest returns an error if the directory contains no backup, or if path is neither a file nor a directory. A damaged backup
// is an error as well, because it may be the newest.
func Newest(path string) (newest string, passed []string, err error) {
	is, err := os.Stat(path)
	switch {
	case err != nil:
		return path, nil, err
	case is.Mode().IsRegular():
		return path, nil, nil
	case !is.IsDir():
		return path, nil, fmt.Errorf("%s is not a file", path)
	}
	files, err := os.ReadDir(path)
	if err != nil {
		return "", nil, err
	}
	when := time.Time{}
	for _, f := range files {
		name := filepath.Join(path, f.Name())
		if strings.HasPrefix(f.Name(), ".") || strings.HasSuffix(f.Name(), Unfinished) || f.IsDir() { // such as copies that were sent elsewhere
			continue
		}
		created, err := createdOf(name)
		switch {
		case os.IsNotExist(err): // its schedule deleted it meanwhile
		case errors.Is(err, errDamaged):
			return "", passed, fmt.Errorf("%s: %w", name, err)
		case err != nil:
			passed = append(passed, fmt.Sprintf("%s: %v", name, err))
		case newest == "" || created.After(when):
			newest, when = name, created
		}
	}
	if newest == "" {
		return "", passed, fmt.Errorf("%s contains no backup", path)
	}
	return newest, passed, nil
}

// createdOf is Created for a file name.
func createdOf(name string) (at time.Time, err error) {
	is, err := os.Stat(name)
	if err != nil {
		return at, err
	}
	if !is.Mode().IsRegular() {
		return at, errNone
	}
	f, err := os.Open(name) //nolint:gosec // in a directory that the caller names
	if err != nil {
		return at, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return Created(f)
}
