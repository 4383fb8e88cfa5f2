// Command gen writes portolan/types.py with the fields of resources and portolan/keys.py with their key fields, from the declarations. It
// also writes the copies that the Ansible collection contains.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/manager/model"
)

func main() {
	a := model.NewAPI(nil)
	client, err := os.ReadFile("portolan/__init__.py")
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
	const ansible = "../ansible/ansible_collections/portolan/network/plugins/module_utils/"
	for name, text := range map[string]string{"portolan/types.py": types(a), "portolan/keys.py": keys(a),
		ansible + "keys.py": keys(a), ansible + "client.py": copied + string(client)} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil { //nolint:gosec // readable by all users
			fmt.Fprintln(os.Stderr, "gen:", err)
			os.Exit(1)
		}
	}
}

// copied is the header of the client's copy in the Ansible collection.
const copied = "# Copied by go generate ./clients/python from clients/python/portolan/__init__.py. Do not edit.\n"

const made = "# Made by go generate ./clients/python from the declarations. Do not edit.\n"

// keys returns the key fields of the collections whose key is not name.
func keys(a *resource.API) string {
	var b strings.Builder
	b.WriteString(made + "\nKEYS = {\n")
	for _, c := range a.Collections() {
		if field := c.KeyField(); field != "name" && !c.Inner {
			fmt.Fprintf(&b, "    %q: %q,\n", c.Name, field)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// types returns the types of resources as typed dictionaries.
func types(a *resource.API) string {
	var b strings.Builder
	b.WriteString(made + "\nfrom __future__ import annotations\n\nfrom typing import Any, Dict, List, Literal, Optional, TypedDict\n")
	all := a.AllTypes()
	slices.SortFunc(all, func(x, y *schema.Type) int { return strings.Compare(x.Name, y.Name) })
	for _, t := range all {
		fmt.Fprintf(&b, "\n\n%s = TypedDict(%q, {\n", t.Name, t.Name)
		for _, f := range t.Fields {
			if !f.Hidden {
				fmt.Fprintf(&b, "    %q: %s,\n", f.Name, typeOf(t, f))
			}
		}
		b.WriteString("}, total=False)\n")
		if text := a.Descriptions[t.Name]; text != "" {
			fmt.Fprintf(&b, "%s.__doc__ = %q\n", t.Name, text)
		}
	}
	return b.String()
}

// typeOf returns the Python type of a field.
func typeOf(t *schema.Type, f *schema.Field) string {
	text := map[schema.Kind]string{schema.Bool: "bool", schema.Integer: "int", schema.Float: "float", schema.Map: "Dict[str, Optional[str]]",
		schema.Raw: "Any", schema.Strings: "List[str]", schema.Integers: "List[int]", schema.Reference: "Dict[str, Any]",
		schema.References: "List[Dict[str, Any]]", schema.Nested: "Dict[str, Any]", schema.NestedList: "List[Dict[str, Any]]"}[f.Kind]
	switch {
	case f.Name == "type":
		return fmt.Sprintf("Literal[%q]", t.Name)
	case text == "" && len(f.Enum) > 0 && f.Others == nil:
		quoted := make([]string, len(f.Enum))
		for i, value := range f.Enum {
			quoted[i] = fmt.Sprintf("%q", value)
		}
		text = "Literal[" + strings.Join(quoted, ", ") + "]"
	case text == "":
		text = "str"
	}
	if f.Nullable && text != "Any" {
		return "Optional[" + text + "]"
	}
	return text
}
