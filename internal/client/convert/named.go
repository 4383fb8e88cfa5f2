package convert

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// NamedZone is a zone that BIND is primary for.
type NamedZone struct {
	// View is the view of the zone; empty without views.
	View string
	// Name is the zone's name, File the path of its records, and Directory the base of included files.
	Name, File, Directory string
}

// NamedSettings are the zones of a BIND configuration (named.conf).
type NamedSettings struct {
	// Zones are the primary zones. OtherZones are the zones of other types and those without a file.
	Zones, OtherZones []NamedZone
	// Notes are settings that are not imported. Skipped are zone statements that were skipped, and included files that cannot be read.
	Notes   []string
	Skipped []Skipped
}

// Named reads named.conf. read returns the contents of an included file.
func Named(path string, read func(path string) ([]byte, error)) (settings NamedSettings, err error) {
	n := &namedFile{Document: &Document{}, read: read, directory: filepath.Dir(path), base: filepath.Dir(path)}
	if err := n.file(path, "", 0); err != nil {
		return settings, err
	}
	for i, z := range n.zones {
		n.zones[i].Directory = n.directory
		if !filepath.IsAbs(z.File) {
			n.zones[i].File = filepath.Join(n.directory, z.File)
		}
	}
	return NamedSettings{n.zones, n.others, n.Notes(), n.Skipped}, nil
}

// missingFileError is an included file that cannot be read.
type missingFileError struct {
	path string
	err  error
}

func (e missingFileError) Error() string { return e.err.Error() }

// Unwrap returns the error of the read.
func (e missingFileError) Unwrap() error { return e.err }

type namedFile struct {
	*Document
	read func(path string) ([]byte, error)
	// directory is the base of zone files, base the directory of the configuration.
	directory, base string
	zones, others   []NamedZone
}

func (n *namedFile) file(path, view string, depth int) error {
	if depth > maxNested {
		return fmt.Errorf("%s: files include each other more than %d deep", path, maxNested)
	}
	raw, err := n.read(path)
	if err != nil && depth > 0 {
		return missingFileError{path, err}
	}
	if err != nil {
		return err
	}
	all, err := statements(text(raw))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return n.block(all, path, view, depth)
}

func (n *namedFile) block(all []statement, path, view string, depth int) error {
	for _, s := range all {
		switch {
		case s.startsWith("include"):
			file := s.word(1)
			if !filepath.IsAbs(file) {
				file = filepath.Join(filepath.Dir(path), file)
			}
			err := n.file(file, view, depth+1)
			var missing missingFileError
			if errors.As(err, &missing) && missing.path == file {
				n.rowName = "include " + file
				n.skip("%v: its zones are not imported: add the file, or remove the statement", missing.err)
				n.rowName, err = "", nil
			}
			if err != nil {
				return err
			}
		case s.startsWith("options"):
			for _, o := range s.block {
				if o.startsWith("directory") {
					if n.directory = o.word(1); !filepath.IsAbs(n.directory) {
						n.directory = filepath.Join(n.base, n.directory)
					}
				} else {
					n.leave("the option %s", o.word(0))
				}
			}
		case s.startsWith("view"):
			for _, o := range s.block {
				if !o.startsWith("zone") && !o.startsWith("include") {
					n.leave("%s of the view %s", o.word(0), s.word(1))
				}
			}
			if err := n.block(s.block, path, s.word(1), depth); err != nil {
				return err
			}
		case s.startsWith("zone"):
			n.zone(s, view)
		case view == "":
			n.leave("the statement %s", s.word(0))
		}
	}
	return nil
}

func (n *namedFile) zone(s statement, view string) {
	kind, file := "", ""
	for _, o := range s.block {
		switch {
		case o.startsWith("type"):
			kind = strings.ToLower(o.word(1))
		case o.startsWith("file"):
			file = o.word(1)
		default:
			n.leave("%s of zones", o.word(0))
		}
	}
	name := strings.TrimSuffix(s.word(1), ".")
	n.rowName = "zone " + cmp.Or(name, ".")
	if file != "" {
		n.rowName += " in the file " + file
	}
	if view != "" {
		n.rowName += ", view " + view
	}
	defer func() { n.rowName = "" }()
	if kind != "master" && kind != "primary" || file == "" {
		n.others = append(n.others, NamedZone{View: view, Name: name})
	}
	switch {
	case kind == "hint": // DNS servers contain the root's name servers
		n.leave("zones of the type %s", kind)
	case kind != "master" && kind != "primary":
		n.omit("no zone of the type %q is imported: import it where it is primary, or copy it by import zone --from-server", kind)
	case file == "":
		n.skip("it has no file: add the file with its records")
	case slices.ContainsFunc(n.zones, func(z NamedZone) bool { return z.View == view && strings.EqualFold(z.Name, name) }):
		n.skip("an earlier statement has the same zone: remove one of them")
	default:
		n.zones = append(n.zones, NamedZone{View: view, Name: name, File: file})
	}
}
