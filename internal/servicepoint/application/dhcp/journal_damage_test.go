package dhcp

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
)

// TestDamagedRecord checks, for each octet of a record in the middle, that the records around it are read at the start and by the reports,
// that the damage is reported, and that numbers are not used again.
func TestDamagedRecord(t *testing.T) {
	t.Parallel()
	whole := t.TempDir()
	j, _, _ := open(t, whole, journalOptions{})
	write(t, j, numbered(1, 9))
	text, err := os.ReadFile(j.path(1))
	if err != nil {
		t.Fatal(err)
	}
	one := len(text) / 9
	want := slices.Concat(numbered(1, 4), numbered(6, 9))
	for at := 4 * one; at < 5*one; at++ {
		dir := t.TempDir()
		o := journalOptions{}
		j, _, _ := open(t, dir, o)
		damaged := slices.Clone(text)
		damaged[at] ^= 0x10
		if err := os.WriteFile(j.path(1), damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		j, all, err := open(t, dir, o)
		if !errors.Is(err, errDamaged) || !slices.Equal(all, want) {
			t.Fatalf("octet %d: %v %v", at, all, err)
		}
		write(t, j, []string{"entry 10"})
		var got []string
		for c := j.cursor(); ; {
			number, entry, ok, err := c.read()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			if string(entry) != fmt.Sprint("entry ", number) {
				t.Errorf("octet %d: the record %d is %q", at, number, entry)
			}
			got = append(got, string(entry))
		}
		if !slices.Equal(got, append(slices.Clone(want), "entry 10")) {
			t.Fatalf("octet %d: the reports read %v", at, got)
		}
		if err := j.writeCheckpoint(9, func(add func([]byte) error) error { return add([]byte("all")) }); err != nil {
			t.Fatal(err)
		}
		if _, all, err = open(t, dir, o); err != nil || !slices.Equal(all, []string{"all", "entry 10"}) {
			t.Fatalf("octet %d: after the checkpoint %v %v", at, all, err)
		}
	}
}

// TestShrink checks that a journal beyond its limit drops renewals that the manager does not get, then digests, and never an event, and
// that the rest is read in order.
func TestShrink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := journalOptions{segmentSize: 2000}
	j, _, _ := open(t, dir, o)
	const count = 300
	for n := 1; n <= count; n++ {
		kind := []byte{entryRenewal, entryRenewal, entryDigest, entryEvent}[n%4]
		if err := j.append([][]byte{fmt.Appendf([]byte{kind}, "entry %d ...............", n)}); err != nil {
			t.Fatal(err)
		}
	}
	if dropped, err := j.shrink(0); err != nil || dropped != 0 {
		t.Fatalf("%d records are dropped that no checkpoint contains: %v", dropped, err)
	}
	if err := j.writeCheckpoint(count, func(func([]byte) error) error { return nil }); err != nil {
		t.Fatal(err)
	}
	total, err := j.usage()
	if err != nil {
		t.Fatal(err)
	}
	kinds := func() map[byte]int {
		found, before := map[byte]int{}, uint64(0)
		for c := j.cursor(); ; {
			number, entry, ok, err := c.read()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				return found
			}
			if number <= before || string(entry[1:]) != fmt.Sprintf("entry %d ...............", number) {
				t.Fatalf("the record %d after %d is %q", number, before, entry)
			}
			before = number
			found[entry[0]]++
		}
	}
	if _, err := j.shrink(total * 2 / 3); err != nil {
		t.Fatal(err)
	}
	if got := kinds(); got[entryEvent] != count/4 || got[entryDigest] != count/4 || got[entryRenewal] > count/3 {
		t.Errorf("after the first step: %v", got)
	}
	if _, err := j.shrink(1); err != nil {
		t.Fatal(err)
	}
	if got := kinds(); got[entryEvent] != count/4 || got[entryDigest] > count/10 {
		t.Errorf("after the second step: %v", got)
	}
	if now, err := j.usage(); err != nil || now >= total/2 {
		t.Errorf("%d of %d bytes are left: %v", now, total, err)
	}
	if _, all, err := open(t, dir, o); err != nil || len(all) != 0 {
		t.Errorf("after a restart: %v %v", all, err)
	}
}
