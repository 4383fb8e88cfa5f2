package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// What FTS5 looks for is found where the lists of all its trigrams meet. A trigram that very many resources have, as `10.` is of addresses,
// has a list that takes longer to go through than it spares: it is left out, and what is found more by that does not meet the condition
// that stands beside. Which these are is seen in a sample.
const (
	sampleEvery = time.Hour
	sampleSize  = 2000
	// oneInMany is how many resources there are for one that has a trigram that is left out.
	commonShare = 20
	// leastGrams is how many trigrams must be left.
	minTrigrams = 3
)

// rare gives those of the trigrams that are worth being looked for.
func (e Fragment) selectRare(grams []string) []string {
	var rare []string
	for _, gram := range grams {
		if !e.common[gram] {
			rare = append(rare, gram)
		}
	}
	if len(rare) < minTrigrams {
		return grams
	}
	return rare
}

// sampleTexts looks which trigrams are common.
func (s *Store) findCommonTrigrams(ctx context.Context) error {
	common := map[string]bool{}
	if err := s.View(ctx, func(tx *Tx) error {
		counts, sampled, err := tx.countTrigrams()
		for gram, n := range counts {
			if n*commonShare > sampled {
				common[gram] = true
			}
		}
		return err
	}); err != nil {
		return fmt.Errorf("looking which trigrams are common: %w", err)
	}
	s.commonTrigrams.Store(&common)
	return nil
}

// countGrams gives how many of a sample of the resources have a trigram, and of how many it is. Each collection has as large a part of the
// sample as of the resources.
func (tx *Tx) countTrigrams() (counts map[string]int, sampled int, err error) {
	collections := map[string]int64{}
	all := int64(0)
	if err := tx.Each(func(scan func(...any) error) error {
		var name string
		var n int64
		err := scan(&name, &n)
		collections[name] = n
		all += n
		return err
	}, "SELECT collection, sum(n) FROM total WHERE parent = ? GROUP BY collection", everywhere); err != nil {
		return nil, 0, err
	}
	counts = map[string]int{}
	for name, n := range collections {
		seen := map[int64]bool{}
		var low, high int64
		if err := tx.QueryRow("SELECT coalesce((SELECT id FROM resource WHERE collection = ? ORDER BY id LIMIT 1), 0), "+
			"coalesce((SELECT id FROM resource WHERE collection = ? ORDER BY id DESC LIMIT 1), 0)", name, name).Scan(&low, &high); err != nil {
			return nil, 0, err
		}
		for range min(n, max(1, sampleSize*n/max(1, all))) {
			r := Resource{Collection: name}
			if err := tx.QueryRow("SELECT id, coalesce(name, ''), body FROM resource WHERE collection = ? AND id >= ? ORDER BY id LIMIT 1", name,
				low+rand.Int64N(high-low+1)).Scan(&r.ID, &r.Name, &r.Body); err != nil { //nolint:gosec // a sample needs no secrecy
				return nil, 0, err
			}
			if seen[r.ID] {
				continue
			}
			seen[r.ID] = true
			text, err := indexedText(tx.store.searchedFields[name], name, r.Name, r.Body)
			if err != nil {
				return nil, 0, err
			}
			sampled++
			for _, gram := range trigramsOf(text) {
				counts[gram]++
			}
		}
	}
	return counts, sampled, nil
}
