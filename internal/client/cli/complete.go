package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"portolan/client"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// The values of the struct tag complete. It selects the completion of an argument or of a flag's value.
const (
	completeCollection = "collection" // networks
	completePath       = "path"       // networks/10.1.0.0/24, networks/10.1.0.0/24/addresses
	completeType       = "type"       // IPv4Network, network
	completeField      = "field"      // name=, for the collection or type in the first argument
	completeContext    = "context"
	completeScope      = "scope" // a configuration for --configuration, a view for --view
	completePoint      = "point" // the name of a fleet service point
)

// completionTime bounds how long a completion waits for the manager.
const completionTime = 2 * time.Second

// completionsShown is the maximum number of names that a completion requests from the manager.
const completionsShown = 100

// Candidate is one completion of a word, with a short description.
type Candidate struct{ Text, Help string }

// Completer completes command lines.
type Completer struct {
	App *kong.Application
	API *resource.API
	// Manager returns the manager that the command line addresses, from the values of its flags. It returns nil when no manager is known.
	Manager func(flags map[string]string) *Manager
}

// Complete returns the completions of the last word. words are the words after the program's name.
func (c *Completer) Complete(ctx context.Context, words []string) []Candidate {
	if len(words) == 0 {
		words = []string{""}
	}
	node, given, last := c.App.Node, []string(nil), words[len(words)-1]
	flags := map[string]string{}
	var pending *kong.Flag // the flag that still needs its value
	for _, word := range words[:len(words)-1] {
		switch {
		case pending != nil:
			flags[pending.Name], pending = word, nil
		case strings.HasPrefix(word, "-") && word != "-":
			name, value, hasValue := strings.Cut(word, "=")
			if f := flagOf(node, name); f != nil {
				if flags[f.Name] = value; !hasValue && !f.IsBool() {
					pending = f
				}
			}
		default:
			if child := childOf(node, word); child != nil && given == nil {
				node = child
			} else {
				given = append(given, word)
			}
		}
	}
	var all []Candidate
	switch {
	case pending != nil:
		all = c.values(ctx, pending.Value, last, given, flags)
	case strings.HasPrefix(last, "-"):
		for _, f := range flagsOf(node) {
			if !f.Hidden {
				all = append(all, Candidate{"--" + f.Name, f.Help})
			}
		}
	default:
		all = c.words(ctx, node, last, given, flags)
	}
	all = slices.DeleteFunc(all, func(x Candidate) bool { return !hasPrefixFold(x.Text, last) })
	slices.SortFunc(all, func(x, y Candidate) int { return strings.Compare(x.Text, y.Text) })
	return slices.Compact(all)
}

func hasPrefixFold(text, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix)
}

// words returns the subcommands of a node and the completions of its next argument.
func (c *Completer) words(ctx context.Context, node *kong.Node, last string, given []string, flags map[string]string) (all []Candidate) {
	if given == nil {
		for _, child := range node.Children {
			if !child.Hidden {
				all = append(all, Candidate{child.Name, child.Help})
			}
		}
	}
	if node.DefaultCmd != nil {
		node = node.DefaultCmd
	}
	positional := node.Positional
	if len(positional) == 0 {
		return all
	}
	at := positional[min(len(given), len(positional)-1)]
	if len(given) >= len(positional) && !at.IsSlice() && !at.IsCumulative() {
		return all
	}
	return append(all, c.values(ctx, at, last, given, flags)...)
}

// points returns the service points with a name that contains the word.
func (c *Completer) points(ctx context.Context, last string, flags map[string]string) (all []Candidate) {
	m := c.Manager(flags)
	if m == nil {
		return nil
	}
	query := url.Values{"limit": {fmt.Sprint(completionsShown)}}
	if last != "" {
		query.Set("nameContains", last)
	}
	found, err := m.InstancesBy(ctx, query)
	if err != nil { // no completion without an answer
		return nil
	}
	for _, one := range found {
		all = append(all, Candidate{one.Name, one.Status})
	}
	return all
}

// values returns the completions of a flag's value or of an argument.
func (c *Completer) values(ctx context.Context, v *kong.Value, last string, given []string, flags map[string]string) (all []Candidate) {
	if v.Enum != "" {
		for name := range v.EnumMap() {
			if name != "" {
				all = append(all, Candidate{name, ""})
			}
		}
		return all
	}
	ctx, end := context.WithTimeout(ctx, completionTime)
	defer end()
	switch v.Tag.Get("complete") {
	case completePoint:
		return c.points(ctx, last, flags)
	case completeCollection:
		return c.collections("")
	case completePath:
		if !strings.Contains(last, "/") {
			return c.collections("/")
		}
		return c.paths(ctx, last, flags)
	case completeType:
		all = c.collections("")
		for _, t := range c.API.AllTypes() {
			if !t.NotMade {
				all = append(all, Candidate{t.Name, c.API.Descriptions[t.Name]})
			}
		}
		return all
	case completeField:
		if len(given) > 0 {
			return c.fields(given[0], last)
		}
	case completeScope:
		scopes, err := CollectionNamed(c.API, v.Name)
		if err != nil {
			return nil
		}
		for _, one := range c.paths(ctx, scopes.Name+"/"+last, flags) {
			all = append(all, Candidate{strings.TrimPrefix(one.Text, scopes.Name+"/"), ""})
		}
		return all
	case completeContext:
		contexts, err := ReadContexts()
		if err != nil {
			return nil
		}
		for name, one := range contexts.Contexts {
			all = append(all, Candidate{name, one.URL})
		}
	}
	return all
}

func (c *Completer) collections(behind string) (all []Candidate) {
	for _, name := range CollectionNames(c.API) {
		all = append(all, Candidate{name + behind, ""})
	}
	return all
}

// paths returns the resources of a collection by their keys, which the manager lists. For a path with a resource it adds the resource's
// subcollections.
func (c *Completer) paths(ctx context.Context, last string, flags map[string]string) (all []Candidate) {
	word, key, _ := strings.Cut(last, "/")
	of, err := CollectionNamed(c.API, word)
	if err != nil {
		return nil
	}
	if i := strings.LastIndexByte(key, '/'); i > 0 {
		for _, s := range of.Subs {
			if s.Relation != resource.Unbuilt {
				all = append(all, Candidate{word + "/" + key[:i] + "/" + s.Name, ""})
			}
		}
	}
	m := c.Manager(flags)
	if m == nil {
		return all
	}
	field := of.KeyField()
	q := client.Query{Limit: completionsShown, Fields: "id,name," + field, OrderBy: field}
	filters := m.scopes(of)
	if key != "" {
		filters = append(filters, field+":startsWith("+Quoted(key)+")")
	}
	q.Filter = strings.Join(filters, " and ")
	page, err := m.List(ctx, of.Name, q)
	if err != nil {
		return all
	}
	for _, raw := range page.Data {
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil {
			return all
		}
		if text := fieldText(members[field]); text != "" && !strings.ContainsAny(text, " \t\n'\"") {
			help := fieldText(members["name"])
			if help == text {
				help = ""
			}
			all = append(all, Candidate{word + "/" + text, help})
		}
	}
	return all
}

// fields returns the writable fields of a type, a collection or a subcollection as NAME=. For a field with fixed values it returns
// NAME=VALUE.
func (c *Completer) fields(what, last string) (all []Candidate) {
	word, _, _ := strings.Cut(what, "/")
	var types []*schema.Type
	for _, t := range c.API.AllTypes() {
		if strings.EqualFold(t.Name, word) {
			types = []*schema.Type{t}
		}
	}
	if types == nil {
		of, err := CollectionNamed(c.API, word)
		if err != nil {
			return nil
		}
		types = of.Types
		if i := strings.LastIndexByte(what, '/'); i > 0 {
			if s := of.Sub(what[i+1:]); s != nil {
				types = c.API.ItemTypes(s)
			}
		}
	}
	set, _, valued := strings.Cut(last, "=")
	for _, t := range types {
		for _, f := range t.Fields {
			switch {
			case f.ReadOnly || f.Hidden || f.Also != "" || f.Name == "id" || f.Name == "type":
			case !valued:
				all = append(all, Candidate{f.Name + "=", c.API.Descriptions[f.Owner+"."+f.Name]})
			case f.Name == set && f.Kind == schema.Bool:
				all = append(all, Candidate{set + "=true", ""}, Candidate{set + "=false", ""})
			case f.Name == set:
				for _, value := range f.Enum {
					all = append(all, Candidate{set + "=" + value, ""})
				}
			}
		}
	}
	return all
}

func flagsOf(node *kong.Node) (all []*kong.Flag) {
	for at := node; at != nil; at = at.Parent {
		all = append(all, at.Flags...)
	}
	if node.DefaultCmd != nil {
		all = append(all, node.DefaultCmd.Flags...)
	}
	return all
}

func flagOf(node *kong.Node, word string) *kong.Flag {
	for _, f := range flagsOf(node) {
		if word == "--"+f.Name || f.Short != 0 && word == "-"+string(f.Short) {
			return f
		}
	}
	return nil
}

func childOf(node *kong.Node, word string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == word || slices.Contains(child.Aliases, word) {
			return child
		}
	}
	return nil
}

// CompletionScript returns the completion script of a shell: bash, zsh or fish.
func CompletionScript(shell string) (string, error) {
	switch shell {
	case "bash":
		return bashScript, nil
	case "zsh":
		return zshScript, nil
	case "fish":
		return fishScript, nil
	}
	return "", fmt.Errorf("no completion for %q: supported shells are bash, zsh and fish", shell)
}

// bashScript is the completion of bash. Bash splits words at = and :, so the script removes the part before the last of them from each
// completion.
const bashScript = `# Completion of portolan for bash:  source <(portolan completion bash)
_portolan() {
    local line="${COMP_LINE:0:COMP_POINT}" IFS=$' \t\n'
    local -a words
    read -ra words <<<"$line"
    [[ "$line" == *[[:space:]] ]] && words+=("")
    local cur="${words[${#words[@]}-1]}"
    local cut="${cur%"${cur##*[:=]}"}" one
    COMPREPLY=()
    while IFS=$'\t' read -r one _; do
        COMPREPLY+=("${one#"$cut"}")
    done < <(portolan complete -- "${words[@]:1}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && "${COMPREPLY[0]}" == *[/=] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o default -F _portolan portolan
`

const zshScript = `#compdef portolan
# Completion of portolan for zsh:  source <(portolan completion zsh)
_portolan() {
    local line text help
    local -a open closed
    while IFS=$'\t' read -r text help; do
        line="${text//:/\\:}"
        [[ -n "$help" ]] && line="$line:$help"
        if [[ "$text" == *[/=] ]]; then open+=("$line"); else closed+=("$line"); fi
    done < <(portolan complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
    (( $#open )) && _describe portolan open -S ''
    (( $#closed )) && _describe portolan closed
    (( $#open + $#closed )) || _files
}
if [[ "$funcstack[1]" == _portolan ]]; then _portolan "$@"; else compdef _portolan portolan; fi
`

const fishScript = `# Completion of portolan for fish:  portolan completion fish | source
complete -c portolan -f -a '(portolan complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
`
