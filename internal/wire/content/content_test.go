package content

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

const someRevision = "7-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// stream returns an envelope and a body in wire form.
func stream(t *testing.T, e Envelope, body string) []byte {
	t.Helper()
	head, err := e.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return append(head, body...)
}

// TestSealedContent checks that a changed, truncated or longer stream is rejected. A stream without a hash is accepted.
func TestSealedContent(t *testing.T) {
	plain := stream(t, Envelope{Kind: "zones", From: "", To: someRevision}, "the body")
	e, rest, err := Seal(bytes.NewReader(plain))
	if err != nil || e.Size != 8 || e.Kind != "zones" {
		t.Fatal(e, err)
	}
	body, err := io.ReadAll(rest)
	if err != nil || string(body) != "the body" {
		t.Fatalf("%q %v", body, err)
	}
	sealed := stream(t, e, string(body))
	if got, err := Verify(bytes.NewReader(sealed)); err != nil || got != e {
		t.Error(got, err)
	}
	if _, err := Verify(bytes.NewReader(plain)); err != nil {
		t.Error("without a hash:", err)
	}
	for name, wrong := range map[string][]byte{"shorter": sealed[:len(sealed)-1], "longer": append(bytes.Clone(sealed), 'x'),
		"changed": append(bytes.Clone(sealed[:len(sealed)-1]), 'Y')} {
		if _, err := Verify(bytes.NewReader(wrong)); err == nil || !strings.Contains(err.Error(), "envelope says") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Verify(bytes.NewReader(stream(t, Envelope{To: "7-12"}, ""))); err == nil {
		t.Error("a revision without a hash is taken")
	}
	for n := range 10 {
		if _, err := Read(bufio.NewReader(bytes.NewReader(sealed[:n]))); !errors.Is(err, ErrCut) {
			t.Errorf("%d octets: %v", n, err)
		}
	}
}

// FuzzReadEnvelope checks that arbitrary input does not panic, and that a parsed envelope can be written and parsed again.
func FuzzReadEnvelope(f *testing.F) {
	head, err := Envelope{Kind: "zones", To: someRevision, Size: 3}.Bytes()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(head)
	f.Add([]byte{'H', 2, '{', '}'})
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := Read(bufio.NewReader(bytes.NewReader(text)))
		if err != nil {
			return
		}
		again, err := e.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Read(bufio.NewReader(bytes.NewReader(again))); err != nil || got != e {
			t.Errorf("%v becomes %v %v", e, got, err)
		}
	})
}
