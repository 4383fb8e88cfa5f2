package resource

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// projection is a parsed fields parameter.
type projection struct {
	only   *branch // nil: everything
	not    *branch // nil: nothing left out
	embeds []*embedding
}

// branch is a tree of member names; a leaf takes its member whole.
type branch struct {
	order []string
	below map[string]*branch
}

// embedding is a subcollection to inline, with those inside it.
type embedding struct {
	name  string
	inner []*embedding
}

func (b *branch) add(path []string) *branch {
	if b == nil {
		b = &branch{below: map[string]*branch{}}
	}
	below, ok := b.below[path[0]]
	if !ok {
		b.order = append(b.order, path[0])
	}
	switch {
	case len(path) == 1:
		b.below[path[0]] = nil
	case ok && below == nil: // the whole member is taken already
	default:
		b.below[path[0]] = below.add(path[1:])
	}
	return b
}

// member is one member of a JSON object.
type member struct {
	name string
	raw  json.RawMessage
}

// members reads an object's members in their order.
func members(object []byte) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	var all []member
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		text, ok := name.(string)
		if !ok {
			return nil, fmt.Errorf("a member's name is %v", name)
		}
		m := member{name: text}
		if err := d.Decode(&m.raw); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// apply keeps of an object what the projection asks for.
func (p *projection) apply(object []byte) ([]byte, error) {
	var err error
	if p.only != nil {
		if object, err = p.only.keep(object); err != nil {
			return nil, err
		}
	}
	if p.not != nil {
		object, err = p.not.drop(object)
	}
	return object, err
}

func (b *branch) keep(object []byte) ([]byte, error) {
	all, err := members(object)
	if err != nil {
		return nil, err
	}
	out := []byte{'{'}
	for _, name := range b.order {
		for _, m := range all {
			if m.name != name {
				continue
			}
			if below := b.below[name]; below != nil && m.raw[0] == '{' {
				if m.raw, err = below.keep(m.raw); err != nil {
					return nil, err
				}
			}
			out = appendMember(out, m)
		}
	}
	return append(out, '}'), nil
}

func (b *branch) drop(object []byte) ([]byte, error) {
	all, err := members(object)
	if err != nil {
		return nil, err
	}
	out := []byte{'{'}
	for _, m := range all {
		below, named := b.below[m.name]
		switch {
		case named && below == nil:
			continue
		case named && m.raw[0] == '{':
			if m.raw, err = below.drop(m.raw); err != nil {
				return nil, err
			}
		}
		out = appendMember(out, m)
	}
	return append(out, '}'), nil
}

func appendMember(out []byte, m member) []byte {
	if len(out) > 1 {
		out = append(out, ',')
	}
	out = appendString(out, m.name)
	out = append(out, ':')
	return append(out, m.raw...)
}

// leaves lists the paths of a branch.
func (b *branch) leaves(prefix []string) (paths [][]string) {
	for _, name := range b.order {
		path := append(append([]string{}, prefix...), name)
		if below := b.below[name]; below != nil {
			paths = append(paths, below.leaves(path)...)
			continue
		}
		paths = append(paths, path)
	}
	return paths
}

// cuts reports whether the branch names a member whole.
func (b *branch) cuts(name string) bool {
	if b == nil {
		return false
	}
	below, ok := b.below[name]
	return ok && below == nil
}
