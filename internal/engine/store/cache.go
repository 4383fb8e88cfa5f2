package store

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// commits numbers the commits that this process knows of, and stores the number of the last commit that changed each topic. Each
// collection is a topic. Packages with tables of their own name their topics with Tx.Touch.
type commits struct {
	// mu is held while a commit is counted. Reads take no lock.
	mu sync.Mutex
	// last is the number of the last commit. A snapshot that starts after reading it contains at least the commits up to that number.
	last atomic.Uint64
	// topics are the numbers of the last commits that touched them: *atomic.Uint64 by name.
	topics sync.Map
	// unknown is the number of the last commit of another process whose topics are unknown.
	unknown atomic.Uint64
}

// topic returns the number of the last commit that touched a topic.
func (c *commits) topic(name string) *atomic.Uint64 {
	n, ok := c.topics.Load(name)
	if !ok {
		n, _ = c.topics.LoadOrStore(name, &atomic.Uint64{})
	}
	return n.(*atomic.Uint64)
}

// latest returns the number of the last commit that touched one of the topics, or whose topics are unknown; 0 without topics.
func (c *commits) latest(topics []string) (number uint64) {
	if len(topics) > 0 {
		number = c.unknown.Load()
	}
	for _, name := range topics {
		number = max(number, c.topic(name).Load())
	}
	return number
}

// record counts a commit that touched the topics. known is false if its topics are unknown. The topics are updated before last, so that a
// transaction that starts at that number sees the new topic numbers.
func (c *commits) record(topics []string, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	number := c.last.Load() + 1
	for _, name := range topics {
		name, _, _ = strings.Cut(name, detailMark)
		c.topic(name).Store(number)
	}
	if !known {
		c.unknown.Store(number)
	}
	c.last.Store(number)
}

// Cache stores values that were read from the database, by key, until a commit touches a topic that they depend on. Safe for concurrent
// use. A value that must not be shared, because its transaction touched such a topic itself, is stored for that transaction only.
//
// Each value has the number of the last commit known before its transaction started. A transaction gets a value only if no commit touched
// its topics since the older one of the two transactions. A value is therefore never older than an acknowledged change. A commit is
// counted after it is in the database and before it is acknowledged. Within that moment, a snapshot may get a value from the other side
// of the commit. Commits of a tool to SQLite next to a manager count when the manager detects them (watchEvery).
//
// On PostgreSQL, where other managers commit as well, values are shared only while this process is notified of their commits
// (Store.Watch). Only values that depend on named topics are shared there.
type Cache[K comparable, V any] struct {
	s           *Store
	topics      []string
	numbers     []*atomic.Uint64
	topicOf     func(V) string
	valueTopics []string
	isLate      bool
	max         int

	// lastAsked is the number of the last commit known when the transaction of the last QuietSinceLast started.
	lastAsked atomic.Uint64

	mu     sync.RWMutex
	values map[K]cached[V] // guarded by mu
}

// cached is a value with the number of the commit it was read at and, in a cache with By, its own topic.
type cached[V any] struct {
	value  V
	commit uint64
	topic  *atomic.Uint64
}

// CacheOptions describe what the values of a cache depend on. Without Topics and By they depend on everything.
type CacheOptions[V any] struct {
	// Topics are the topics that every value depends on.
	Topics []string
	// By returns the single topic that a value depends on.
	By func(V) string
	// Among are the topics returned by By whose values are shared on PostgreSQL. Other managers send notifications about them.
	Among []string
	// Late lets a writing transaction on PostgreSQL get values that another manager changed, until the notification arrives.
	Late bool
	// Max is the maximum number of values; 0 means 10,000.
	Max int
}

// NewCache returns a cache of values that are read from a store. s may be nil if nothing will be read.
func NewCache[K comparable, V any](s *Store, o CacheOptions[V]) *Cache[K, V] {
	c := &Cache[K, V]{s: s, topics: o.Topics, topicOf: o.By, valueTopics: o.Among, isLate: o.Late, max: o.Max, values: map[K]cached[V]{}}
	if c.max <= 0 {
		c.max = 10_000
	}
	if s != nil {
		for _, topic := range o.Topics {
			s.Watch(topic, nil)
			c.numbers = append(c.numbers, s.commits.topic(topic))
		}
		for _, topic := range o.Among {
			s.Watch(topic, nil)
		}
	}
	return c
}

// Get returns the value that a transaction may use for a key.
func (c *Cache[K, V]) Get(tx *Tx, key K) (value V, ok bool) {
	if found, ok := tx.ownCache[ownKey{c, key}]; ok && !c.touchedSince(tx, found.value.(V), found.step) {
		return found.value.(V), true
	}
	if !c.s.canShare(c.sharedTopics()) || tx.writing && !c.s.engine.oneWriter() && !c.isLate {
		return value, false
	}
	e, ok := c.find(key)
	if !ok || c.lastChange(e) > min(e.commit, tx.seenCommit) || c.touched(tx, e.value) {
		return value, false
	}
	return e.value, true
}

// Now returns the value that currently holds for a key, outside of a transaction.
func (c *Cache[K, V]) Now(key K) (value V, ok bool) {
	if !c.s.canShare(c.sharedTopics()) {
		return value, false
	}
	e, ok := c.find(key)
	if !ok || c.lastChange(e) > e.commit {
		return value, false
	}
	return e.value, true
}

// Put stores a value that a transaction has read. The value must not be changed afterwards.
func (c *Cache[K, V]) Put(tx *Tx, key K, value V) {
	if c.touched(tx, value) || !c.canShare(value) {
		if tx.latest { // each of its statements sees another state
			return
		}
		if tx.ownCache == nil || len(tx.ownCache) >= maxOwn {
			tx.ownCache = map[ownKey]ownValue{}
		}
		tx.ownCache[ownKey{c, key}] = ownValue{value, tx.step}
		return
	}
	e := cached[V]{value: value, commit: tx.seenCommit}
	if c.topicOf != nil {
		e.topic = c.s.commits.topic(c.topicOf(value))
	}
	if c.lastChange(e) > e.commit { // read in an older snapshot, so no transaction could get it
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if there, ok := c.values[key]; !ok && len(c.values) >= c.max {
		clear(c.values)
	} else if ok && there.commit > e.commit {
		return
	}
	c.values[key] = e
}

// QuietSinceLast reports whether no commit became known between the start of the transaction of the previous call and the start of tx. It
// is a hint whether a value stored now is likely to be used again. It is false where values are not shared.
func (c *Cache[K, V]) QuietSinceLast(tx *Tx) bool {
	return c.lastAsked.Swap(tx.seenCommit) == tx.seenCommit && c.s.canShare(c.sharedTopics())
}

func (c *Cache[K, V]) find(key K) (e cached[V], ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, ok = c.values[key]
	return e, ok
}

// lastChange returns the number of the last commit that touched what a value depends on.
func (c *Cache[K, V]) lastChange(e cached[V]) uint64 {
	if c.topics == nil && c.topicOf == nil {
		return c.s.commits.last.Load()
	}
	last := c.s.commits.unknown.Load()
	if e.topic != nil {
		last = max(last, e.topic.Load())
	}
	for _, n := range c.numbers {
		last = max(last, n.Load())
	}
	return last
}

// touched reports whether a transaction, or an earlier one in the same commit, has touched what a value depends on.
func (c *Cache[K, V]) touched(tx *Tx, value V) bool {
	if !tx.writing {
		return false
	}
	if c.topics == nil && c.topicOf == nil { // other jobs in the same commit may have changed anything
		return true
	}
	return c.touchedSince(tx, value, 0) || c.concerns(value, func(topic string) bool { return tx.groupTopics[topic] })
}

// touchedSince reports whether a transaction has touched what a value depends on after the given step.
func (c *Cache[K, V]) touchedSince(tx *Tx, value V, step int) bool {
	if c.topics == nil && c.topicOf == nil {
		return tx.step > step
	}
	return c.concerns(value, func(topic string) bool { return tx.topics[topic] > step })
}

// sharedTopics returns the topics about which other managers must send notifications.
func (c *Cache[K, V]) sharedTopics() []string {
	if c.topics == nil {
		return c.valueTopics
	}
	return c.topics
}

// canShare reports whether transactions may share a value.
func (c *Cache[K, V]) canShare(value V) bool {
	if c.topicOf != nil && c.valueTopics != nil && !c.s.HasOneWriter() && !slices.Contains(c.valueTopics, c.topicOf(value)) {
		return false
	}
	return c.s.canShare(c.sharedTopics())
}

// concerns reports whether test is true for a topic that a value depends on.
func (c *Cache[K, V]) concerns(value V, test func(topic string) bool) bool {
	if c.topicOf != nil {
		return test(c.topicOf(value))
	}
	for _, topic := range c.topics {
		if test(topic) {
			return true
		}
	}
	return false
}

// maxOwn is the maximum number of values that a transaction stores for itself.
const maxOwn = 10_000

// ownKey identifies a value that a transaction stores for itself: the cache and its key. ownValue is that value and the step at which it
// was read.
type ownKey struct {
	cache, key any
}

type ownValue struct {
	value any
	step  int
}

// canShare reports whether transactions may share values that depend on the topics. A tool shares nothing, because a manager may write at
// the same time.
func (s *Store) canShare(topics []string) bool {
	return s != nil && s.engine.canShare(topics)
}
