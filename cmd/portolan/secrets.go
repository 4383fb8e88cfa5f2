package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"portolan/internal/engine/store"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/kms"
	"portolan/internal/manager/secrets"
)

// kmsFlag selects the key management service that unwraps the master keys.
type kmsFlag struct {
	KMS string `help:"The URL of the key management service that wraps the master keys: hashivault://KEY (with VAULT_ADDR and VAULT_TOKEN) or awskms://KEY?region=REGION. The manager connects to it when it starts." name:"kms" env:"PORTOLAN_KMS" placeholder:"URL"`
}

// masterFlag selects the file of the master keys.
type masterFlag struct {
	kmsFlag
	MasterKey string `help:"A file with the master key that encrypts secrets, from secrets new-key; further lines are former keys. Alternative: the key itself in PORTOLAN_MASTER_KEY." name:"master-key" env:"PORTOLAN_MASTER_KEY_FILE" type:"path" placeholder:"FILE"`
}

// masterKeys is the environment variable that may contain the master keys.
const masterKeys = "PORTOLAN_MASTER_KEY"

// keys reads the master keys. It returns nil if there are none.
func (f masterFlag) keys() (secrets.MasterKeys, error) {
	var unwrap func([]byte) ([]byte, error)
	if f.KMS != "" {
		unwrap = func(wrapped []byte) ([]byte, error) { return kms.Unwrap(context.Background(), f.KMS, wrapped) }
	}
	text := os.Getenv(masterKeys)
	switch {
	case f.MasterKey != "":
		return secrets.ReadMasterKeys(f.MasterKey, unwrap)
	case text == "" && f.KMS != "":
		return nil, errors.New("--kms requires --master-key with a file of portolan secrets new-key --kms")
	}
	return secrets.ParseMasterKeys(text, unwrap)
}

type secretsCommand struct {
	NewKey secretsNewKey `cmd:"" example:"portolan secrets new-key > master.key" help:"Create a master key and print it. Store it apart from the data and backups; without it they cannot be decrypted."`
	Rotate secretsRotate `cmd:"" example:"portolan secrets rotate --data /var/lib/portolan --master-key master.key" help:"Create a new key for secrets, and encrypt all keys with the first master key. The manager may be running."`
}

type secretsNewKey struct {
	kmsFlag
}

// Run prints a new master key. If a key management service is given, the key is wrapped.
func (c secretsNewKey) Run(s *session) error {
	key := secrets.NewMasterKey()
	if c.KMS != "" {
		var err error
		if key, err = secrets.NewWrappedMasterKey(func(key []byte) ([]byte, error) { return kms.Wrap(s.ctx, c.KMS, key) }); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(s.stdout, key)
	return err
}

type secretsRotate struct {
	dataFlag
}

// Run creates a new sealing key.
func (c *secretsRotate) Run(s *session) error {
	return c.open(func(st *store.Store, _ *identity.Service) error {
		keys, err := c.keys()
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			return usageError{errors.New("--master-key is required: without it the keys are stored unencrypted in the database")}
		}
		sealed, err := secrets.FromStore(st).UseMasterKeys(s.ctx, keys)
		if err != nil {
			return err
		}
		id, err := secrets.FromStore(st).RotateSealingKey(s.ctx)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(s.stdout, "new secrets are encrypted with key %d; encrypted %d older keys with the first master key\n", id,
			sealed)
		return err
	})
}
