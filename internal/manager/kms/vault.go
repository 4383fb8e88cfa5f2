package kms

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// vaultKey is a key of the transit engine of Vault or OpenBao (its HTTP API, secrets engine transit: encrypt data, decrypt data).
type vaultKey struct {
	client *http.Client
	// base is the URL of the engine.
	base, key, token, namespace string
}

// newVault reads the settings from the environment variables of the vault command: VAULT_ADDR, VAULT_TOKEN, VAULT_NAMESPACE, VAULT_CACERT,
// VAULT_CLIENT_CERT, VAULT_CLIENT_KEY, VAULT_TLS_SERVER_NAME and VAULT_SKIP_VERIFY. The parameter engine is the path of the engine, by
// default transit.
func newVault(key string, parameters url.Values) (*vaultKey, error) {
	for name := range parameters {
		if name != "engine" {
			return nil, fmt.Errorf("parameter %s is not known: use engine", name)
		}
	}
	at, err := url.Parse(cmp.Or(os.Getenv("VAULT_ADDR"), os.Getenv("VAULT_SERVER_URL")))
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, errors.New("set VAULT_ADDR to the URL of Vault")
	}
	token := cmp.Or(os.Getenv("VAULT_TOKEN"), os.Getenv("VAULT_SERVER_TOKEN"))
	if token == "" {
		return nil, errors.New("set VAULT_TOKEN to a token that may use the key")
	}
	trust, err := vaultTLS()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = trust
	return &vaultKey{client: &http.Client{Transport: transport}, key: key, token: token, namespace: os.Getenv("VAULT_NAMESPACE"),
		base: at.JoinPath("v1", strings.Trim(cmp.Or(parameters.Get("engine"), "transit"), "/")).String()}, nil
}

// vaultTLS returns the TLS settings from the environment.
func vaultTLS() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: os.Getenv("VAULT_TLS_SERVER_NAME")}
	if text := os.Getenv("VAULT_SKIP_VERIFY"); text != "" {
		skip, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("VAULT_SKIP_VERIFY: %q is neither true nor false", text)
		}
		c.InsecureSkipVerify = skip //nolint:gosec // the operator asks for it, by the name that Vault has for it
	}
	if file := os.Getenv("VAULT_CACERT"); file != "" {
		text, err := os.ReadFile(file) //nolint:gosec // named by the operator
		if err != nil {
			return nil, fmt.Errorf("VAULT_CACERT: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("VAULT_CACERT: %s has no certificate", file)
		}
	}
	if file := os.Getenv("VAULT_CLIENT_CERT"); file != "" {
		own, err := tls.LoadX509KeyPair(file, os.Getenv("VAULT_CLIENT_KEY"))
		if err != nil {
			return nil, fmt.Errorf("VAULT_CLIENT_CERT: %w", err)
		}
		c.Certificates = []tls.Certificate{own}
	}
	return c, nil
}

func (k *vaultKey) wrap(ctx context.Context, key []byte) ([]byte, error) {
	var answer struct{ Data struct{ Ciphertext string } }
	if err := k.ask(ctx, "encrypt", map[string]any{"plaintext": key}, &answer); err != nil { // bytes are base64 in JSON
		return nil, err
	}
	if answer.Data.Ciphertext == "" {
		return nil, errors.New("the answer has no ciphertext")
	}
	return []byte(answer.Data.Ciphertext), nil
}

func (k *vaultKey) unwrap(ctx context.Context, wrapped []byte) ([]byte, error) {
	var answer struct{ Data struct{ Plaintext []byte } }
	if err := k.ask(ctx, "decrypt", map[string]any{"ciphertext": string(wrapped)}, &answer); err != nil {
		return nil, err
	}
	return answer.Data.Plaintext, nil
}

// ask sends a request about the key.
func (k *vaultKey) ask(ctx context.Context, action string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	rq, err := http.NewRequestWithContext(ctx, http.MethodPut, k.base+"/"+action+"/"+url.PathEscape(k.key), bytes.NewReader(text))
	if err != nil {
		return err
	}
	rq.Header.Set("Content-Type", "application/json")
	rq.Header.Set("X-Vault-Token", k.token)
	rq.Header.Set("X-Vault-Request", "true")
	if k.namespace != "" {
		rq.Header.Set("X-Vault-Namespace", k.namespace)
	}
	return post(k.client, rq, into)
}
