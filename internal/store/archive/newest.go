package archive

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"
)

// maxHead is how long the first line of a backup may be, in bytes.
const maxHead = 64 << 10

// errNone is a file that is no backup.
var errNone = errors.New("it is no backup of portolan's")

// Created gives of what moment a backup is, by its first line; what follows is not looked at. It fails where the file is no backup.
func Created(in io.Reader) (at time.Time, err error) {
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return at, err
	}
	defer z.Close()
	text, err := bufio.NewReader(io.LimitReader(z, maxHead)).ReadBytes('\n')
	var h head
	if err != nil || json.Unmarshal(text, &h) != nil || h.Format == 0 || h.Portolan == "" {
		return at, errNone
	}
	return h.Created, nil
}

// Newest gives the path of the newest backup of a directory, by the moment that each is of, and path itself where that is a file. What is
// no backup is passed over. It fails where there is none, and where path is neither a file nor a directory.
func Newest(path string) (string, error) {
	is, err := os.Stat(path)
	switch {
	case err != nil:
		return path, err
	case is.Mode().IsRegular():
		return path, nil
	case !is.IsDir():
		return path, fmt.Errorf("%s is no file", path)
	}
	files, err := os.ReadDir(path)
	if err != nil {
		return "", err
	}
	newest, when := "", time.Time{}
	for _, f := range files {
		name := filepath.Join(path, f.Name())
		created, err := createdOf(name)
		if os.IsNotExist(err) || errors.Is(err, errNone) { // its schedule has made room, or it is something else
			continue
		}
		if err != nil {
			return "", err
		}
		if newest == "" || created.After(when) {
			newest, when = name, created
		}
	}
	if newest == "" {
		return "", fmt.Errorf("%s holds no backup", path)
	}
	return newest, nil
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
