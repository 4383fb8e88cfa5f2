package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"portolan/client"
)

// Painter colours output if the output is a terminal and NO_COLOR is not set (no-color.org).
type Painter struct{ isColoured bool }

// painterFor returns the painter of a writer.
func painterFor(w io.Writer) Painter {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return Painter{}
	}
	info, err := f.Stat()
	return Painter{err == nil && info.Mode()&os.ModeCharDevice != 0}
}

// The colours of a terminal (ECMA-48).
const (
	red    = "31"
	green  = "32"
	yellow = "33"
)

func (p Painter) paint(colour, text string) string {
	if !p.isColoured {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// marks are the sign in front of a resource and its colour, by the operation on it.
var marks = map[string][2]string{"CREATED": {"+", green}, "CHANGED": {"~", yellow}, "DELETED": {"-", red}, "UNCHANGED": {" ", ""}}

// WriteApplied prints the result of an apply or of its dry run: one line for each resource, and below it the fields that change. It omits
// unchanged resources without notes.
func WriteApplied(w io.Writer, a client.Applied) error {
	p := painterFor(w)
	for _, one := range a.Resources {
		if one.Did == "UNCHANGED" && len(one.Notes) == 0 || one.Did == "ABSENT" {
			continue
		}
		mark := marks[one.Did]
		line := fmt.Sprintf("%s %s %s", mark[0], one.Type, one.Key)
		if a.Transaction != nil && one.Did != "DELETED" {
			line += "  (" + strings.TrimPrefix(one.Path, client.AddressPath) + ")"
		}
		if _, err := fmt.Fprintln(w, p.paint(mark[1], line)); err != nil {
			return err
		}
		width := 0
		for _, c := range one.Changes {
			width = max(width, len(c.Field))
		}
		for _, c := range one.Changes {
			before, after := shownValue(c.Before), shownValue(c.After)
			if before == none && after == none { // for example a password
				after = "(not shown)"
			}
			if _, err := fmt.Fprintf(w, "    %-*s  %s -> %s\n", width, c.Field, p.paint(red, before), p.paint(green, after)); err != nil {
				return err
			}
		}
		for _, field := range slices.Sorted(maps.Keys(one.Once)) {
			if _, err := fmt.Fprintf(w, "    %s  %s  (shown this once)\n", field, one.Once[field]); err != nil {
				return err
			}
		}
		for _, note := range one.Notes {
			if _, err := fmt.Fprintln(w, "   ", note); err != nil {
				return err
			}
		}
	}
	return nil
}

// none is the text for an empty value in a difference.
const none = "none"

// shownValue returns a value as a difference shows it.
func shownValue(raw []byte) string {
	if text := fieldText(raw); text != "" {
		return text
	}
	return none
}

// Summary returns the counts of the operations as text: "2 created, 1 changed, 40 unchanged".
func Summary(a client.Applied) string {
	var parts []string
	for _, c := range []struct {
		n    int
		word string
	}{{a.Created, "created"}, {a.Changed, "changed"}, {a.Deleted, "deleted"}, {a.Unchanged, "unchanged"}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprint(c.n, " ", c.word))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// WriteTally prints the first changes and the counts of a dry run.
func (m *Manager) WriteTally(ctx context.Context, w io.Writer, t client.Tried) error {
	if err := m.WriteChanges(ctx, w, t.Operations); err != nil {
		return err
	}
	about := ""
	if t.Estimate {
		about = "about "
	}
	if t.AtLeast {
		about = "at least "
	}
	approval := ""
	if t.Approval {
		approval = "; needs an approval: a workflow request would be created"
	}
	_, err := fmt.Fprintf(w, "dry run: %s%d would be created, %d changed, %d deleted%s\n", about, t.Created, t.Changed, t.Deleted, approval)
	return err
}

// WriteChanges prints the changes of a transaction. Each resource appears once, with the fields whose final value differs and the names of
// the resources that they refer to.
func (m *Manager) WriteChanges(ctx context.Context, w io.Writer, changes []client.Change) error {
	p, all := painterFor(w), mergeChanges(changes)
	if err := m.nameReferences(ctx, all); err != nil {
		return err
	}
	for _, o := range all {
		mark := marks[map[string]string{"ADD": "CREATED", "CHANGE": "CHANGED", "DELETE": "DELETED"}[o.OperationType]]
		line := fmt.Sprintf("%s %s %s", mark[0], o.ResourceType, nameIn(o))
		if o.Collection != "" {
			line += fmt.Sprintf("  (%s/%d)", o.Collection, o.ResourceID)
		}
		if _, err := fmt.Fprintln(w, p.paint(mark[1], line)); err != nil {
			return err
		}
		if o.OperationType != "CHANGE" {
			continue
		}
		for _, u := range o.FieldUpdates {
			if _, err := fmt.Fprintf(w, "    %s  %s -> %s\n", u.Name, p.paint(red, shownValue(u.PreviousValue)),
				p.paint(green, shownValue(u.Value))); err != nil {
				return err
			}
		}
	}
	return nil
}

// nameIn returns the name of a change's resource, or its ID if the change has no name.
func nameIn(o client.Change) string { return cmp.Or(o.Name, fmt.Sprint(o.ResourceID)) }

// mergeChanges combines the changes of each resource into one: from its value before the first change to its value after the last one. It
// omits resources whose fields end with the value that they started with.
func mergeChanges(changes []client.Change) (all []client.Change) {
	at := map[int64]int{}
	for _, o := range changes {
		i, there := at[o.ResourceID]
		if !there {
			at[o.ResourceID] = len(all)
			o.FieldUpdates = slices.Clone(o.FieldUpdates)
			all = append(all, o)
			continue
		}
		first := &all[i]
		first.Name = cmp.Or(o.Name, first.Name)
		switch {
		case o.OperationType == "DELETE":
			first.OperationType, first.FieldUpdates = "DELETE", o.FieldUpdates
		case first.OperationType == "CHANGE":
			for _, u := range o.FieldUpdates {
				j := slices.IndexFunc(first.FieldUpdates, func(x client.FieldUpdate) bool { return x.Name == u.Name })
				if j < 0 {
					first.FieldUpdates = append(first.FieldUpdates, u)
				} else {
					first.FieldUpdates[j].Value = u.Value
				}
			}
		}
	}
	for i := range all {
		if all[i].OperationType == "CHANGE" {
			all[i].FieldUpdates = slices.DeleteFunc(all[i].FieldUpdates, func(u client.FieldUpdate) bool {
				return string(u.Value) == string(u.PreviousValue)
			})
		}
	}
	return slices.DeleteFunc(all, func(o client.Change) bool { return o.OperationType == "CHANGE" && len(o.FieldUpdates) == 0 })
}
