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

// Settings are the properties of the API of a manager.
type Settings struct {
	// Base is the path before the collections, such as /api/v2.
	Base string
	// MaxLimit is the largest page (spec.md section 8).
	MaxLimit int64
	// RootType is the type of the root resource; Version and Hostname are its fields.
	RootType, Version, Hostname string
}

// Server serves the declared API over HTTP.
type Server struct {
	*resource.API
	Settings
	// WriteTime is the time limit for sending a piece of a list, 64 KiB. A client that does not read is disconnected, because it would
	// hold a snapshot of the database.
	WriteTime time.Duration
	// ReadTime is the time limit for reading a list from the database.
	ReadTime time.Duration
	// Log receives errors that cannot be sent to the client any more.
	Log *slog.Logger

	// Batched is called for each batch, with the number of its changes and the result: "made", "tried" or "refused".
	Batched func(changes int, result string)

	// SetCookie stores the credentials of a new session in the browser.
	SetCookie func(w http.ResponseWriter, r *http.Request, credentials string)
	// RequestFields returns the transient fields that the resource of an alias has from the request itself, such as the token of the
	// current session.
	RequestFields func(r *http.Request, caller resource.Caller) map[string]string
	// CurrentCaller returns the current caller of a long request; nil if the caller cannot change.
	CurrentCaller func(r *http.Request) (resource.Caller, error)
	// Beat is the interval of heartbeats and of authorization checks in a change feed.
	Beat time.Duration
	// Apply applies one resource of a document (imports.Apply).
	Apply func(c *resource.Change, how resource.Applying) (resource.Applied, error)
	// followers has one element for each open change feed; following counts those with a detached connection. cancelFeeds cancels
	// closing, and thereby closes all of them.
	followers   chan struct{}
	following   sync.WaitGroup
	closing     context.Context
	cancelFeeds context.CancelFunc
	changeCache changeCache

	// headers are the headers that the server or the rules read.
	headers []resource.RequestHeader
	// ownPaths are the paths below Base that are not collections and not published.
	ownPaths map[string]ownPath
	// plans are the link texts of resources, by collection.
	plans map[string]*plan
	// heads caches the heads of resources, each until its collection changes; shown caches completed rows.
	heads *store.Cache[int64, store.Head]
	shown *store.Cache[int64, shownRow]
	// lists limits the open lists, reading those of them that use the database; paging limits short reads. backlog is the size of unsent
	// data of all lists.
	lists, reading, paging shares
	backlog                backlog
	// batches limits the waiting and running batches, batching has one element for each running batch.
	batches  shares
	batching chan struct{}
}

// ownPath is a path that is not a collection's.
type ownPath struct {
	serve func(w http.ResponseWriter, r *http.Request, caller resource.Caller) error
	// document returns its OpenAPI path item.
	document func() doc
}

// The limits of one caller: open lists, lists that use the database, and waiting lists.
const (
	listsEach    = 16
	readingEach  = 2
	listsWaiting = 64
)

// DefaultLimit is the page size without limit (spec.md section 8).
const DefaultLimit = 1000

// cachedHeads returns the names of the collections whose heads are kept in memory.
func cachedHeads(a *resource.API) (names []string) {
	for _, c := range a.Collections() {
		if c.CacheHeads {
			names = append(names, c.Name)
		}
	}
	return names
}

// New returns a server of an API.
func New(a *resource.API, settings Settings) *Server {
	s := &Server{API: a, Settings: settings, WriteTime: 30 * time.Second, ReadTime: time.Minute, Log: slog.Default(),
		Batched: func(int, string) {}, Beat: 15 * time.Second, followers: make(chan struct{}, maxFollowers),
		headers: slices.Concat(engineHeaders, a.Headers), plans: map[string]*plan{},
		lists: shares{each: listsEach, waiting: listsWaiting}, reading: shares{each: readingEach, waiting: listsWaiting},
		paging: shares{each: readingEach, waiting: listsWaiting}, batches: shares{each: batchesEach, waiting: batchesWaiting},
		batching: make(chan struct{}, maxBatches),
		heads: store.NewCache[int64](a.Store, store.CacheOptions[store.Head]{By: func(h store.Head) string { return h.Collection },
			Among: cachedHeads(a)}),
		shown: store.NewCache[int64](a.Store, store.CacheOptions[shownRow]{})}
	s.closing, s.cancelFeeds = context.WithCancel(context.Background())
	s.ownPaths = map[string]ownPath{batchName: {s.batch, s.batchPath}, searchName: {s.search, s.searchPath},
		changesName: {s.changes, s.changesPath}, applyName: {s.apply, s.applyPath}}
	for _, c := range a.Collections() {
		s.plans[c.Name] = newPlan(s.Base, c)
	}
	return s
}
