package filetree

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"portolan/internal/wire/content"
)

// taken records the parts of a stream.
type taken struct {
	envelope content.Envelope
	manifest Manifest
	blobs    map[string][]byte
	now      string
	ended    bool
}

func (k *taken) Start(h content.Envelope, m Manifest) error {
	k.envelope, k.manifest, k.blobs = h, m, map[string][]byte{}
	return nil
}

func (k *taken) Blob(hash string) error {
	k.now, k.blobs[hash] = hash, []byte{}
	return nil
}

func (k *taken) Data(data []byte) error {
	k.blobs[k.now] = append(k.blobs[k.now], data...)
	return nil
}

func (k *taken) End() error {
	k.ended = true
	return nil
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// sample returns a stream with two files.
func sample(t testing.TB) []byte {
	t.Helper()
	m := Manifest{Files: []File{{Path: "a/b.cfg", Size: 3, Hash: hashOf("two")}, {Path: "pxe.0", Size: 4, Hash: hashOf("boot")}}}
	text, hash, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := NewWriter(&out, content.Envelope{To: content.Revision{Number: 5, Hash: hash}.String()}, text)
	w.Blob(hashOf("two"))
	w.Data([]byte("two"))
	w.Blob(hashOf("boot"))
	w.Data([]byte("bo"))
	w.Data([]byte("ot"))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestRead checks that a stream returns as it was written, that several streams follow each other, and that each truncation is an error.
func TestRead(t *testing.T) {
	stream := sample(t)
	in := bufio.NewReader(bytes.NewReader(slices.Concat(stream, stream)))
	for range 2 {
		var k taken
		if err := Read(in, &k); err != nil {
			t.Fatal(err)
		}
		if !k.ended || string(k.blobs[hashOf("boot")]) != "boot" || string(k.blobs[hashOf("two")]) != "two" || len(k.manifest.Files) != 2 {
			t.Errorf("%+v", k)
		}
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Error("the reader is not at the end:", err)
	}
	for n := range stream {
		var k taken
		if err := Read(bufio.NewReader(bytes.NewReader(stream[:n])), &k); !errors.Is(err, content.ErrCut) || k.ended {
			t.Errorf("%d of %d octets: %v", n, len(stream), err)
		}
	}
	var k taken
	var nothing bytes.Buffer
	if err := errors.Join(WriteEmpty(&nothing), Read(bufio.NewReader(&nothing), &k)); err != nil || !k.ended ||
		k.envelope.To != EmptyRevision() {
		t.Error(k, err)
	}
}

// TestBadManifests checks that each invalid manifest is rejected with its reason.
func TestBadManifests(t *testing.T) {
	good := hashOf("x")
	many := make([]File, MaxFiles+1)
	for _, c := range []struct {
		m    Manifest
		want string
	}{
		{Manifest{Files: []File{{Path: "a", Hash: good}, {Path: "b", Hash: good}}}, ""},
		{Manifest{Files: []File{{Path: "b", Hash: good}, {Path: "a", Hash: good}}}, "not in order"},
		{Manifest{Files: []File{{Path: "a", Hash: good}, {Path: "a", Hash: good}}}, "not in order"},
		{Manifest{Files: []File{{Path: "../a", Hash: good}}}, "not a valid path"},
		{Manifest{Files: []File{{Path: "/a", Hash: good}}}, "not a valid path"},
		{Manifest{Files: []File{{Path: "a//b", Hash: good}}}, "not a valid path"},
		{Manifest{Files: []File{{Path: "a\\b", Hash: good}}}, "not a valid path"},
		{Manifest{Files: []File{{Path: strings.Repeat("p", MaxPath+1), Hash: good}}}, "more than 400"},
		{Manifest{Files: []File{{Path: "a", Hash: "77"}}}, "hash"},
		{Manifest{Files: []File{{Path: "a", Hash: strings.ToUpper(good)}}}, "hash"},
		{Manifest{Files: []File{{Path: "a", Hash: good, Size: -1}}}, "octets"},
		{Manifest{Files: []File{{Path: "a", Hash: good, Size: MaxFile + 1}}}, "octets"},
		{Manifest{Files: many}, "more than 10000"},
	} {
		if err := c.m.Check(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80v: %v, want %q", c.m, err, c.want)
		}
	}
	var total Manifest
	for i := range 11 {
		total.Files = append(total.Files, File{Path: string(rune('a' + i)), Hash: good, Size: MaxFile})
	}
	if err := total.Check(); err == nil || !strings.Contains(err.Error(), "together") {
		t.Error(err)
	}
}

// FuzzRead checks that no stream makes the reader panic, and that only complete streams end.
func FuzzRead(f *testing.F) {
	stream := sample(f)
	f.Add(stream)
	f.Add(stream[:len(stream)-1])
	f.Add(append([]byte("H\x02{}"), 'M', 0xff, 0xff, 0xff, 0xff, 0x7f))
	f.Fuzz(func(t *testing.T, data []byte) {
		var k taken
		if err := Read(bufio.NewReader(bytes.NewReader(data)), &k); (err == nil) != k.ended {
			t.Errorf("ended is %v: %v", k.ended, err)
		}
	})
}
