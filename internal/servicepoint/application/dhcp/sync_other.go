//go:build !linux

package dhcp

import (
	"errors"
	"os"
)

func openAppend(path string) (journalFile, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}

// syncFolder waits until the names of the files in a folder are on the disk.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
