package spool

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"portolan/internal/wire/stream"

	"pgregory.net/rapid"
)

// open opens a spool for a test.
func open(t testing.TB, dir string, o Options) *Spool {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func record(n int) json.RawMessage { return fmt.Appendf(nil, `{"n":%d}`, n) }

// next returns the next batch and the numbers in its records.
func next(t testing.TB, s *Spool) (b stream.Batch, numbers []int) {
	t.Helper()
	b, ok, err := s.Next()
	if err != nil || ok != (len(b.Records) > 0) {
		t.Fatal(b, ok, err)
	}
	for _, r := range b.Records {
		var is struct{ N int }
		if err := json.Unmarshal(r, &is); err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, is.N)
	}
	return b, numbers
}

// TestQueue checks that each appended record is returned once, in order, numbered from 1, across any number of restarts and torn writes
// at the end of the last file.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			r.Fatal(err)
		}
		s := open(t, dir, Options{MaxBytes: 4000})
		appended, acknowledged := 0, 0
		r.Repeat(map[string]func(*rapid.T){
			"append": func(r *rapid.T) {
				n := rapid.IntRange(1, 5).Draw(r, "n")
				var all []json.RawMessage
				for i := range n {
					all = append(all, record(appended+i+1))
				}
				switch err := s.Append(all...); {
				case err == nil:
					appended += n
				case !errors.Is(err, ErrFull):
					r.Fatal(err)
				}
			},
			"send": func(r *rapid.T) {
				b, numbers := next(t, s)
				for i, n := range numbers {
					if n != acknowledged+i+1 || int(b.First)+i != n {
						r.Fatalf("behind %d comes %v from %d on", acknowledged, numbers, b.First)
					}
				}
				if len(numbers) < min(1, appended-acknowledged) {
					r.Fatalf("nothing comes of %d", appended-acknowledged)
				}
				n := rapid.IntRange(0, len(numbers)).Draw(r, "taken")
				if acknowledged += n; n > 0 {
					if err := s.Acknowledge(int64(acknowledged + 1)); err != nil {
						r.Fatal(err)
					}
				}
			},
			"restart": func(r *rapid.T) {
				if err := s.Close(); err != nil {
					r.Fatal(err)
				}
				if rapid.Bool().Draw(r, "torn") { // a crash in the middle of Append
					files, err := filepath.Glob(filepath.Join(dir, "0*"))
					if err != nil {
						r.Fatal(err)
					}
					f, err := os.OpenFile(files[len(files)-1], os.O_WRONLY|os.O_APPEND, 0)
					if err != nil {
						r.Fatal(err)
					}
					_, err = f.Write(rapid.SampledFrom([][]byte{make([]byte, 40), {0, 0, 0, 9, 1},
						[]byte("\x00\x00\x00\x02\x01\x02\x03\x04{}")}).Draw(r, "tail"))
					if err := errors.Join(err, f.Close()); err != nil {
						r.Fatal(err)
					}
				}
				s = open(t, dir, Options{MaxBytes: 4000})
			},
			"": func(r *rapid.T) {
				if n := s.Waiting(); n != int64(appended-acknowledged) {
					r.Fatalf("%d wait of %d", n, appended-acknowledged)
				}
			},
		})
	})
}

// TestFullSpool checks that a full lossy spool drops and counts the oldest records and leaves a gap in the numbers, and that another
// one rejects new records.
func TestFullSpool(t *testing.T) {
	lossy := open(t, t.TempDir(), Options{MaxBytes: 1000, Lossy: true})
	for n := range 200 {
		if err := lossy.Append(record(n + 1)); err != nil {
			t.Fatal(err)
		}
	}
	b, numbers := next(t, lossy)
	if lossy.Dropped() == 0 || b.First != lossy.Dropped()+1 || numbers[0] != int(b.First) || numbers[len(numbers)-1] != 200 {
		t.Errorf("%d are lost, and %v come from %d on", lossy.Dropped(), numbers, b.First)
	}
	strict := open(t, t.TempDir(), Options{MaxBytes: 1000})
	n := 0
	for ; n < 200; n++ {
		if err := strict.Append(record(n + 1)); err != nil {
			if !errors.Is(err, ErrFull) {
				t.Fatal(err)
			}
			break
		}
	}
	if n < 20 || n == 200 || strict.Waiting() != int64(n) {
		t.Errorf("%d of %d are waiting", strict.Waiting(), n)
	}
	if err := strict.Acknowledge(int64(n)); err != nil {
		t.Fatal(err)
	}
	if err := strict.Append(record(n + 1)); err != nil {
		t.Error("with room again:", err)
	}
	if err := strict.Append(make(json.RawMessage, stream.MaxRecord+1)); err == nil {
		t.Error("a record that is too long is taken")
	}
}

// TestDamage checks that the spool continues after a damaged segment with a gap in the numbers, which the manager counts.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{MaxBytes: 1600})
	for n := range 30 {
		if err := s.Append(record(n + 1)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "0*"))
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(files[0], text, 0o600); err != nil {
		t.Fatal(err)
	}
	var all []int
	for {
		b, numbers := next(t, s)
		if len(numbers) == 0 {
			break
		}
		all = append(all, numbers...)
		if err := s.Acknowledge(b.First + int64(len(numbers))); err != nil {
			t.Fatal(err)
		}
	}
	if len(all) < 20 || len(all) == 30 || all[0] != 1 || all[len(all)-1] != 30 {
		t.Errorf("what comes is %v", all)
	}
}

// TestFilesOfZeros checks that files of zeros, which a power failure can leave, do not block the spool.
func TestFilesOfZeros(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	if err := errors.Join(s.Append(record(1), record(2)), s.Acknowledge(2), s.Close()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{acknowledgedFile, nameFile} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, 8), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, dir, Options{})
	if b, numbers := next(t, s); len(numbers) != 2 || !stream.IsName(b.Spool) { // the manager skips the records that it has
		t.Errorf("%v of %q", numbers, b.Spool)
	}
}

// TestSkippedNumbers checks that the numbers of records that were lost before the spool are passed over, also after the spool is opened
// again.
func TestSkippedNumbers(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Append([]byte("1")), s.Skip(3), s.Skip(0), s.Append([]byte("5"), []byte("6"))); err != nil {
		t.Fatal(err)
	}
	if n := s.Dropped(); n != 3 {
		t.Errorf("%d records are lost, want 3", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct{ first, records int64 }{{1, 1}, {5, 2}} {
		b, ok, err := s.Next()
		if err != nil || !ok || b.First != want.first || int64(len(b.Records)) != want.records {
			t.Fatalf("the batch is %d with %d records, %v, %v; want %d with %d", b.First, len(b.Records), ok, err, want.first, want.records)
		}
		if err := s.Acknowledge(b.First + int64(len(b.Records))); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
