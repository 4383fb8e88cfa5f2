package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"portolan/client"
	"portolan/internal/client/cli"
	"portolan/internal/client/convert"
)

// differences prints the resources with the tag that are not in the source, and the members that the source leaves empty.
func (f *sourceFlags) differences(s *session, m *cli.Manager, d *convert.Document, a client.Apply) error {
	var err error
	if a.Resources, _, err = d.JSON(true); err != nil {
		return err
	}
	a.Prune = a.Tag != ""
	o := f.options()
	o.DryRun = true
	plan, err := m.Apply(s.ctx, a, o)
	if err != nil {
		return err
	}
	for _, one := range plan.Resources {
		if one.Did == "ABSENT" {
			fmt.Fprintf(s.stderr, "not in an imported row, kept: %s %s\n", one.Type, one.Key)
		}
		if one.Did == "DELETED" {
			text := one.Type + " " + one.Key
			if len(one.Notes) > 0 {
				text += " (" + strings.Join(one.Notes, "; ") + ")"
			}
			fmt.Fprintln(s.stderr, "not in the source, kept (--prune deletes it):", text)
		}
		for _, change := range one.Changes {
			before, after := string(change.Before), string(change.After)
			shown := before != "null" && before != "" // unlike a secret
			if one.Did == "CHANGED" && shown && (after == "null" || after == "") {
				fmt.Fprintf(s.stderr, "empty in the source, kept (--prune removes it): %s %s: %s %s\n", one.Type, one.Key, change.Field,
					change.Before)
			}
		}
	}
	if a.Tag == "" && plan.Created < len(plan.Resources) {
		fmt.Fprintln(s.stderr, withoutTag)
	}
	return nil
}

// withoutTag is the note of an import without --tag that finds existing resources.
const withoutTag = "note: without --tag, resources of an earlier import that are no longer in the source cannot be found"

// listUnnamed returns a line for each address that a host has lost, or would lose in a dry run, and that no host of the source has.
func listUnnamed(done client.Applied, source []json.RawMessage) (lines []string) {
	named := map[netip.Addr]bool{}
	for _, raw := range source {
		var host struct{ Addresses json.RawMessage }
		if json.Unmarshal(raw, &host) == nil {
			for _, a := range addressesIn(host.Addresses) {
				named[a] = true
			}
		}
	}
	lost := "no longer has"
	if done.DryRun {
		lost = "would no longer have"
	}
	for _, one := range done.Resources {
		for _, change := range one.Changes {
			if one.Type != "HostRecord" || change.Field != "addresses" {
				continue
			}
			for _, a := range addressesIn(change.Before) {
				if !named[a] {
					lines = append(lines, fmt.Sprintf("HostRecord %s %s the address %v, which stays assigned: "+
						"delete it if it is free (portolan delete addresses/%v)", one.Key, lost, a, a))
				}
			}
		}
	}
	return lines
}

// addressesIn returns the addresses in a value of HostRecord.addresses: a list of strings, or of objects with the member address.
func addressesIn(raw json.RawMessage) (all []netip.Addr) {
	var items []any
	if json.Unmarshal(raw, &items) != nil {
		return nil
	}
	for _, one := range items {
		if members, ok := one.(map[string]any); ok {
			one = members["address"]
		}
		if a, err := netip.ParseAddr(fmt.Sprint(one)); err == nil {
			all = append(all, a)
		}
	}
	return all
}

// summarize prints the number of skipped rows, by reason.
func (f *sourceFlags) summarize(s *session, d *convert.Document) {
	for _, one := range d.Skipped {
		f.reasons.add(one.Reason)
	}
	f.reasons.print(s)
}

// reasons are the numbers of skipped rows, by reason.
type reasons map[string]int

// add counts a row and returns the number of rows with its reason. It replaces the values of the row in the reason, so that equal reasons
// are counted together.
func (r *reasons) add(why string) (count int) {
	if *r == nil {
		*r = reasons{}
	}
	words := strings.Fields(why)
	for i, word := range words {
		if strings.ContainsAny(word, "0123456789\"") || strings.Contains(strings.TrimRight(word, ".:;,"), ".") {
			words[i] = "…"
		}
	}
	reason := strings.Join(slices.Compact(words), " ")
	(*r)[reason]++
	return (*r)[reason]
}

// print prints the counts and the remedy.
func (r reasons) print(s *session) {
	for _, reason := range slices.Sorted(maps.Keys(r)) {
		fmt.Fprintf(s.stderr, "skipped %d: %s\n", r[reason], reason)
	}
	if len(r) > 0 {
		fmt.Fprintln(s.stderr, "Correct these rows and import the file again. Rows that are imported already stay the same.")
	}
}
