//go:build unix

package nameserver

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// likeItsFolder gives a file the group of its folder: BIND, as another user, reads it by that.
func likeItsFolder(path string) error {
	info, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if err := os.Chown(path, -1, int(s.Gid)); err != nil {
		return fmt.Errorf("giving %s the group of its folder: %w", path, err)
	}
	return nil
}
