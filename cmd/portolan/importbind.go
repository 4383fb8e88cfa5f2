package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"portolan/internal/base/naming"
	"portolan/internal/client/convert"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns/transfer"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/model"
)

type importBind struct {
	zoneFlags
	Configuration string `help:"The name of the configuration. Required if there is more than one." placeholder:"NAME"`
	View          string `help:"The view for zones without a view. Other zones go into the view with the name of their BIND view." default:"default" placeholder:"NAME"`
	Reverse       bool   `help:"Also import reverse zones. By default they are omitted, because Portolan derives them from networks and hosts."`
	File          string `arg:"" help:"The file named.conf."`
}

// Help returns examples.
func (importBind) Help() string {
	return "Examples:\n\n  portolan import bind --data /var/lib/portolan --configuration main /etc/bind/named.conf --dry-run"
}

// Run imports the zones of BIND one by one.
func (c *importBind) Run(s *session) error {
	settings, err := convert.Named(c.File, readFile)
	if err != nil {
		return fmt.Errorf("nothing was imported: %w", err)
	}
	for _, note := range settings.Notes {
		fmt.Fprintln(s.stderr, "left out:", note)
	}
	for _, one := range settings.Skipped {
		fmt.Fprintln(s.stderr, "skipped:", one)
	}
	if c.Strict && len(settings.Skipped) > 0 {
		return fmt.Errorf("nothing was imported: %d statements would be skipped", len(settings.Skipped))
	}
	known := slices.Concat(settings.Zones, settings.OtherZones)
	zones := slices.DeleteFunc(settings.Zones, func(z convert.NamedZone) bool {
		reverse := isReverse(z.Name) && !c.Reverse
		if reverse {
			fmt.Fprintln(s.stderr, "left out: the reverse zone", z.Name)
		}
		return reverse
	})
	if len(zones) == 0 {
		return fmt.Errorf("%s: contains no zone to import, or only reverse zones (--reverse)", c.File)
	}
	return c.open(func(st *store.Store, _ *identity.Service) error {
		if c.Strict && !c.DryRun { // all of them or none
			if err := c.tryAll(s, st, zones); err != nil {
				return err
			}
		}
		if isInteractive() && !c.Yes && !c.DryRun {
			if err := c.ask(s, st, zones); err != nil {
				return err
			}
		}
		wrong, skipped := 0, len(settings.Skipped)
		for _, z := range zones { // a zone that fails does not stop the others
			n, err := c.zone(s, st, z)
			if errors.As(err, new(usageError)) {
				return err
			}
			if skipped += n; errors.As(err, new(unreadableError)) && !c.Strict {
				skipped++
				fmt.Fprintf(s.stderr, "skipped: zone %s in the file %s, view %s: %v: correct the file\n", z.Name, z.File, c.viewOf(z), err)
			} else if err != nil {
				wrong++
				fmt.Fprintf(s.stderr, "not imported: %s in the view %s: %v\n", z.Name, c.viewOf(z), err)
			}
		}
		prefix := "not in named.conf, kept"
		if wrong+skipped > 0 {
			prefix = "not in an imported zone, kept"
		}
		if err := c.listOthers(s, st, prefix, known); err != nil {
			fmt.Fprintln(s.stderr, "note: cannot list the zones that are not in named.conf:", err)
		}
		switch {
		case wrong > 0 && c.DryRun:
			return fmt.Errorf("%d of %d zones would not be imported", wrong, len(zones))
		case wrong > 0:
			return fmt.Errorf("%d of %d zones were not imported; run the same command again to import them", wrong, len(zones))
		case skipped > 0:
			return skippedError{skipped}
		}
		return nil
	})
}

// ask tries all zones and asks once whether to import them.
func (c *importBind) ask(s *session, st *store.Store, zones []convert.NamedZone) error {
	tried := *c
	tried.DryRun = true
	for _, z := range zones {
		if _, err := tried.zone(s, st, z); err != nil {
			fmt.Fprintf(s.stderr, "would not be imported: %s in the view %s: %v\n", z.Name, c.viewOf(z), err)
		}
	}
	fmt.Fprintf(s.stderr, "Do that? [y/N] ")
	if !confirm() {
		return errors.New("nothing was changed")
	}
	c.Yes = true
	return nil
}

// listOthers prints the zones in the same views that are not in named.conf (known). It prints only the topmost zone of a subtree.
func (c *importBind) listOthers(s *session, st *store.Store, prefix string, known []convert.NamedZone) error {
	named := map[string][]string{}
	for _, z := range known {
		named[c.viewOf(z)] = append(named[c.viewOf(z)], naming.Key(z.Name))
	}
	for _, view := range slices.Sorted(maps.Keys(named)) {
		all, err := transfer.OtherZones(s.ctx, model.NewAPI(st), c.Configuration, view, named[view])
		if err != nil {
			return err
		}
		for _, zone := range all {
			if c.Reverse || !isReverse(zone) {
				fmt.Fprintf(s.stderr, "%s: zone %s (view %s)\n", prefix, zone, view)
			}
		}
	}
	return nil
}

// tryAll returns an error if any zone cannot be imported completely.
func (c *importBind) tryAll(s *session, st *store.Store, zones []convert.NamedZone) error {
	tried, quiet := *c, *s
	tried.DryRun, quiet.stdout = true, io.Discard
	for _, z := range zones {
		if _, err := tried.zone(&quiet, st, z); err != nil {
			return fmt.Errorf("nothing was imported: %s in the view %s: %w", z.Name, c.viewOf(z), err)
		}
	}
	return nil
}

// viewOf returns the target view of a zone.
func (c *importBind) viewOf(z convert.NamedZone) string {
	if z.View == "" {
		return c.View
	}
	return z.View
}

// unreadableError reports a zone file that cannot be imported.
type unreadableError struct{ error }

// Unwrap returns the reason.
func (e unreadableError) Unwrap() error { return e.error }

// zone imports a zone, or tries it, and returns the number of skipped records. It returns an unreadableError if the file is wrong.
func (c *importBind) zone(s *session, st *store.Store, z convert.NamedZone) (skipped int, err error) {
	f, err := os.Open(z.File)
	if err != nil {
		return 0, unreadableError{err}
	}
	defer func() { _ = f.Close() }()
	read, err := readZoneFile(f, z.File, z.Name, z.Directory, filepath.Dir(z.File))
	if err == nil && naming.Key(read.zone) != naming.Key(z.Name) {
		err = fmt.Errorf("%s has the SOA of %s, but named.conf assigns it to %s", z.File, read.zone, z.Name)
	}
	if err != nil {
		return 0, unreadableError{err}
	}
	if read.view = c.viewOf(z); !c.DryRun {
		if err := transfer.EnsureView(s.ctx, model.NewAPI(st), c.Configuration, read.view); err != nil {
			return 0, err
		}
	}
	return c.importRecords(s, st, c.Configuration, read)
}
