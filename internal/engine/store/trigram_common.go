package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// FTS5 intersects the lists of all trigrams of a query. The list of a trigram that very many resources contain, such as "10." of
// addresses, takes longer to read than it saves. Such trigrams are left out; the exact condition filters the additional matches. A sample
// of the resources shows which trigrams are common.
const (
	sampleEvery = time.Hour
	sampleSize  = 2000
	// A trigram is common if more than one in commonShare sampled resources contains it.
	commonShare = 20
	// minTrigrams is the minimum number of trigrams of a query. With fewer, common ones are not left out.
	minTrigrams = 3
)

// selectRare returns the trigrams that a query should use.
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

// findCommonTrigrams samples the resources and stores which trigrams are common.
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
		return fmt.Errorf("find common trigrams: %w", err)
	}
	s.commonTrigrams.Store(&common)
	return nil
}

// countTrigrams returns the number of sampled resources that contain each trigram, and the size of the sample. Each collection has the
// same share in the sample as in the resources.
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
