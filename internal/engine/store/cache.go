package store

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// commits numbers the commits that this process knows of, and remembers the last one that changed something of each
// topic. A collection is a topic; rooms that keep tables of their own name theirs by Tx.Touch.
type commits struct {
	// mu is held by whoever counts a commit; reading takes no lock.
	mu sync.Mutex
	// last is the number of the last commit. Whoever reads it before a snapshot begins knows that the snapshot has at
	// least what was committed up to that number.
	last atomic.Uint64
	// topics are the numbers of the last commits that touched them: *atomic.Uint64 by name.
	topics sync.Map
	// unknown is the last commit of another process of which nobody knows what it changed.
	unknown atomic.Uint64
}

// topic gives the place of the number of the last commit that touched a topic.
func (c *commits) topic(name string) *atomic.Uint64 {
	n, ok := c.topics.Load(name)
	if !ok {
		n, _ = c.topics.LoadOrStore(name, &atomic.Uint64{})
	}
	return n.(*atomic.Uint64)
}

// count counts a commit that touched the topics; nil stands for a commit of which nobody knows what it touched. The
// topics have its number before it is the last one: whoever begins at that number finds nothing older behind it.
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

// Cache remembers what was read of the database, by a key, until a commit touches a topic that it follows from. It is
// safe for use by many. What a transaction found out that must not be shared, because it has touched a topic itself,
// is remembered for that transaction alone.
//
// Each value has the number of the last commit that was known before the transaction that read it began. It is given
// to those alone between whose number, its own and now no counted commit touched a topic: nothing is served that is older
// than an acknowledged change. A commit is counted after the database has it and before it is acknowledged: in that moment
// a snapshot may be given what was read on the other side of the commit. What a tool commits to SQLite beside a manager counts when that
// has looked (watchEvery).
//
// On PostgreSQL, where other managers commit as well, values are shared while this process hears of the others' commits
// (Store.Watch), and only those that follow from named topics.
type Cache[K comparable, V any] struct {
	s       *Store
	topics  []string
	numbers []*atomic.Uint64
	by      func(V) string
	among   []string
	late    bool
	max     int

	// asked is the number of the last commit that was known when the transaction of who asked last began (QuietSinceLast).
	lastAsked atomic.Uint64

	mu     sync.RWMutex
	values map[K]cached[V] // guarded by mu
}

// cached is a value, with the number of the commit it was read at and, in a cache by topic, its own topic.
type cached[V any] struct {
	value V
	at    uint64
	topic *atomic.Uint64
}

// CacheOptions say what a cache's values follow from. Where neither Topics nor By is set they follow from everything.
type CacheOptions[V any] struct {
	// Topics are those that every value follows from.
	Topics []string
	// By gives the one topic that a value follows from.
	By func(V) string
	// Among are those of the topics that By gives of which, on PostgreSQL, values are shared: other managers tell of changes to them.
	Among []string
	// Late lets a transaction that writes take values which another manager, on PostgreSQL, may have changed since, for as
	// long as it takes to hear of it.
	Late bool
	// Max is how many values are kept; 0 means 10,000.
	Max int
}

// NewCache makes a cache of what is read of a store; s may be nil where nothing will be read.
func NewCache[K comparable, V any](s *Store, o CacheOptions[V]) *Cache[K, V] {
	c := &Cache[K, V]{s: s, topics: o.Topics, by: o.By, among: o.Among, late: o.Late, max: o.Max, values: map[K]cached[V]{}}
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

// Get gives what a transaction may take for a key.
func (c *Cache[K, V]) Get(tx *Tx, key K) (value V, ok bool) {
	if found, ok := tx.ownCache[ownKey{c, key}]; ok && !c.touchedSince(tx, found.value.(V), found.step) {
		return found.value.(V), true
	}
	if !c.s.canShare(c.sharedTopics()) || tx.writing && !c.s.engine.oneWriter() && !c.late {
		return value, false
	}
	e, ok := c.find(key)
	if !ok || c.lastChange(e) > min(e.at, tx.seenCommit) || c.touched(tx, e.value) {
		return value, false
	}
	return e.value, true
}

// Now gives what holds for a key at the moment, outside of any transaction.
func (c *Cache[K, V]) Now(key K) (value V, ok bool) {
	if !c.s.canShare(c.sharedTopics()) {
		return value, false
	}
	e, ok := c.find(key)
	if !ok || c.lastChange(e) > e.at {
		return value, false
	}
	return e.value, true
}

// Put remembers what a transaction has read. The value must not be changed afterwards.
func (c *Cache[K, V]) Put(tx *Tx, key K, value V) {
	if c.touched(tx, value) || !c.canShare(value) {
		if tx.latest { // its statements see one state each
			return
		}
		if tx.ownCache == nil || len(tx.ownCache) >= maxOwn {
			tx.ownCache = map[ownKey]ownValue{}
		}
		tx.ownCache[ownKey{c, key}] = ownValue{value, tx.step}
		return
	}
	e := cached[V]{value: value, at: tx.seenCommit}
	if c.by != nil {
		e.topic = c.s.commits.topic(c.by(value))
	}
	if c.lastChange(e) > e.at { // read in an older snapshot: nobody could be given it
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if there, ok := c.values[key]; !ok && len(c.values) >= c.max {
		clear(c.values)
	} else if ok && there.at > e.at {
		return
	}
	c.values[key] = e
}

// QuietSinceLast reports whether no commit was heard of between the beginning of the transaction of who asked this last and the beginning
// of tx. It is a hint whether what is remembered now has a chance to be asked for again; where values are not shared it has none.
func (c *Cache[K, V]) QuietSinceLast(tx *Tx) bool {
	return c.lastAsked.Swap(tx.seenCommit) == tx.seenCommit && c.s.canShare(c.sharedTopics())
}

func (c *Cache[K, V]) find(key K) (e cached[V], ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, ok = c.values[key]
	return e, ok
}

// changed gives the number of the last commit that touched what a value follows from.
func (c *Cache[K, V]) lastChange(e cached[V]) uint64 {
	if c.topics == nil && c.by == nil {
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

// touched reports whether a transaction, or one before it that shares its commit, has touched what a value follows from.
func (c *Cache[K, V]) touched(tx *Tx, value V) bool {
	if !tx.writing {
		return false
	}
	if c.topics == nil && c.by == nil { // what others in its commit did may be anything
		return true
	}
	return c.touchedSince(tx, value, 0) || c.concerns(value, func(topic string) bool { return tx.groupTopics[topic] })
}

// touchedSince reports whether a transaction has touched what a value follows from after a step of its own.
func (c *Cache[K, V]) touchedSince(tx *Tx, value V, step int) bool {
	if c.topics == nil && c.by == nil {
		return tx.step > step
	}
	return c.concerns(value, func(topic string) bool { return tx.topics[topic] > step })
}

// watched are the topics of which other managers tell.
func (c *Cache[K, V]) sharedTopics() []string {
	if c.topics == nil {
		return c.among
	}
	return c.topics
}

// shares reports whether a value may be shared between transactions.
func (c *Cache[K, V]) canShare(value V) bool {
	if c.by != nil && c.among != nil && !c.s.OneWriter() && !slices.Contains(c.among, c.by(value)) {
		return false
	}
	return c.s.canShare(c.sharedTopics())
}

// concerns reports whether a test holds for a topic that a value follows from.
func (c *Cache[K, V]) concerns(value V, test func(topic string) bool) bool {
	if c.by != nil {
		return test(c.by(value))
	}
	for _, topic := range c.topics {
		if test(topic) {
			return true
		}
	}
	return false
}

// maxOwn is how many values a transaction keeps for itself.
const maxOwn = 10_000

// ownKey is a key of a cache; ownValue what a transaction keeps for itself, and the step at which it found it.
type ownKey struct {
	cache, key any
}

type ownValue struct {
	value any
	step  int
}

// shares reports whether what follows from the topics may be shared between transactions. A tool, beside which a manager
// may write, shares nothing.
func (s *Store) canShare(topics []string) bool {
	return s != nil && s.engine.canShare(topics)
}
