package dhcp

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// appendFile is a segment that is opened for appending.
type appendFile struct{ *os.File }

func openAppend(path string) (journalFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // in the folder of the leases
	if err != nil {
		return nil, err
	}
	return appendFile{f}, nil
}

// Sync waits until the data and the size are on the disk, without the times of the file.
func (f appendFile) Sync() error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// syncFolder waits until the names of the files in a folder are on the disk.
func syncFolder(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // as above
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
