package nameserver

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/wire/zonedata"
)

// zoneFileEnd is the suffix of zone file names.
const zoneFileEnd = ".zone"

// bindZone is a zone in BIND: its name without the final dot, the name of its view, and its file.
type bindZone struct {
	*servedZone
	name, view, file string
}

// serialNow returns the current serial.
func (z *servedZone) serialNow() uint32 {
	z.mu.RLock()
	defer z.mu.RUnlock()
	return z.serial
}

// bindZones returns the zones of all views for BIND, sorted by file.
func (s *served) bindZones(folder string) (all []bindZone) {
	for _, v := range s.views {
		for _, z := range v.zones {
			if z.settings.Void { // its content is not known
				continue
			}
			sum := sha256.Sum256([]byte(z.settings.ID))
			name := strings.TrimSuffix(z.settings.Name, ".")
			if name == "" {
				name = "."
			}
			all = append(all, bindZone{z, name, bindView(&v.View),
				filepath.Join(folder, hex.EncodeToString(sum[:12])+zoneFileEnd)})
		}
	}
	slices.SortFunc(all, func(a, b bindZone) int { return strings.Compare(a.file, b.file) })
	return all
}

// bindView returns BIND's name of a view.
func bindView(v *zonedata.View) string { return fmt.Sprintf("view-%d", v.ID) }

// writeZone writes the file of a zone if it has changed, and reports whether it did.
func (b *bind) writeZone(z bindZone) (changed bool, err error) {
	var head bytes.Buffer
	z.mu.RLock()
	fmt.Fprintf(&head, ";%s; %s %s", marker, z.settings.ID, z.hash.String())
	z.mu.RUnlock()
	if z.signing != nil {
		due := time.Now().Add(z.signing.copyTime())
		if b.renewal.IsZero() || due.Before(b.renewal) {
			b.renewal = due
		}
		fmt.Fprintf(&head, " %s", signedUntil(z.signing))
	}
	head.WriteString("\n")
	if hasPrefix(z.file, head.Bytes()) {
		return false, nil
	}
	return true, replace(z.file, 0o644, func(w *bufio.Writer) error {
		if _, err := w.Write(head.Bytes()); err != nil {
			return err
		}
		return z.eachSet(time.Now(), func(owner string, s *set) error {
			rrs, err := s.records(owner)
			if err != nil {
				return err
			}
			for _, rr := range rrs {
				line, err := zoneLine(rr)
				if err != nil {
					return err
				}
				if _, err := w.WriteString(line); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// plainTypes are the record types that are written in presentation format. All others can contain arbitrary data and are written in the
// generic format.
var plainTypes = map[uint16]bool{dns.TypeA: true, dns.TypeAAAA: true, dns.TypeNS: true, dns.TypeCNAME: true, dns.TypeDNAME: true,
	dns.TypePTR: true, dns.TypeMX: true, dns.TypeSOA: true, dns.TypeSRV: true, dns.TypeTXT: true, dns.TypeDS: true, dns.TypeDNSKEY: true,
	dns.TypeRRSIG: true, dns.TypeNSEC: true, dns.TypeNSEC3: true, dns.TypeNSEC3PARAM: true}

// zoneLine returns a record as one line of a zone file (RFC 1035 section 5.1, RFC 3597 section 5). It returns an error if the record
// contains a line break.
func zoneLine(rr dns.RR) (string, error) {
	if !plainTypes[rr.Header().Rrtype] {
		generic := new(dns.RFC3597)
		if err := generic.ToRFC3597(rr); err != nil {
			return "", err
		}
		rr = generic
	}
	line := rr.String()
	if strings.ContainsAny(line, "\n\r") {
		return "", fmt.Errorf("a record of %q cannot be written", rr.Header().Name)
	}
	if rest, is := strings.CutPrefix(line, "$"); is { // escaped, or it would be a directive
		line = "\\036" + rest
	}
	return line + "\n", nil
}

// newFile is the name prefix of incomplete files.
const newFile = ".portolan-"

// signedUntil returns a text with the signing keys and the current renewal period. The zone file is written again when the text changes.
func signedUntil(s *signing) string {
	every := max((s.settings.Validity-s.settings.Renewal)/2, 1)
	var names []string
	for _, k := range slices.Concat(s.keySigners, s.zoneSigners) {
		names = append(names, fmt.Sprint(k.tag))
	}
	return fmt.Sprintf("signed by %s for %d", strings.Join(names, ","), time.Now().Unix()/every)
}

// hasPrefix reports whether a file starts with head.
func hasPrefix(path string, head []byte) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	is := make([]byte, len(head))
	n, _ := f.Read(is)
	return bytes.Equal(is[:n], head)
}

// replace writes a file atomically.
func replace(path string, mode os.FileMode, write func(w *bufio.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), newFile)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	w := bufio.NewWriterSize(f, 1<<16)
	if err = write(w); err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}

// keyFile returns the path of the key for BIND's control channel.
func (b *bind) keyFile() string { return filepath.Join(b.Zones, "portolan.key") }

// key returns the text of the control key. It creates the key if there is none.
func (b *bind) key() (string, error) {
	text, err := os.ReadFile(b.keyFile())
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return string(text), err
	}
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // rand.Read never fails
	made := fmt.Sprintf("key \"portolan-control\" { algorithm hmac-sha256; secret \"%s\"; };\n", base64.StdEncoding.EncodeToString(secret[:]))
	return made, replace(b.keyFile(), 0o600, func(w *bufio.Writer) error {
		_, err := w.WriteString(made)
		return err
	})
}

// writeConfig writes the configuration after named-checkconf accepted it. It reports whether BIND must read it.
func (b *bind) writeConfig(text string) (changed bool, err error) {
	if before, err := os.ReadFile(b.Config); err == nil && string(before) == text {
		_, err := b.rndc("status") // BIND may not use it yet
		return err != nil, nil
	}
	next := b.Config + ".portolan"
	if err := replace(next, 0o640, func(w *bufio.Writer) error {
		_, err := w.WriteString(text)
		return err
	}); err != nil {
		return false, err
	}
	if _, err := b.runProgram("named-checkconf", next); err != nil {
		return false, errors.Join(err, os.Remove(next))
	}
	if err := copyGroup(next); err != nil {
		return false, err
	}
	return true, os.Rename(next, b.Config)
}

// bindConfig returns the text of BIND's configuration.
func bindConfig(b *bind, s *served, all []bindZone, control, options string) string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	line("//%s", marker)
	out.WriteString(control)
	line("controls { inet %s port %d allow { 127.0.0.0/8; ::1; } keys { \"portolan-control\"; }; };", b.Control.Addr(), b.Control.Port())
	for _, name := range slices.Sorted(maps.Keys(s.keys)) {
		k := s.keys[name]
		line("key %q { algorithm %s; secret %q; };", k.text, strings.TrimSuffix(hashNames[k.algorithm], "."),
			base64.StdEncoding.EncodeToString(k.secret))
	}
	line("options {\n\tdirectory %q;\n\trecursion no;\n\tdnssec-validation no;\n\tempty-zones-enable no;", b.Zones)
	line("\tallow-transfer { none; };\n\tnotify no;\n\tminimal-any yes;\n\tversion \"Portolan\";")
	b.configuration.bindOptions(line)
	line("%s};", options)
	for _, v := range s.views {
		line("view %q IN {\n\tmatch-clients %s;", bindView(&v.View), bindMatches(v.Clients, true))
		bindRecursion(line, v.Recursion)
		bindPolicies(line, &v.View, all)
		for _, z := range all {
			if z.settings.View == v.ID {
				z.bindStatement(line)
			}
		}
		line("};")
	}
	return out.String()
}

// hashNames are BIND's names of the TSIG algorithms, by name in wire format.
var hashNames = map[string]string{"\x08hmac-md5\x07sig-alg\x03reg\x03int\x00": "hmac-md5", "\x09hmac-sha1\x00": "hmac-sha1",
	"\x0bhmac-sha256\x00": "hmac-sha256", "\x0bhmac-sha512\x00": "hmac-sha512"}

// bindOptions writes the listeners and global options.
func (c *Configuration) bindOptions(line func(string, ...any)) {
	four, six := false, false
	for _, l := range c.Listen {
		at, name := l.addrPort(), "listen-on"
		if at.Addr().Is6() {
			name, six = "listen-on-v6", true
		} else {
			four = true
		}
		line("\t%s port %d { %s; };", name, at.Port(), at.Addr())
	}
	if !four {
		line("\tlisten-on { none; };")
	}
	if !six {
		line("\tlisten-on-v6 { none; };")
	}
	if c.Identity != "" {
		line("\tserver-id %q;", c.Identity)
	}
	if r := c.RateLimit; r != nil {
		slip := defaultSlip
		if r.Slip != nil {
			slip = *r.Slip
		}
		line("\trate-limit { responses-per-second %d; slip %d; exempt-clients { %s }; };", r.ResponsesPerSecond, slip,
			strings.Join(append(r.Exempt, ""), "; "))
	}
}

// bindStatement writes the statement of a zone. BIND is its primary server; serials and records come from Portolan.
func (z bindZone) bindStatement(line func(string, ...any)) {
	line("\tzone %q { type primary; file %q; check-names ignore; check-integrity no; allow-update { none; };", z.name, z.file)
	line("\t\tallow-query %s; allow-transfer %s;", bindMatches(z.settings.Query, true), bindMatches(z.settings.Transfer, false))
	if len(z.settings.Notify) > 0 {
		var targets []string
		for _, to := range z.settings.Notify {
			targets = append(targets, fmt.Sprintf("%s port %d;", to.Addr(), to.Port()))
		}
		line("\t\tnotify explicit; also-notify { %s };", strings.Join(targets, " "))
	}
	line("\t};")
}

// bindMatches returns an address match list. A nil list means any client if otherwise is set, else none.
func bindMatches(list []zonedata.Match, otherwise bool) string {
	if list == nil {
		if otherwise {
			return "{ any; }"
		}
		return "{ none; }"
	}
	var elements []string
	for _, m := range list {
		not := ""
		if m.Not {
			not = "! "
		}
		switch {
		case m.Prefix.IsValid():
			elements = append(elements, not+m.Prefix.String()+";")
		case m.Key != "":
			elements = append(elements, fmt.Sprintf("%skey %q;", not, m.Key))
		case m.List != nil:
			elements = append(elements, not+bindMatches(m.List, false)+";")
		}
	}
	if len(elements) == 0 {
		return "{ none; }"
	}
	return "{ " + strings.Join(elements, " ") + " }"
}
