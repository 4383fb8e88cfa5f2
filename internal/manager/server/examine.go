package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"portolan/internal/base/dirlock"
	"portolan/internal/engine/store"
	"portolan/internal/manager/model"
	"portolan/internal/wire/checkin"
)

// Finding is the result of one check.
type Finding struct {
	// What is the checked object, and Is its state.
	What string `json:"what"`
	Is   string `json:"is"`
	// Do is the remedy; empty if the check passed. Fault means that a manager cannot start before it is applied.
	Do    string `json:"do"`
	Fault bool   `json:"fault"`
}

// Print writes the finding as a line, with the remedy below it.
func (f Finding) Print(w io.Writer) error {
	mark := "ok     "
	switch {
	case f.Fault:
		mark = "FAULT  "
	case f.Do != "":
		mark = "warning"
	}
	_, err := fmt.Fprintf(w, "%s  %-14s %s\n", mark, f.What, f.Is)
	if err == nil && f.Do != "" {
		_, err = fmt.Fprintf(w, "         %14s-> %s\n", "", f.Do)
	}
	return err
}

// Faults returns the number of findings that prevent a start.
func Faults(all []Finding) (n int) {
	for _, f := range all {
		if f.Fault {
			n++
		}
	}
	return n
}

// Examine checks the directory, ports, certificate and database of a manager with these options. It changes nothing and may run beside a
// manager.
func Examine(ctx context.Context, o Options) (all []Finding) {
	serving := false
	if o.Data != "" {
		var found []Finding
		found, serving = examineDirectory(o.Data)
		all = append(all, found...)
	}
	all = append(all, examineDatabase(ctx, o, serving)...)
	for _, l := range []struct{ flag, address string }{{"listen", o.Listen}, {"checkin-listen", o.CheckinListen}, {"metrics-listen",
		o.MetricsListen}} {
		if l.address != "" && !strings.HasPrefix(l.address, socketPrefix) {
			all = append(all, examinePort(ctx, l.flag, l.address))
		}
	}
	if o.TLSCert != "" {
		all = append(all, examineCertificate(o.TLSCert, o.TLSKey))
	}
	all = append(all, Sealing(len(o.MasterKeys) > 0))
	for _, path := range []string{o.AccessLog, o.AuditLog, o.HistoryHeads} {
		if path != "" && path != "-" {
			all = append(all, examineFile(path))
		}
	}
	return all
}

// Sealing returns the finding about the master key of secrets.
func Sealing(masterKey bool) Finding {
	if masterKey {
		return Finding{What: "secrets", Is: "are sealed by a master key"}
	}
	return Finding{What: "secrets",
		Is: "encryption keys are stored next to the data: anyone with the database or a backup can decrypt the secrets",
		Do: "portolan secrets new-key > FILE, and --master-key FILE"}
}

// examineDirectory checks the data directory; serving reports whether a manager uses it.
func examineDirectory(dir string) (all []Finding, serving bool) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := writable(filepath.Dir(dir)); err != nil {
			return []Finding{{"data", dir + " does not exist and cannot be created: " + err.Error(),
				"create it and give it to the user of the manager", true}}, false
		}
		return []Finding{{"data", dir + " is created at the first start", "", false}}, false
	case err != nil:
		return []Finding{{"data", err.Error(), "run the command as the owner of the directory", true}}, false
	case !info.IsDir():
		return []Finding{{"data", dir + " is not a directory", "give a directory", true}}, false
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		all = append(all, Finding{"data", fmt.Sprintf("%s is readable by other users (%v)", dir, info.Mode().Perm()), "chmod 700 " + dir, false})
	} else {
		all = append(all, Finding{"data", dir, "", false})
	}
	if err := writable(dir); err != nil {
		return append(all, Finding{"data", "the directory is not writable: " + err.Error(),
			"give it to the user of the manager", true}), false
	}
	if free, err := freeBytes(dir); err == nil && free != nil {
		f := Finding{What: "disk", Is: fmt.Sprintf("%.1f GiB are free", float64(*free)/(1<<30))}
		if *free < littleRoom {
			f.Do = "free disk space; changes are refused when the disk is full"
		}
		all = append(all, f)
	}
	return all, dirlock.IsHeld(dir)
}

// writable tries to create a file in a directory.
func writable(dir string) error {
	probe, err := os.CreateTemp(dir, ".probe-")
	if err == nil {
		err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	}
	return err
}

// examineDatabase opens the database for reading and checks its clock.
func examineDatabase(ctx context.Context, o Options, serving bool) []Finding {
	if o.Database == "" {
		if _, err := os.Stat(filepath.Join(o.Data, "portolan.db")); err != nil {
			return []Finding{{"database", "none yet; the first start creates it", "", false}}
		}
	}
	s, err := store.Open(store.Options{Layout: model.Layout(), Dir: o.Data, Database: o.Database, DatabaseRead: o.DatabaseRead, Readers: 1,
		ListReaders: 1, ReadOnly: true})
	var other *store.SchemaError
	switch {
	case errors.As(err, &other) && other.Database < other.Binary:
		return []Finding{{"database", fmt.Sprintf("is of an older version (schema %d); the start upgrades it",
			other.Database), "", false}}
	case other != nil:
		return []Finding{{"database", err.Error(), "install the newer version, or restore a backup of this version", true}}
	case err != nil:
		return []Finding{{"database", err.Error(), "check that the server accepts connections (psql), or that the file is readable", true}}
	}
	defer func() { _ = s.Close() }()
	f, err := s.Figures(ctx)
	if err != nil {
		return []Finding{{"database", err.Error(), "check that the server answers (psql), or the permissions of the file", true}}
	}
	is := fmt.Sprintf("%s %s, %d MiB, %d transactions", f.Kind, f.Version, f.Bytes>>20, f.Transactions)
	if serving {
		is += "; a manager is serving it"
	}
	all := append([]Finding{{"database", is, "", false}}, examineSettings(ctx, s, o.Database != "")...)
	all = append(all, examineClock())
	if o.Database == "" {
		return all
	}
	ahead, err := s.ClockOffset(ctx)
	clock := Finding{What: "database clock", Is: fmt.Sprintf("the database's differs by %v", ahead.Abs().Round(time.Millisecond))}
	if err != nil || ahead.Abs() > time.Second {
		clock.Do = "synchronize both machines with the same time servers (chronyc sources)"
	}
	return append(all, clock)
}

// examinePort checks whether a port is free, or used by a manager.
func examinePort(ctx context.Context, flag, address string) Finding {
	l, err := net.Listen("tcp", address)
	if err == nil {
		_ = l.Close()
		return Finding{flag, address + " is free", "", false}
	}
	if managerAt(ctx, address) {
		return Finding{flag, address + " is in use, by a manager", "", false}
	}
	return Finding{flag, err.Error(), "find the process that uses the port (ss -ltnp), or give --" + flag + " another address", true}
}

// managerAt reports whether a manager answers at an address of this machine.
func managerAt(ctx context.Context, address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, end := context.WithTimeout(ctx, 2*time.Second)
	defer end()
	//nolint:gosec // the request only checks for an answer and sends no secret
	unverified := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: unverified}}
	defer c.CloseIdleConnections()
	for _, scheme := range []string{"http", "https"} {
		rq, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+net.JoinHostPort(host, port)+checkin.HealthPath, http.NoBody)
		if err != nil {
			return false
		}
		rs, err := c.Do(rq)
		if err != nil { // it may use the other protocol
			continue
		}
		body, err := io.ReadAll(io.LimitReader(rs.Body, 1<<10))
		_ = rs.Body.Close()
		if err == nil && strings.Contains(string(body), `"alive"`) {
			return true
		}
	}
	return false
}

// examineCertificate checks a certificate and its key.
func examineCertificate(cert, key string) Finding {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return Finding{"certificate", err.Error(), "the files must contain a certificate with its chain, and its key, in PEM", true}
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return Finding{"certificate", err.Error(), "create a new certificate", true}
	}
	f := Finding{What: "certificate", Is: fmt.Sprintf("%s for %s, until %s", cert, strings.Join(append(leaf.DNSNames,
		ipTexts(leaf.IPAddresses)...), ", "),
		leaf.NotAfter.Format(time.DateOnly))}
	if left := time.Until(leaf.NotAfter); left < certificateSoon {
		f.Do, f.Fault = "renew it; the manager reloads the files automatically", left < 0
	}
	return f
}

func ipTexts(all []net.IP) (texts []string) {
	for _, ip := range all {
		texts = append(texts, ip.String())
	}
	return texts
}

// examineFile checks whether a file can be appended to.
func examineFile(path string) Finding {
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return Finding{"file", err.Error(), "create the directory " + filepath.Dir(path), true}
	}
	if f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0); err == nil { //nolint:gosec // a path of the operator
		_ = f.Close()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return Finding{"file", err.Error(), "give the file to the user of the manager", true}
	}
	return Finding{"file", path, "", false}
}
