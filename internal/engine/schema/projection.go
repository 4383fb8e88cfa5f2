package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Projection is the parsed parameter fields.
type Projection struct {
	Only   *Branch // nil: all
	Not    *Branch // nil: none
	Embeds []*Embedding
}

// Branch is a tree of member names; a leaf selects its whole member.
type Branch struct {
	order []string
	below map[string]*Branch
}

// Embedding is a subcollection to embed, with those to embed in its resources.
type Embedding struct {
	Name  string
	Inner []*Embedding
}

// Add adds a path to the tree, which may be nil, and returns the tree.
func (b *Branch) Add(path []string) *Branch {
	if b == nil {
		b = &Branch{below: map[string]*Branch{}}
	}
	below, ok := b.below[path[0]]
	if !ok {
		b.order = append(b.order, path[0])
	}
	switch {
	case len(path) == 1:
		b.below[path[0]] = nil
	case ok && below == nil: // the whole member is selected already
	default:
		b.below[path[0]] = below.Add(path[1:])
	}
	return b
}

// Member is one member of a JSON object.
type Member struct {
	Name string
	Raw  json.RawMessage
}

// ReadMembers returns an object's members in their order.
func ReadMembers(object []byte) ([]Member, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	var all []Member
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		text, ok := name.(string)
		if !ok {
			return nil, fmt.Errorf("a member's name is %v", name)
		}
		m := Member{Name: text}
		if err := d.Decode(&m.Raw); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// Apply returns the selected members of an object.
func (p *Projection) Apply(object []byte) ([]byte, error) {
	var err error
	if p.Only != nil {
		if object, err = p.Only.project(object); err != nil {
			return nil, err
		}
	}
	if p.Not != nil {
		object, err = p.Not.drop(object)
	}
	return object, err
}

func (b *Branch) project(object []byte) ([]byte, error) {
	all, err := ReadMembers(object)
	if err != nil {
		return nil, err
	}
	out := []byte{'{'}
	for _, name := range b.order {
		for _, m := range all {
			if m.Name != name {
				continue
			}
			if below := b.below[name]; below != nil && m.Raw[0] == '{' {
				if m.Raw, err = below.project(m.Raw); err != nil {
					return nil, err
				}
			}
			out = appendMember(out, m)
		}
	}
	return append(out, '}'), nil
}

func (b *Branch) drop(object []byte) ([]byte, error) {
	all, err := ReadMembers(object)
	if err != nil {
		return nil, err
	}
	out := []byte{'{'}
	for _, m := range all {
		below, named := b.below[m.Name]
		switch {
		case named && below == nil:
			continue
		case named && m.Raw[0] == '{':
			if m.Raw, err = below.drop(m.Raw); err != nil {
				return nil, err
			}
		}
		out = appendMember(out, m)
	}
	return append(out, '}'), nil
}

func appendMember(out []byte, m Member) []byte {
	if len(out) > 1 {
		out = append(out, ',')
	}
	out = AppendString(out, m.Name)
	out = append(out, ':')
	return append(out, m.Raw...)
}

// Leaves returns the paths of a branch.
func (b *Branch) Leaves(prefix []string) (paths [][]string) {
	for _, name := range b.order {
		path := append(append([]string{}, prefix...), name)
		if below := b.below[name]; below != nil {
			paths = append(paths, below.Leaves(path)...)
			continue
		}
		paths = append(paths, path)
	}
	return paths
}

// Cuts reports whether the branch names the whole member.
func (b *Branch) Cuts(name string) bool {
	if b == nil {
		return false
	}
	below, ok := b.below[name]
	return ok && below == nil
}
