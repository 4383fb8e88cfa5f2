package dnspublish

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/manager/dns"
)

// Limits of a feed: its length in bytes and its number of names, which a resolver keeps in memory. A name that includes all names below it
// counts twice. feedRefresh is the default interval between two fetches.
const (
	maxFeedBytes = 512 << 20
	maxFeedNames = 2_000_000
	feedRefresh  = time.Hour
)

// takeFeed fetches the names of a feed, and stores them if they changed.
func (c *Copier) takeFeed(ctx context.Context, z *copiedZone, before copiedNow) (soa *wire.SOA, what string, err error) {
	soa = before.soa
	names := map[string]bool{}
	categories := z.policy.FeedCategories
	if len(categories) == 0 {
		categories = []string{""}
	}
	for _, category := range categories {
		if err := c.readFeed(ctx, category, names); err != nil {
			return soa, "failed", err
		}
	}
	for again := 0; ; again++ {
		if before, err = c.deployed(ctx, z); err != nil { // after the fetch, which may take long
			return soa, "failed", err
		}
		soa, what, err = c.putFeed(ctx, z, before, names)
		if !errors.Is(err, errConcurrentDeployment) || again == maxConflictRetries {
			return soa, what, err
		}
	}
}

// putFeed publishes the names of a feed as a change of the deployed content.
func (c *Copier) putFeed(ctx context.Context, z *copiedZone, before copiedNow, names map[string]bool) (
	soa *wire.SOA, what string, err error,
) {
	soa = before.soa
	serial := uint32(time.Now().Unix()) //nolint:gosec // serial numbers wrap around (RFC 1982)
	if soa != nil && int32(serial-soa.Serial) <= 0 {
		serial = soa.Serial + 1
	}
	got := feedAuthority(z)
	got.Serial = serial
	ns := &wire.NS{Hdr: got.Hdr, Ns: "localhost."}
	ns.Hdr.Rrtype = wire.TypeNS
	rrs := []wire.RR{got, ns}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		owner := name + "." + z.name
		if len(owner) > maxOwnerLength { // the name is too long for the zone
			continue
		}
		rr, err := dns.Response(owner, dns.DefaultTTL, "BLOCKLIST", "")
		if err != nil {
			return soa, "failed", err
		}
		rrs = append(rrs, rr)
	}
	after, err := entriesOfRecords(rrs)
	if err != nil {
		return soa, "failed", err
	}
	p, err := c.publishWhole(ctx, z, before, inOrder(after), serial)
	if err != nil {
		return soa, "failed", err
	}
	if before.refreshed > 0 && soa != nil && onlySerialChanged(p) {
		return got, "current", c.recordRefresh(ctx, z, nil)
	}
	if err := c.recordRefresh(ctx, z, p); err != nil {
		return soa, "failed", err
	}
	return got, "copied", nil
}

// maxConflictRetries is the maximum number of retries of putFeed after concurrent deployments.
const maxConflictRetries = 5

// maxOwnerLength is the maximum length of a name as text, with its final dot (RFC 1035 section 2.3.4).
const maxOwnerLength = 254

// feedAuthority returns the SOA of the zone of a feed. The zone expires a week after the last fetch, or after four refresh intervals if
// these are longer.
func feedAuthority(z *copiedZone) *wire.SOA {
	every := z.policy.RefreshTime()
	if every == 0 {
		every = feedRefresh
	}
	return &wire.SOA{Hdr: wire.RR_Header{Name: z.name, Rrtype: wire.TypeSOA, Class: wire.ClassINET, Ttl: dns.DefaultTTL}, Ns: "localhost.",
		Mbox: "hostmaster." + z.name, Refresh: uint32(every.Seconds()), Retry: soaRetry, Minttl: soaMinimum,
		Expire: uint32(max(7*24*time.Hour, 4*every).Seconds())}
}

// onlySerialChanged reports whether a publication changes only the serial number.
func onlySerialChanged(p *publication) bool {
	if len(p.removed) != 1 || len(p.added) != 1 || p.removed[0].Record().Type() != wire.TypeSOA || p.added[0].Record().Type() != wire.TypeSOA {
		return false
	}
	return string(withSerial(p.removed[0].Record(), 0)) == string(withSerial(p.added[0].Record(), 0))
}

// readFeed fetches the feed of a category and adds its names to names.
func (c *Copier) readFeed(ctx context.Context, category string, names map[string]bool) error {
	if c.Feed == nil {
		return errors.New("no feeds are configured: start the manager with --response-feeds URL")
	}
	feed, err := c.Feed(ctx, category)
	if err != nil {
		return fmt.Errorf("fetch a feed: %w", err)
	}
	defer func() { _ = feed.Close() }()
	bounded := &io.LimitedReader{R: feed, N: maxFeedBytes + 1}
	if err := readFeed(bounded, names); err != nil {
		return fmt.Errorf("read a feed: %w", err)
	}
	if bounded.N <= 0 {
		return fmt.Errorf("read a feed: more than %d bytes", maxFeedBytes)
	}
	return nil
}

// readFeed adds the names of a list to names. A line contains one name, which includes all names below it, or ||name^ with the same
// meaning, as in ad block lists. It can also contain an address and names, as in a hosts file; these do not include names below them.
// Comments start with # or ; at the beginning or after a blank, or are lines that start with !. Ad block rules for parts of pages or for
// some requests only are skipped. A list with any other line, such as an HTML page, is rejected, and so is a list without names.
func readFeed(in io.Reader, names map[string]bool) error {
	lines := bufio.NewScanner(in)
	found := 0
	for number := 1; lines.Scan(); number++ {
		fields := strings.Fields(lines.Text())
		if at := slices.IndexFunc(fields, func(f string) bool { return f[0] == '#' || f[0] == ';' }); at >= 0 {
			fields = fields[:at]
		}
		if len(fields) == 0 || isBrowserRule(fields[0]) {
			continue
		}
		below := true
		if _, err := netip.ParseAddr(fields[0]); err == nil && len(fields) > 1 {
			fields, below = fields[1:], false
		} else if len(fields) > 1 {
			return fmt.Errorf("line %d: must contain a name, or an address with names", number)
		}
		for _, name := range fields {
			if rest, is := strings.CutPrefix(name, "||"); is {
				name = strings.TrimSuffix(rest, "^")
			}
			name = strings.TrimPrefix(name, "*.")
			is, err := addFeedName(names, name, below)
			if err != nil {
				return fmt.Errorf("line %d: %w", number, err)
			}
			if is {
				found++
			}
		}
		if len(names) > maxFeedNames {
			return fmt.Errorf("the feed has more than %d names", maxFeedNames)
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if found == 0 { // an empty response must not unblock all names
		return errors.New("the feed has no names")
	}
	return nil
}

// isBrowserRule reports whether a line of an ad block list is a comment, or a rule that does not block a whole name.
func isBrowserRule(text string) bool {
	return strings.HasPrefix(text, "!") || strings.HasPrefix(text, "@@") || strings.HasPrefix(text, "[") || strings.Contains(text, "##") ||
		strings.Contains(text, "#@#") || strings.Contains(text, "#?#") || strings.Contains(text, "#$#") || strings.Contains(text, "$") ||
		strings.HasPrefix(text, "||") && strings.ContainsAny(text[2:], "/*")
}

// addFeedName adds a name of a feed, and with below also all names below it. It returns false for entries that are not usable names.
func addFeedName(names map[string]bool, name string, below bool) (is bool, err error) {
	if _, err := netip.ParseAddr(name); err == nil { // some lists contain addresses, which are not names
		return false, nil
	}
	clean := strings.ToLower(naming.Clean(name))
	ascii, err := naming.ASCII(clean)
	if err != nil || naming.Check(clean, naming.AnyName) != nil || ascii == "" {
		return false, fmt.Errorf("%q is not a name", name)
	}
	if ascii == "localhost" || !strings.Contains(ascii, ".") { // hosts files contain the names of the machine itself
		return false, nil
	}
	if names[ascii] = true; below {
		names["*."+ascii] = true
	}
	return true, nil
}
