package ipam

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/netip"
	"slices"

	"portolan/internal/base/space"
	"portolan/internal/engine/store"
)

// DelegatedLengthOption is the service option of a DHCPv6 range that delegates prefixes of this length and leases no addresses.
const DelegatedLengthOption = "delegated-prefix-length"

// CountPrefixes returns the number of whole prefixes of a length in a range.
func CountPrefixes(low, high netip.Addr, length int) *big.Int {
	unit := new(big.Int).Lsh(big.NewInt(1), uint(low.BitLen()-length)) //nolint:gosec // a length is at most 128
	first := new(big.Int).SetBytes(low.AsSlice())
	first.Add(first, unit).Sub(first, big.NewInt(1)).Div(first, unit)
	end := new(big.Int).SetBytes(high.AsSlice())
	end.Add(end, big.NewInt(1)).Div(end, unit)
	if n := end.Sub(end, first); n.Sign() > 0 {
		return n
	}
	return new(big.Int)
}

// delegatedAtOnce is the number of DHCP ranges that one statement reads.
const delegatedAtOnce = 200

// DelegatedLengths returns the lengths of the prefixes that DHCP ranges delegate, by id. Ranges of addresses are missing.
func DelegatedLengths(tx *store.Tx, ids []int64) (map[int64]int, error) {
	all := map[int64]int{}
	text := func(name, value string) store.Expr {
		return store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{name}}, Op: "eq", Value: value}
	}
	for part := range slices.Chunk(ids, delegatedAtOnce) {
		var parents store.Any
		for _, id := range part {
			parents = append(parents, store.HasParent(id))
		}
		err := tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("deploymentOptions"), parents,
			text("name", DelegatedLengthOption), text("type", "DHCPv6ServiceOption")}}, func(r *store.Resource) error {
			if r.Ref("serverScope") != 0 { // a deployment refuses it
				return nil
			}
			return store.Members(r.Body, func(name, raw []byte) error {
				length := 0
				if string(name) == "value" && json.Unmarshal(raw, &length) == nil && length >= 1 && length <= maxDelegated {
					all[r.Parent] = length // another value is a finding of the deployment
				}
				return nil
			})
		})
		if err != nil {
			return nil, fmt.Errorf("read the delegated lengths of ranges: %w", err)
		}
	}
	return all, nil
}

// maxDelegated is the longest delegated prefix.
const maxDelegated = 64

// clientSizes returns the number of addresses of each DHCP range, or of the prefixes that it delegates.
func clientSizes(tx *store.Tx, rows []*store.Resource, wholes []space.Range) ([]*big.Int, error) {
	var ids []int64
	for _, r := range rows {
		if r.Type == "IPv6DHCPRange" {
			ids = append(ids, r.ID)
		}
	}
	lengths, err := DelegatedLengths(tx, ids)
	if err != nil {
		return nil, err
	}
	sizes := make([]*big.Int, len(rows))
	for i, r := range rows {
		if sizes[i] = wholes[i].Size(); lengths[r.ID] > 0 {
			sizes[i] = CountPrefixes(wholes[i].Low, wholes[i].High, lengths[r.ID])
		}
	}
	return sizes, nil
}
