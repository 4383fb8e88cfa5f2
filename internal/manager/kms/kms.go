// Package kms has key management services wrap keys, and unwrap them: who has a wrapped key has nothing without the service. A service goes
// by its URL, in the words of gocloud.dev/secrets: hashivault://KEY for the transit engine of Vault or OpenBao (VAULT_ADDR, VAULT_TOKEN),
// awskms://KEY?region=REGION for AWS KMS (credentials as the AWS command line finds them).
package kms

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gocloud.dev/secrets"
	_ "gocloud.dev/secrets/awskms"     // awskms://
	_ "gocloud.dev/secrets/hashivault" // hashivault://
)

// AskTime is how long a service may take.
const AskTime = 30 * time.Second

// Wrap gives a key as the service at a URL wraps it.
func Wrap(ctx context.Context, at string, key []byte) (wrapped []byte, err error) {
	err = with(ctx, at, func(ctx context.Context, k *secrets.Keeper) (err error) {
		wrapped, err = k.Encrypt(ctx, key)
		return err
	})
	return wrapped, err
}

// Unwrap gives a key that the service at a URL has wrapped.
func Unwrap(ctx context.Context, at string, wrapped []byte) (key []byte, err error) {
	err = with(ctx, at, func(ctx context.Context, k *secrets.Keeper) (err error) {
		key, err = k.Decrypt(ctx, wrapped)
		return err
	})
	return key, err
}

func with(ctx context.Context, at string, ask func(context.Context, *secrets.Keeper) error) error {
	scheme, _, found := strings.Cut(at, "://")
	if !found || scheme != "hashivault" && scheme != "awskms" {
		return fmt.Errorf("%q is the URL of no key management service: hashivault://KEY and awskms://KEY?region=REGION are", at)
	}
	ctx, cancel := context.WithTimeout(ctx, AskTime)
	defer cancel()
	keeper, err := secrets.OpenKeeper(ctx, at)
	if err != nil {
		return fmt.Errorf("the key management service %s: %w", at, err)
	}
	err = ask(ctx, keeper)
	if e := keeper.Close(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("asking the key management service %s: %w", at, err)
	}
	return nil
}
