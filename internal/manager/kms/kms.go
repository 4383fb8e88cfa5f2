// Package kms wraps and unwraps keys with key management services: a wrapped key is useless without the service. A URL names the service
// and the key: hashivault://KEY is the transit engine of Vault or OpenBao, awskms://KEY?region=REGION is AWS KMS.
package kms

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
)

// AskTime is the timeout of a request to a service.
const AskTime = 30 * time.Second

// Wrap returns a key as wrapped by the service at a URL. The error names the URL.
func Wrap(ctx context.Context, at string, key []byte) (wrapped []byte, err error) {
	return ask(ctx, at, key, keeper.wrap)
}

// Unwrap returns a key that the service at a URL has wrapped. The error names the URL.
func Unwrap(ctx context.Context, at string, wrapped []byte) (key []byte, err error) {
	return ask(ctx, at, wrapped, keeper.unwrap)
}

// keeper is a key of a service.
type keeper interface {
	wrap(ctx context.Context, key []byte) ([]byte, error)
	unwrap(ctx context.Context, wrapped []byte) ([]byte, error)
}

func ask(ctx context.Context, at string, data []byte, do func(keeper, context.Context, []byte) ([]byte, error)) ([]byte, error) {
	k, err := open(at)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, AskTime)
	defer cancel()
	result, err := do(k, ctx, data)
	if err != nil {
		return nil, fmt.Errorf("call the key management service %s: %w", at, err)
	}
	return result, nil
}

// open parses a URL.
func open(at string) (keeper, error) {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "hashivault" && u.Scheme != "awskms" {
		return nil, fmt.Errorf("%q is not a key management service URL: use hashivault://KEY or awskms://KEY?region=REGION", at)
	}
	key := strings.TrimPrefix(path.Join(u.Host, u.Path), "/")
	if key == "" {
		return nil, fmt.Errorf("%q has no key: use %s://KEY", at, u.Scheme)
	}
	var k keeper
	if u.Scheme == "hashivault" {
		k, err = newVault(key, u.Query())
	} else {
		k, err = newAWS(key, u.Query())
	}
	if err != nil {
		return nil, fmt.Errorf("the key management service %s: %w", at, err)
	}
	return k, nil
}

// maxAnswer is the limit of the length of an answer, in bytes.
const maxAnswer = 1 << 20

// post sends a request with a JSON body and decodes the answer. If the service rejects the request, the error contains the beginning of the
// answer.
func post(client *http.Client, rq *http.Request, into any) error {
	rs, err := client.Do(rq)
	if err != nil {
		return err
	}
	defer func() { _ = rs.Body.Close() }() // the body was read
	text, err := io.ReadAll(io.LimitReader(rs.Body, maxAnswer))
	if err != nil {
		return err
	}
	if rs.StatusCode != http.StatusOK {
		return fmt.Errorf("it returned %s: %.300s", rs.Status, bytes.TrimSpace(text))
	}
	return json.Unmarshal(text, into)
}
