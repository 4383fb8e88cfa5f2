package dhcp

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"portolan/internal/wire/dhcpdata"
)

// open opens a journal and returns its entries in order.
func open(t testing.TB, dir string, o journalOptions) (*journal, []string, error) {
	t.Helper()
	var all []string
	j, err := openJournal(dir, o, func(entry []byte) error {
		all = append(all, string(entry))
		return nil
	})
	if j == nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.close() })
	return j, all, err
}

// numbered returns entries with the numbers from first to last.
func numbered(first, last int) (all []string) {
	for n := first; n <= last; n++ {
		all = append(all, fmt.Sprintf("entry %d", n))
	}
	return all
}

func write(t testing.TB, j *journal, all []string) {
	t.Helper()
	for _, one := range all {
		if err := j.append([][]byte{[]byte(one)}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestJournal checks that entries survive a restart, over several segments and a checkpoint.
func TestJournal(t *testing.T) {
	dir := t.TempDir()
	o := journalOptions{segmentSize: 300}
	j, all, err := open(t, dir, o)
	if err != nil || len(all) > 0 {
		t.Fatal(all, err)
	}
	write(t, j, numbered(1, 50))
	if j, all, err = open(t, dir, o); err != nil || !slices.Equal(all, numbered(1, 50)) {
		t.Fatal(all, err)
	}
	segments := len(j.segments)
	if err := j.acknowledge(40); err != nil {
		t.Fatal(err)
	}
	if err := j.writeCheckpoint(30, func(add func([]byte) error) error { return add([]byte("all")) }); err != nil {
		t.Fatal(err)
	}
	if len(j.segments) >= segments || j.segments[0] > 31 {
		t.Errorf("segments %v after the checkpoint", j.segments)
	}
	write(t, j, numbered(51, 60))
	if j, all, err = open(t, dir, o); err != nil || !slices.Equal(all, append([]string{"all"}, numbered(31, 60)...)) {
		t.Fatal(all, err)
	}
	c := j.cursor()
	for n := 41; n <= 60; n++ {
		number, entry, ok, err := c.read()
		if err != nil || !ok || number != uint64(n) || string(entry) != fmt.Sprintf("entry %d", n) {
			t.Fatal(n, number, string(entry), ok, err)
		}
	}
	if _, _, ok, err := c.read(); ok || err != nil {
		t.Error(ok, err)
	}
	write(t, j, numbered(61, 61))
	if number, _, ok, err := c.read(); number != 61 || !ok || err != nil {
		t.Error(number, ok, err)
	}
}

// TestTornTail checks that each truncation of the last record is cut, and that appending continues after it.
func TestTornTail(t *testing.T) {
	whole := t.TempDir()
	j, _, _ := open(t, whole, journalOptions{})
	write(t, j, numbered(1, 3))
	text, err := os.ReadFile(j.path(1))
	if err != nil {
		t.Fatal(err)
	}
	one := len(text) / 3
	for cut := 2 * one; cut < len(text); cut++ {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(j.path(1))), text[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		j, all, err := open(t, dir, journalOptions{})
		if err != nil || !slices.Equal(all, numbered(1, 2)) {
			t.Fatal(cut, all, err)
		}
		write(t, j, []string{"new"})
		if _, all, err = open(t, dir, journalOptions{}); err != nil || !slices.Equal(all, append(numbered(1, 2), "new")) {
			t.Fatal(cut, all, err)
		}
	}
}

// TestDamage checks that a damaged record before others is reported, and that the records before it are used.
func TestDamage(t *testing.T) {
	for name, segmentSize := range map[string]int64{"one segment": 1 << 20, "many segments": 60} {
		dir := t.TempDir()
		j, _, _ := open(t, dir, journalOptions{segmentSize: segmentSize})
		write(t, j, numbered(1, 10))
		path := j.path(j.segments[len(j.segments)/2])
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text[entryHeader+2] ^= 1
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		j, all, err := open(t, dir, journalOptions{segmentSize: segmentSize})
		if !errors.Is(err, errDamaged) || len(all) >= 10 {
			t.Errorf("%s: %v %v", name, all, err)
		}
		write(t, j, []string{"new"})
	}
}

// TestIncompleteCheckpoint checks that a checkpoint without its end is not used.
func TestIncompleteCheckpoint(t *testing.T) {
	dir := t.TempDir()
	j, _, _ := open(t, dir, journalOptions{})
	write(t, j, numbered(1, 5))
	if err := j.writeCheckpoint(3, func(add func([]byte) error) error { return errors.Join(add([]byte("a")), add([]byte("b"))) }); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(j.checkpointPath(3))
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(text) {
		if err := os.WriteFile(j.checkpointPath(3), text[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, all, err := open(t, dir, journalOptions{}); !errors.Is(err, errDamaged) || !slices.Equal(all, numbered(1, 5)) {
			t.Fatal(cut, all, err)
		}
	}
}

// forgetful is a disk that forgets unsynced octets at a crash, and that fails when it is full.
type forgetful struct {
	path         string
	file         *os.File
	synced, size int64
	left         *int64
}

func (f *forgetful) Write(p []byte) (int, error) {
	n := len(p)
	if f.left != nil && int64(n) > *f.left {
		n = int(*f.left)
	}
	written, err := f.file.Write(p[:n])
	f.size += int64(written)
	if f.left != nil {
		*f.left -= int64(written)
	}
	if err == nil && n < len(p) {
		err = syscall.ENOSPC
	}
	return written, err
}

func (f *forgetful) Sync() error { f.synced = f.size; return nil }

func (f *forgetful) Truncate(size int64) error {
	f.size, f.synced = size, min(f.synced, size)
	return f.file.Truncate(size)
}

func (f *forgetful) Close() error { return f.file.Close() }

// crash leaves a random part of the unsynced octets, with one of them changed.
func (f *forgetful) crash(r *rand.Rand) error {
	keep := f.synced
	if f.size > f.synced {
		keep += r.Int64N(f.size - f.synced + 1)
	}
	text, err := os.ReadFile(f.path)
	if err != nil {
		return err
	}
	text = text[:keep]
	if keep > f.synced && r.IntN(2) == 0 {
		text[f.synced+r.Int64N(keep-f.synced)] ^= 0x55
	}
	return os.WriteFile(f.path, text, 0o600)
}

// TestCrashesLoseNoAcknowledgedRecord checks over 1,000 crashes that no acknowledged record is lost.
func TestCrashesLoseNoAcknowledgedRecord(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	var files []*forgetful
	o := journalOptions{segmentSize: 2000, open: func(path string) (journalFile, error) {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return nil, err
		}
		info, err := f.Stat()
		one := &forgetful{path: path, file: f, size: info.Size(), synced: info.Size()}
		files = append(files, one)
		return one, err
	}}
	acknowledged, crashes := 0, 150
	if os.Getenv("PORTOLAN_TEST_LONG") != "" {
		crashes = 1000
	}
	for crash := range crashes {
		files = nil
		j, all, err := open(t, dir, o)
		if err != nil {
			t.Fatalf("crash %d: %v", crash, err)
		}
		if len(all) < acknowledged {
			t.Fatalf("crash %d: %d of %d records are left", crash, len(all), acknowledged)
		}
		for i, one := range all {
			if one != fmt.Sprintf("entry %d", i+1) {
				t.Fatalf("crash %d: record %d is %q", crash, i+1, one)
			}
		}
		acknowledged = len(all)
		for range r.IntN(4) {
			var batch [][]byte
			for i := range 1 + r.IntN(5) {
				batch = append(batch, fmt.Appendf(nil, "entry %d", acknowledged+1+i))
			}
			if err := j.append(batch); err != nil {
				t.Fatal(err)
			}
			acknowledged += len(batch)
		}
		last := files[len(files)-1]
		torn := appendEntry(nil, uint64(acknowledged+1), fmt.Appendf(nil, "entry %d", acknowledged+1)) // an append that was not synced
		if _, err := last.Write(torn[:1+r.IntN(len(torn))]); err != nil {
			t.Fatal(err)
		}
		if err := last.crash(r); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFullDisk checks that an append to a full disk fails, changes nothing, and succeeds when there is space again.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	left := int64(100)
	o := journalOptions{open: func(path string) (journalFile, error) {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		return &forgetful{path: path, file: f, left: &left}, err
	}}
	j, _, _ := open(t, dir, o)
	write(t, j, numbered(1, 2))
	c := j.cursor()
	if err := j.append([][]byte{bytes.Repeat([]byte("x"), 200)}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	for n := 1; n <= 2; n++ {
		if _, _, ok, err := c.read(); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	left = 1000
	write(t, j, numbered(3, 4))
	if _, entry, ok, err := c.read(); !ok || err != nil || string(entry) != "entry 3" {
		t.Errorf("%q %v %v", entry, ok, err)
	}
	if _, all, err := open(t, dir, journalOptions{}); err != nil || !slices.Equal(all, numbered(1, 4)) {
		t.Error(all, err)
	}
}

// sampleLease returns a lease with all members.
func sampleLease(a string) *lease {
	return &lease{network: 7, pool: 8, reservation: 9, address: netip.MustParseAddr(a), state: dhcpdata.Leased, start: 100, renewed: 150,
		expires: 200, ended: true, counted: []int64{21, 23}, holder: &holder{client: "cme", hardwareType: 1, hardware: "\x02\x00\x00\x00\x00\x01",
			clientID: "me", hostName: "pc", relayAddress: netip.MustParseAddr("10.0.0.1"), relay: "\x01\x01a",
			vendor: "Acme", parameters: "\x01\x03"}}
}

// TestLeaseRoundTrip checks that a lease of either family survives the journal, and that each truncation is rejected.
func TestLeaseRoundTrip(t *testing.T) {
	for _, a := range []string{"10.0.0.9", "2001:db8::9"} {
		text := sampleLease(a).append(nil)
		got, err := readLease(text)
		if err != nil || !bytes.Equal(got.append(nil), text) || *got.holder != *sampleLease(a).holder {
			t.Errorf("%+v %v", got, err)
		}
		for n := range text {
			if _, err := readLease(text[:n]); err == nil {
				t.Errorf("%d of %d octets are accepted", n, len(text))
			}
		}
	}
}

// FuzzReadLease checks that arbitrary octets do not panic, and that an accepted lease is the same after another round.
func FuzzReadLease(f *testing.F) {
	f.Add(sampleLease("10.0.0.9").append(nil))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := readLease(text)
		if err != nil {
			return
		}
		again, err := readLease(l.append(nil))
		if err != nil || *again.holder != *l.holder || again.expires != l.expires {
			t.Errorf("%+v becomes %+v %v", l, again, err)
		}
	})
}

// FuzzJournal checks that arbitrary segments do not panic, and that records can be appended after them.
func FuzzJournal(f *testing.F) {
	f.Add(appendEntry(appendEntry(nil, 1, []byte("a")), 2, []byte("b")))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%020d%s", 1, segmentSuffix)), text, 0o600); err != nil {
			t.Fatal(err)
		}
		j, before, _ := open(t, dir, journalOptions{})
		if err := j.append([][]byte{[]byte("new")}); err != nil {
			t.Fatal(err)
		}
		if _, after, _ := open(t, dir, journalOptions{}); len(after) != len(before)+1 || after[len(before)] != "new" {
			t.Errorf("%q becomes %q", before, after)
		}
	})
}
