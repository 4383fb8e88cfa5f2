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

// ReadDocuments reads desired resources from YAML or JSON files, from directories of such files, or from standard input ("-"). A document
// in a file is a resource (with its type), a list of resources, or an object. The object has the member resources and the settings into,
// defaults, tag and prune. Each setting must have the same value in all documents that set it.
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
			return a.Apply, wrongf("%s: %w", path, err)
		}
	}
	if a.Resources == nil {
		return a.Apply, wrongf("%s: no resources", strings.Join(paths, ", "))
	}
	return a.Apply, nil
}

// documentFiles returns the files, and the YAML and JSON files of the directories, in order.
func documentFiles(paths []string) (files []string, err error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case path == "-":
			files = append(files, path)
			continue
		case errors.Is(err, fs.ErrNotExist):
			return nil, wrongf("%s: no such file", path)
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
		if err := addDocument(a, node.Content[0]); err != nil {
			return err
		}
	}
}

// addDocument adds the resources and settings of a document.
func addDocument(a *documents, n *yaml.Node) error {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null": // a document with comments only
		return nil
	case n.Kind == yaml.SequenceNode:
		return addResources(a, n)
	case n.Kind != yaml.MappingNode:
		return fmt.Errorf("line %d: is neither a resource nor a list of resources", n.Line)
	}
	members := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if members[n.Content[i].Value] != nil {
			return fmt.Errorf("line %d: %s occurs twice", n.Content[i].Line, n.Content[i].Value)
		}
		members[n.Content[i].Value] = n.Content[i+1]
	}
	if members["resources"] == nil || members["type"] != nil {
		return addResources(a, &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{n}})
	}
	for name, value := range members {
		if !slices.Contains(documentMembers, name) {
			return fmt.Errorf("line %d: %s is not a member of a document: use %s", value.Line, name, strings.Join(documentMembers, ", "))
		}
		raw, err := convertYAML(value)
		if err != nil {
			return err
		}
		switch name {
		case "resources":
			if value.Kind != yaml.SequenceNode {
				return fmt.Errorf("line %d: resources: must be a list", value.Line)
			}
			err = addResources(a, value)
		case "into":
			err = setOnce(name, raw, &a.Into)
		case "tag":
			err = setOnce(name, raw, &a.Tag)
		case "prune":
			var prune bool
			if err = json.Unmarshal(raw, &prune); err == nil && a.Prune != prune && a.pruned {
				err = errors.New("another document has a different value: apply the documents one by one")
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

// defaults adds default members. Several documents may set a member only to the same value.
func (a *documents) defaults(raw []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	if a.Defaults == nil {
		a.Defaults = map[string]json.RawMessage{}
	}
	for name, value := range members {
		if other, twice := a.Defaults[name]; twice && string(other) != string(value) {
			return fmt.Errorf("another document has %s %s: apply the documents one by one", name, other)
		}
		a.Defaults[name] = value
	}
	return nil
}

// documents collects the documents that were read.
type documents struct {
	client.Apply
	// pruned reports that a document has set prune.
	pruned bool
}

// setOnce sets a text that several documents may set only to the same value.
func setOnce(name string, raw []byte, to *string) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	if *to != "" && *to != text {
		return fmt.Errorf("another document has %s %s: apply the documents one by one", name, *to)
	}
	*to = text
	return nil
}

func addResources(a *documents, list *yaml.Node) error {
	if a.Resources == nil {
		a.Resources = []json.RawMessage{}
	}
	for _, n := range list.Content {
		if n.Kind != yaml.MappingNode {
			return fmt.Errorf("line %d: is not a resource", n.Line)
		}
		raw, err := convertYAML(n)
		if err != nil {
			return err
		}
		a.Resources = append(a.Resources, raw)
	}
	return nil
}

// convertYAML converts YAML to JSON. Timestamps keep the text of the document.
func convertYAML(n *yaml.Node) (json.RawMessage, error) {
	left := maxValues
	value, err := valueOf(n, 0, &left)
	if err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// maxDepth and maxValues bound aliases that refer to themselves or that multiply large values.
const (
	maxDepth  = 50
	maxValues = 1_000_000
)

// valueOf returns the value of a node. left is the number of values that the document may still contain.
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
				return nil, fmt.Errorf("line %d: << is not supported: list the members, or use defaults", n.Content[i].Line)
			}
			if _, twice := members[name]; twice {
				return nil, fmt.Errorf("line %d: %s occurs twice", n.Content[i].Line, name)
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

// resourceIndex matches the position of a resource in an error message of the manager.
var resourceIndex = regexp.MustCompile(`resources\[(\d+)\]`)

// Apply calls Client.Apply. It adds the type and name of each resource to the positions in an error message, because a converted file has
// no such positions.
func (m *Manager) Apply(ctx context.Context, a client.Apply, o client.ChangeOptions) (client.Applied, error) {
	done, err := m.Client.Apply(ctx, a, o)
	var refused *client.Error
	if len(a.Resources) > 1 && errors.As(err, &refused) {
		refused.Message = resourceIndex.ReplaceAllStringFunc(refused.Message, func(at string) string {
			i, err := strconv.Atoi(resourceIndex.FindStringSubmatch(at)[1])
			if err != nil || i >= len(a.Resources) {
				return at
			}
			return at + " (" + identityOf(a.Resources[i]) + ")"
		})
	}
	return done, err
}

// identityOf describes a resource of a document: its type, and its range, address or name.
func identityOf(raw json.RawMessage) string {
	var one struct{ Type, Name, Address, Range, AbsoluteName string }
	_ = json.Unmarshal(raw, &one) // a member of the wrong kind leaves the others set; the manager rejects the resource
	return strings.TrimSpace(cmp.Or(one.Type, "without a type") + " " + cmp.Or(one.Range, one.Address, one.AbsoluteName, one.Name))
}

// scalar returns the value of a scalar node. A number that is not valid JSON becomes a string.
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
