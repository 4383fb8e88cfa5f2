package convert

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// NamedZone is a zone that BIND is primary for.
type NamedZone struct {
	// View is the view that it is in; empty where there are none.
	View string
	// Name is the zone's name, File where its records are, and Directory where files that it includes are.
	Name, File, Directory string
}

// Named reads the settings of BIND (named.conf): the zones that it is primary for, by their views. read gives the files that it includes.
// What of it is not taken, such as zones that are copied from others, is noted, and a zone that is there twice is skipped.
func Named(path string, read func(path string) ([]byte, error)) (zones []NamedZone, notes []string, skipped []Skipped, err error) {
	n := &namedFile{Document: &Document{}, read: read, directory: filepath.Dir(path), base: filepath.Dir(path)}
	if err := n.file(path, "", 0); err != nil {
		return nil, nil, nil, err
	}
	for i, z := range n.zones {
		n.zones[i].Directory = n.directory
		if !filepath.IsAbs(z.File) {
			n.zones[i].File = filepath.Join(n.directory, z.File)
		}
	}
	return n.zones, n.Notes(), n.Skipped, nil
}

type namedFile struct {
	*Document
	read func(path string) ([]byte, error)
	// directory is where files of zones are, base where the settings are.
	directory, base string
	zones           []NamedZone
}

func (n *namedFile) file(path, view string, depth int) error {
	if depth > maxNested {
		return fmt.Errorf("%s: files include each other more than %d deep", path, maxNested)
	}
	raw, err := n.read(path)
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
		case s.is("include"):
			file := s.word(1)
			if !filepath.IsAbs(file) {
				file = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := n.read(file); err != nil {
				n.at = "include " + file
				n.skip("%v: zones that it names are not imported: correct the statement", err)
				n.at = ""
				continue
			}
			if err := n.file(file, view, depth+1); err != nil {
				return err
			}
		case s.is("options"):
			for _, o := range s.block {
				if o.is("directory") {
					if n.directory = o.word(1); !filepath.IsAbs(n.directory) {
						n.directory = filepath.Join(n.base, n.directory)
					}
				} else {
					n.leave("the option %s", o.word(0))
				}
			}
		case s.is("view"):
			for _, o := range s.block {
				if !o.is("zone") && !o.is("include") {
					n.leave("%s of the view %s", o.word(0), s.word(1))
				}
			}
			if err := n.block(s.block, path, s.word(1), depth); err != nil {
				return err
			}
		case s.is("zone"):
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
		case o.is("type"):
			kind = strings.ToLower(o.word(1))
		case o.is("file"):
			file = o.word(1)
		default:
			n.leave("%s of zones", o.word(0))
		}
	}
	name := strings.TrimSuffix(s.word(1), ".")
	n.at = "zone " + cmp.Or(name, ".")
	if file != "" {
		n.at += " in the file " + file
	}
	if view != "" {
		n.at += ", view " + view
	}
	defer func() { n.at = "" }()
	switch {
	case kind == "hint": // servers know the root's name servers
		n.leave("zones of the type %s", kind)
	case kind != "master" && kind != "primary":
		n.omit("no zone of the type %q is imported: import it where it is primary, or copy it by import zone --from-server", kind)
	case file == "":
		n.skip("it names no file: name the file of its records")
	case slices.ContainsFunc(n.zones, func(z NamedZone) bool { return z.View == view && strings.EqualFold(z.Name, name) }):
		n.skip("a statement before it names the same zone: remove one of the two")
	default:
		n.zones = append(n.zones, NamedZone{View: view, Name: name, File: file})
	}
}
