//go:build unix

package nameserver

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// copyGroup sets the group of a file to that of its folder, so that BIND, which runs as another user, can read it.
func copyGroup(path string) error {
	info, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if err := os.Chown(path, -1, int(s.Gid)); err != nil {
		return fmt.Errorf("set the group of %s: %w", path, err)
	}
	return nil
}
