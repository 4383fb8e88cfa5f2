// The program generate makes what the console is served from, in ../bundle: the scripts and styles of ../src with what they take from
// ../npm, and the schema of the API, which it reads from the document in ../../api. Run it by go generate ./console.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := write("."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write makes the bundle of the console whose folder is root.
func write(root string) error {
	made, err := bundle(root)
	if err != nil {
		return err
	}
	dir := filepath.Join(root, "bundle")
	old, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, f := range old {
		if _, ok := made[f.Name()]; !ok {
			if err := os.Remove(filepath.Join(dir, f.Name())); err != nil {
				return err
			}
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // sources, for everybody
		return err
	}
	for name, content := range made {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil { //nolint:gosec // sources, for everybody
			return err
		}
	}
	return nil
}
