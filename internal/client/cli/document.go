package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"portolan/client"
)

// documentMembers are the members of a document that is not a resource.
var documentMembers = []string{"into", "defaults", "tag", "prune", "resources"}

// ReadDocuments reads resources as they are to be, from files of YAML or JSON, from directories of them, or from standard input ("-"). Each
// document of a file is a resource (with its type), a list of resources, or an object with resources and what holds for them: into,
// defaults, tag, prune. What holds for all is said once, or alike.
func ReadDocuments(stdin io.Reader, paths []string) (client.Apply, error) {
	var a documents
	files, err := documentFiles(paths)
	if err != nil {
		return a.Apply, err
	}
	for _, path := range files {
		var text []byte
		if path == "-" {
			text, err = io.ReadAll(stdin)
		} else {
			text, err = os.ReadFile(path)
		}
		if err == nil {
			err = readDocument(&a, text)
		}
		if err != nil {
			return a.Apply, Wrongf("%s: %w", path, err)
		}
	}
	if a.Resources == nil {
		return a.Apply, Wrongf("%s: no resources", strings.Join(paths, ", "))
	}
	return a.Apply, nil
}

// documentFiles gives the files, and those in directories, in order.
func documentFiles(paths []string) (files []string, err error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case path == "-":
			files = append(files, path)
			continue
		case errors.Is(err, fs.ErrNotExist):
			return nil, Wrongf("%s: there is no such file", path)
		case err != nil:
			return nil, err
		case !info.IsDir():
			files = append(files, path)
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(e.Name()))) {
				files = append(files, filepath.Join(path, e.Name()))
			}
		}
	}
	return files, nil
}

// readDocument reads the documents of one file.
func readDocument(a *documents, text []byte) error {
	d := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var node yaml.Node
		if err := d.Decode(&node); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if len(node.Content) == 0 {
			continue
		}
		if err := take(a, node.Content[0]); err != nil {
			return err
		}
	}
}

// take adds what a document says.
func take(a *documents, n *yaml.Node) error {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null": // a document of nothing but remarks
		return nil
	case n.Kind == yaml.SequenceNode:
		return takeResources(a, n)
	case n.Kind != yaml.MappingNode:
		return fmt.Errorf("line %d: is no resource, and no list of resources", n.Line)
	}
	members := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if members[n.Content[i].Value] != nil {
			return fmt.Errorf("line %d: %s is there twice", n.Content[i].Line, n.Content[i].Value)
		}
		members[n.Content[i].Value] = n.Content[i+1]
	}
	if members["resources"] == nil || members["type"] != nil {
		return takeResources(a, &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{n}})
	}
	for name, value := range members {
		if !slices.Contains(documentMembers, name) {
			return fmt.Errorf("line %d: %s: there is no such member; there are %s", value.Line, name, strings.Join(documentMembers, ", "))
		}
		raw, err := toJSON(value)
		if err != nil {
			return err
		}
		switch name {
		case "resources":
			if value.Kind != yaml.SequenceNode {
				return fmt.Errorf("line %d: resources: must be a list", value.Line)
			}
			err = takeResources(a, value)
		case "into":
			err = once(name, raw, &a.Into)
		case "tag":
			err = once(name, raw, &a.Tag)
		case "prune":
			var prune bool
			if err = json.Unmarshal(raw, &prune); err == nil && a.Prune != prune && a.pruned {
				err = errors.New("another document says otherwise: apply them one by one")
			}
			a.Prune, a.pruned = prune, true
		case "defaults":
			err = a.defaults(raw)
		}
		if err != nil {
			return fmt.Errorf("line %d: %s: %w", value.Line, name, err)
		}
	}
	return nil
}

// defaults takes members of all resources, which several documents may say alike.
func (a *documents) defaults(raw []byte) error {
	var said map[string]json.RawMessage
	if err := json.Unmarshal(raw, &said); err != nil {
		return err
	}
	if a.Defaults == nil {
		a.Defaults = map[string]json.RawMessage{}
	}
	for name, value := range said {
		if other, twice := a.Defaults[name]; twice && string(other) != string(value) {
			return fmt.Errorf("another document has %s %s: apply them one by one", name, other)
		}
		a.Defaults[name] = value
	}
	return nil
}

// documents are what was read so far.
type documents struct {
	client.Apply
	// pruned says that a document said whether to prune.
	pruned bool
}

// once takes a text that several documents may say alike.
func once(name string, raw []byte, to *string) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	if *to != "" && *to != text {
		return fmt.Errorf("another document has %s %s: apply them one by one", name, *to)
	}
	*to = text
	return nil
}

func takeResources(a *documents, list *yaml.Node) error {
	if a.Resources == nil {
		a.Resources = []json.RawMessage{}
	}
	for _, n := range list.Content {
		if n.Kind != yaml.MappingNode {
			return fmt.Errorf("line %d: is no resource", n.Line)
		}
		raw, err := toJSON(n)
		if err != nil {
			return err
		}
		a.Resources = append(a.Resources, raw)
	}
	return nil
}

// toJSON gives YAML as JSON. Times stay the texts that they are written as.
func toJSON(n *yaml.Node) (json.RawMessage, error) {
	left := maxValues
	value, err := valueOf(n, 0, &left)
	if err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// maxDepth and maxValues bound what refers to itself, or to much again and again.
const (
	maxDepth  = 50
	maxValues = 1_000_000
)

// valueOf gives a value; left is how many more there may be.
func valueOf(n *yaml.Node, depth int, left *int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("line %d: is nested more than %d deep", n.Line, maxDepth)
	}
	if *left--; *left < 0 {
		return nil, fmt.Errorf("line %d: has more than %d values", n.Line, maxValues)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return valueOf(n.Alias, depth+1, left)
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, c := range n.Content {
			var err error
			if list[i], err = valueOf(c, depth+1, left); err != nil {
				return nil, err
			}
		}
		return list, nil
	case yaml.MappingNode:
		members := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := n.Content[i].Value
			if n.Content[i].ShortTag() == "!!merge" {
				return nil, fmt.Errorf("line %d: << is not read: say the members themselves, or use defaults", n.Content[i].Line)
			}
			if _, twice := members[name]; twice {
				return nil, fmt.Errorf("line %d: %s is there twice", n.Content[i].Line, name)
			}
			value, err := valueOf(n.Content[i+1], depth+1, left)
			if err != nil {
				return nil, err
			}
			members[name] = value
		}
		return members, nil
	}
	return scalar(n), nil
}

// place is where a refusal of a document says which resource it is about.
var place = regexp.MustCompile(`resources\[(\d+)\]`)

// Apply is the client's, and says in a refusal what the resources are that it is about: a file that was converted has no such numbers.
func (m *Manager) Apply(ctx context.Context, a client.Apply, o client.ChangeOptions) (client.Applied, error) {
	done, err := m.Client.Apply(ctx, a, o)
	var refused *client.Error
	if len(a.Resources) > 1 && errors.As(err, &refused) {
		refused.Message = place.ReplaceAllStringFunc(refused.Message, func(at string) string {
			i, err := strconv.Atoi(place.FindStringSubmatch(at)[1])
			if err != nil || i >= len(a.Resources) {
				return at
			}
			return at + " (" + identityOf(a.Resources[i]) + ")"
		})
	}
	return done, err
}

// identityOf is what people call a resource of a document: its type, and where it lies or what it is called.
func identityOf(raw json.RawMessage) string {
	var one struct{ Type, Name, Address, Range, AbsoluteName string }
	_ = json.Unmarshal(raw, &one) // a member of another kind, which the manager refuses, leaves the others as they are
	return strings.TrimSpace(cmp.Or(one.Type, "without a type") + " " + cmp.Or(one.Range, one.Address, one.AbsoluteName, one.Name))
}

// scalar is a value that is no list and no object. What YAML takes for a number that JSON does not write that way is a text.
func scalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return b
		}
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			if _, err := strconv.ParseFloat(n.Value, 64); err == nil {
				return json.RawMessage(n.Value)
			}
		}
	}
	return n.Value
}
