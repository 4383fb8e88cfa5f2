package backup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Newest gives the path of the backup that was written last where path is a directory, and path itself where it is a file. It fails where
// there is none.
func Newest(path string) (string, error) {
	is, err := os.Stat(path)
	if err != nil || !is.IsDir() {
		return path, err
	}
	files, err := os.ReadDir(path)
	if err != nil {
		return "", err
	}
	newest, when := "", time.Time{}
	for _, f := range files {
		if !f.Type().IsRegular() || !strings.HasSuffix(f.Name(), suffix) {
			continue
		}
		is, err := f.Info()
		if os.IsNotExist(err) { // its schedule has made room
			continue
		}
		if err != nil {
			return "", err
		}
		if newest == "" || is.ModTime().After(when) {
			newest, when = f.Name(), is.ModTime()
		}
	}
	if newest == "" {
		return "", fmt.Errorf("%s holds no backup: none of its files ends in %s", path, suffix)
	}
	return filepath.Join(path, newest), nil
}
