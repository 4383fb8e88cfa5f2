package checkin

import (
	"errors"
	"strings"
	"testing"
)

func TestKeyRoundTrip(t *testing.T) {
	k := RegistrationKey{Secret: [32]byte{1, 2, 3}, Authority: [32]byte{9, 8, 7}}
	got, err := ParseKey(" " + k.String() + "\n")
	if err != nil || got != k {
		t.Fatalf("ParseKey(String) = %v, %v", got, err)
	}
}

// TestKeyWrongByOne checks that a key with a wrong character at any position is damaged, not unknown.
func TestKeyWrongByOne(t *testing.T) {
	key := RegistrationKey{Secret: [32]byte{1, 2, 3}}.String()
	for i := range key {
		other := byte('A')
		if key[i] == 'A' {
			other = 'B'
		}
		wrong := key[:i] + string(other) + key[i+1:]
		if _, err := ParseKey(wrong); !errors.Is(err, ErrKeyDamaged) {
			t.Errorf("character %d changed: %v", i, err)
		}
	}
	for _, bad := range []string{"", "ptlk_", key[:len(key)-1], key + "A", strings.ToUpper(key)} {
		if _, err := ParseKey(bad); !errors.Is(err, ErrKeyDamaged) {
			t.Errorf("ParseKey(%q) = %v", bad, err)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	f.Add(RegistrationKey{}.String())
	f.Fuzz(func(t *testing.T, text string) {
		k, err := ParseKey(text)
		if err == nil && k.String() != strings.TrimSpace(text) {
			t.Errorf("%q reads as %s", text, k)
		}
	})
}
