package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/manager/ipam"
	"portolan/internal/manager/model"
)

// usedAddresses is the number of addresses in the block whose usage is read.
const usedAddresses = 1_000_000

// usage measures (k): the usage of a block with a million addresses, compared with an empty block.
func (b *bench) usage() error {
	dir, network, err := b.data(usedAddresses)
	if err != nil {
		return err
	}
	return b.readUsage("(k) usage of a block over 1,000,000 addresses", store.Options{Layout: model.Layout(), Dir: dir}, network)
}

// sharedUsage measures (w): the same on PostgreSQL.
func (b *bench) sharedUsage() error {
	url, network, err := b.filled(usedAddresses)
	if err != nil {
		return err
	}
	return b.readUsage("(w) usage of a block over 1,000,000 addresses, PostgreSQL", store.Options{Layout: model.Layout(), Database: url},
		network)
}

func (b *bench) readUsage(what string, o store.Options, network string) error {
	s, err := store.Open(o)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	ctx := context.Background()
	id, err := strconv.ParseInt(network, 10, 64)
	if err != nil {
		return err
	}
	var full int64
	if err := s.View(ctx, func(tx *store.Tx) error {
		row, err := tx.Get(id)
		if err == nil {
			full = row.Parent
		}
		return err
	}); err != nil {
		return err
	}
	measure := func(block, least int64) (time.Duration, error) {
		start, n := time.Now(), 0
		for ; time.Since(start) < b.time; n++ {
			if err := s.View(ctx, func(tx *store.Tx) error {
				usage, err := ipam.UsageOf(tx, []int64{block})
				if err == nil && usage[block].Used() < least {
					err = fmt.Errorf("the usage of block %d is %v", block, usage[block])
				}
				return err
			}); err != nil {
				return 0, err
			}
		}
		return time.Since(start) / time.Duration(n), nil
	}
	empty, err := measure(full+1_000_000_000, 0) // a block that does not exist has no usage
	if err != nil {
		return err
	}
	ours, err := measure(full, usedAddresses-10)
	if err != nil {
		return err
	}
	ratio := float64(ours) / float64(empty)
	b.add(what, ours.Round(100*time.Nanosecond).String(), empty.Round(100*time.Nanosecond).String()+" empty", ratio, "at most 2", ratio <= 2)
	return nil
}
