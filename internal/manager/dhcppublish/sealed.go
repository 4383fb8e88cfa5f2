package dhcppublish

import (
	"encoding/json"
	"slices"

	"portolan/internal/engine/store"
	"portolan/internal/manager/secrets"
	"portolan/internal/wire/dhcpdata"
)

// Records of zones contain the secrets of keys. They are stored encrypted: the letter of a sealed record, and the sealed text.
const (
	zoneLetter    = 'Z'
	sealedLetter  = 'z'
	sealedPurpose = "DHCP zones"
)

// sealRecords returns a copy of records in which zone records, which contain secrets of keys, are encrypted.
func sealRecords(tx *store.Tx, records []dhcpdata.Record) ([]dhcpdata.Record, error) {
	out := slices.Clone(records)
	for i, r := range out {
		if r[0] != zoneLetter {
			continue
		}
		text, err := secrets.Sealer{}.Seal(tx, sealedPurpose, string(r))
		if err != nil {
			return nil, err
		}
		out[i] = append(dhcpdata.Record{sealedLetter}, text...)
	}
	return out, nil
}

// openRecords decrypts sealed records in place and returns the same slice. Other records are unchanged. It returns an error if a secret
// cannot be decrypted.
func openRecords(tx *store.Tx, records []dhcpdata.Record) ([]dhcpdata.Record, error) {
	for i, r := range records {
		if len(r) == 0 || r[0] != sealedLetter {
			continue
		}
		text, err := secrets.Sealer{}.Open(tx, sealedPurpose, string(r[1:]))
		if err != nil {
			return nil, err
		}
		records[i] = dhcpdata.Record(text)
	}
	return records, nil
}

// sealChanges returns changes of units as they are stored.
func sealChanges(tx *store.Tx, changes map[string]unitChange) (map[string]unitChange, error) {
	out := map[string]unitChange{}
	for id, c := range changes {
		var err error
		if c.Removed, err = sealRecords(tx, c.Removed); err != nil {
			return nil, err
		}
		if c.Added, err = sealRecords(tx, c.Added); err != nil {
			return nil, err
		}
		out[id] = c
	}
	return out, nil
}

// openChanges decodes stored changes of units.
func openChanges(tx *store.Tx, packed []byte) (changes map[string]unitChange, err error) {
	text, err := unpacker.DecodeAll(packed, nil)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &changes); err != nil {
		return nil, err
	}
	for id, c := range changes {
		if c.Removed, err = openRecords(tx, c.Removed); err != nil {
			return nil, err
		}
		if c.Added, err = openRecords(tx, c.Added); err != nil {
			return nil, err
		}
		changes[id] = c
	}
	return changes, nil
}
