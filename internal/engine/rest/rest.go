package rest

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// Settings are what a manager says of its API.
type Settings struct {
	// Base is the path before the collections, such as /api/v2.
	Base string
	// MaxLimit is the largest page (spec.md section 8).
	MaxLimit int64
	// RootType is the type of the root resource; Version and Hostname are what it says of the manager.
	RootType, Version, Hostname string
}

// Server serves the declared API over HTTP.
type Server struct {
	*resource.API
	Settings
	// WriteTime is how long a piece of a list, 64 KiB, may take to be sent. A client that does not
	// read is cut off: it would hold a snapshot of the database.
	WriteTime time.Duration
	// ReadTime is how long the database may be asked for a list.
	ReadTime time.Duration
	// Log takes what cannot be answered any more.
	Log *slog.Logger

	// Batched is told of each batch: of how many changes, and whether they were made, tried or refused.
	Batched func(changes int, result string)

	// SetCookie has a browser keep the credentials of a session that it has begun.
	SetCookie func(w http.ResponseWriter, r *http.Request, credentials string)
	// OfRequest gives the transient fields of what an alias stands for that the request itself has, such as the token of the current session.
	OfRequest func(r *http.Request, caller resource.Caller) map[string]string
	// Still says who asks now, of a request that takes long; nil: as ever.
	Still func(r *http.Request) (resource.Caller, error)
	// Beat is how often something is sent to a follower at least, and who asks is asked for again.
	Beat time.Duration
	// Apply makes a resource be as the change sends it, in what in names (imports.Apply).
	Apply func(c *resource.Change, how resource.Applying) (resource.Applied, error)
	// followers has one for each who follows the changes; following are those whose connection is detached. letGo ends closing, and
	// with it all of them.
	followers chan struct{}
	following sync.WaitGroup
	closing   context.Context
	letGo     context.CancelFunc
	wordings  wordings

	// headers are those that are looked at, by what serves or by rules.
	headers []resource.RequestHeader
	// ours are the names below Base that are no collections, and not published.
	ours map[string]ownPath
	// plans are the links of resources, by collection.
	plans map[string]*plan
	// heads are what references show of their targets, each good while nothing of its collection has changed; shown are
	// rows with what Complete put into them.
	heads *store.Cache[int64, store.Head]
	shown *store.Cache[int64, shownRow]
	// lists are those under way, reading those among them that have the database; backlog is what of them waits for clients.
	// paging are those that have it for a moment.
	lists, reading, paging shares
	backlog                backlog
	// batches are those under way, batching has one for each of them that has its turn.
	batches  shares
	batching chan struct{}
}

// ownPath is a path that is no collection's.
type ownPath struct {
	serve func(w http.ResponseWriter, r *http.Request, caller resource.Caller) error
	// document gives its OpenAPI path item.
	document func() doc
}

// How many lists of one caller may be under way at a time, how many of those may ask the database, and how
// many may wait.
const (
	listsEach    = 16
	readingEach  = 2
	listsWaiting = 64
)

// DefaultLimit is the size of a page without limit (spec.md section 8).
const DefaultLimit = 1000

// New makes what serves an API.
func New(a *resource.API, settings Settings) *Server {
	s := &Server{API: a, Settings: settings, WriteTime: 30 * time.Second, ReadTime: time.Minute, Log: slog.Default(),
		Batched: func(int, string) {}, Beat: 15 * time.Second, followers: make(chan struct{}, maxFollowers),
		headers: slices.Concat(engineHeaders, a.Headers), plans: map[string]*plan{},
		lists: shares{each: listsEach, waiting: listsWaiting}, reading: shares{each: readingEach, waiting: listsWaiting},
		paging: shares{each: readingEach, waiting: listsWaiting}, batches: shares{each: batchesEach, waiting: batchesWaiting},
		batching: make(chan struct{}, maxBatches),
		heads: store.NewCache[int64](a.Store, store.CacheOptions[store.Head]{By: func(h store.Head) string { return h.Collection },
			Among: []string{"configurations", "blocks", "networks", "views", "zones", "locations"}}),
		shown: store.NewCache[int64](a.Store, store.CacheOptions[shownRow]{})}
	s.closing, s.letGo = context.WithCancel(context.Background())
	s.ours = map[string]ownPath{batchName: {s.batch, s.batchPath}, searchName: {s.search, s.searchPath},
		changesName: {s.changes, s.changesPath}, applyName: {s.apply, s.applyPath}}
	for _, c := range a.Collections() {
		s.plans[c.Name] = newPlan(s.Base, c)
	}
	return s
}
