package kms

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

// crossed simulates the wrapping of the services in these tests: the wrapped key is not readable, and other data does not unwrap.
func crossed(data []byte) []byte {
	out := bytes.Clone(data)
	for i := range out {
		out[i] ^= 0x5a
	}
	return out
}

// vault simulates the transit engine of Vault (API documentation, transit: encrypt data, decrypt data).
func vault(t *testing.T) (token *atomic.Value) {
	token = &atomic.Value{}
	token.Store("hush")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Plaintext, Ciphertext string }
		if r.Header.Get("X-Vault-Token") != token.Load() {
			http.Error(w, `{"errors":["permission denied"]}`, http.StatusForbidden)
			return
		}
		if json.NewDecoder(r.Body).Decode(&asked) != nil {
			http.Error(w, `{"errors":["bad"]}`, http.StatusBadRequest)
			return
		}
		data := map[string]string{}
		switch r.URL.Path {
		case "/v1/transit/encrypt/harbour":
			plain, _ := base64.StdEncoding.DecodeString(asked.Plaintext) //nolint:errcheck // then it wraps nothing
			data["ciphertext"] = "vault:v1:" + base64.StdEncoding.EncodeToString(crossed(plain))
		case "/v1/transit/decrypt/harbour":
			text, ok := strings.CutPrefix(asked.Ciphertext, "vault:v1:")
			wrapped, err := base64.StdEncoding.DecodeString(text)
			if !ok || err != nil {
				http.Error(w, `{"errors":["invalid ciphertext"]}`, http.StatusBadRequest)
				return
			}
			data["plaintext"] = base64.StdEncoding.EncodeToString(crossed(wrapped))
		default:
			http.Error(w, `{"errors":["no such key"]}`, http.StatusNotFound)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data}) //nolint:errchkjson // texts
	}))
	t.Cleanup(s.Close)
	t.Setenv("VAULT_ADDR", s.URL)
	t.Setenv("VAULT_TOKEN", "hush")
	return token
}

// aws simulates AWS KMS (API reference: Encrypt, Decrypt).
func aws(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		var asked struct {
			KeyId                     string //nolint:revive // as it is called there
			Plaintext, CiphertextBlob []byte
		}
		if json.NewDecoder(r.Body).Decode(&asked) != nil || !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ") ||
			asked.Plaintext != nil && asked.KeyId != "alias/harbour" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"__type":"NotFoundException","message":"no such key"}`))
			return
		}
		answer := map[string]any{"KeyId": asked.KeyId}
		switch r.Header.Get("X-Amz-Target") {
		case "TrentService.Encrypt":
			answer["CiphertextBlob"] = crossed(asked.Plaintext)
		case "TrentService.Decrypt":
			answer["Plaintext"] = crossed(asked.CiphertextBlob)
		}
		_ = json.NewEncoder(w).Encode(answer) //nolint:errchkjson // texts and bytes
	}))
	t.Cleanup(s.Close)
	for name, value := range map[string]string{"AWS_ENDPOINT_URL_KMS": s.URL, "AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "hush",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/nowhere", "AWS_SHARED_CREDENTIALS_FILE": "/nowhere"} {
		t.Setenv(name, value)
	}
}

// TestServices checks that a key service unwraps a key that it has wrapped, and that another service does not.
func TestServices(t *testing.T) {
	token := vault(t)
	aws(t)
	key := []byte("a master key of 32 bytes, or so.")
	for _, at := range []string{"hashivault://harbour", "awskms://alias/harbour?region=eu-north-1"} {
		wrapped, err := Wrap(t.Context(), at, key)
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		if bytes.Contains(wrapped, key) {
			t.Errorf("%s leaves the key as it is", at)
		}
		if got, err := Unwrap(t.Context(), at, wrapped); err != nil || !bytes.Equal(got, key) {
			t.Errorf("%s gives %q (%v)", at, got, err)
		}
	}
	for _, at := range []string{"hashivault://other", "", "harbour", "https://kms.example", "base64key://x"} {
		if _, err := Unwrap(t.Context(), at, []byte("vault:v1:AAAA")); err == nil || at != "" && !strings.Contains(err.Error(), at) {
			t.Errorf("%q: %v", at, err)
		}
	}
	for at, want := range map[string]string{"hashivault://": "has no key", "awskms://": "has no key",
		"hashivault://a?x=1":      "parameter x",
		"awskms://a?region=x&y=1": "parameter y", "awskms://a": "set the region"} {
		if _, err := Wrap(t.Context(), at, key); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", at, err, want)
		}
	}
	if k, err := open("awskms:///arn:aws:kms:eu-west-1:111122223333:key/1234?context_use=portolan"); err != nil {
		t.Error(err)
	} else if k := k.(*awsKey); k.region != "eu-west-1" || k.key != "arn:aws:kms:eu-west-1:111122223333:key/1234" ||
		k.context["use"] != "portolan" {
		t.Errorf("the key of an ARN: %+v", k)
	}
	for name, want := range map[string]string{"VAULT_ADDR": "set VAULT_ADDR", "VAULT_TOKEN": "set VAULT_TOKEN",
		"VAULT_CACERT":      "has no certificate",
		"VAULT_CLIENT_CERT": "VAULT_CLIENT_CERT", "VAULT_SKIP_VERIFY": "neither true nor false"} {
		t.Run(name, func(t *testing.T) {
			value := os.DevNull
			if strings.HasPrefix(want, "set ") {
				value = ""
			}
			t.Setenv(name, value)
			if _, err := Wrap(t.Context(), "hashivault://harbour", key); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s=%s: %v", name, value, err)
			}
		})
	}
	token.Store("another")
	if _, err := Wrap(t.Context(), "hashivault://harbour", key); err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("a wrong token: %v", err)
	}
}
