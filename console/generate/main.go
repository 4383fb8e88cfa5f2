// The program generate builds the files of the console in ../bundle. These are the scripts and styles of ../src with their dependencies in
// ../npm, and the schema of the API from the document in ../../api. Run it by go generate ./console.
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

// write builds the bundle of the console in the directory root.
func write(root string) error {
	made, err := bundle(root)
	if err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(root, "bundle", "*"))
	if err != nil {
		return err
	}
	for _, f := range old {
		if _, ok := made["bundle/"+filepath.Base(f)]; !ok {
			if err := os.Remove(f); err != nil {
				return err
			}
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "bundle"), 0o755); err != nil { //nolint:gosec // readable by all users
		return err
	}
	for name, content := range made {
		if err := os.WriteFile(filepath.Join(root, name), content, 0o644); err != nil { //nolint:gosec // readable by all users
			return err
		}
	}
	return nil
}
