package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// A batch is a list of changes in one transaction: all of them are applied, or none. Each is read like a single request, before the
// transaction starts, and has the same rights, rules and headers. A change may refer to an earlier one that creates a resource: $3 in its
// path, or as the value of a member id of its body, is the id of the resource that changes[3] creates.

// batchName is the path element of POST /batch.
const batchName = "batch"

// Limits of a batch.
const (
	// maxChanges is the maximum number of changes, maxFaults the maximum number of errors that are reported before the transaction
	// starts.
	maxChanges = 10_000
	maxFaults  = 100
	// maxFault is the maximum length of one error, in bytes.
	maxFault = 1_000
	// maxPrepared is the maximum number of changes that need work before the transaction, such as hashing a password.
	maxPrepared = 16
	// maxAnswer is the maximum total length of the answers of the changes, in bytes.
	maxAnswer = 32 << 20
	// maxBatchProbes is the maximum number of addresses to probe. The whole batch is executed again after each.
	maxBatchProbes = 64
)

// batchBody are the limits of the body of a batch.
var batchBody = Bounds{Bytes: 4 << 20, Members: 300_000}

// batchesEach is the number of concurrent batches of one caller, batchesWaiting the number that may wait. maxBatches is the number of
// concurrent batches of all callers: each has its body, its changes and its answer in memory.
const (
	batchesEach    = 1
	batchesWaiting = 8
	maxBatches     = 1
)

// waitForBatch waits until the caller may execute a batch. It is called after the body was read. The caller of waitForBatch must call
// done before it sends the answer, so that a slow client does not block others. done may be called more than once.
func (a *Server) waitForBatch(ctx context.Context, caller resource.Caller) (done func(), err error) {
	_, leave, err := a.batches.acquire(ctx, caller.Owner())
	if err != nil {
		return nil, err
	}
	select {
	case a.batching <- struct{}{}:
		return sync.OnceFunc(func() { <-a.batching; leave() }), nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

// batch serves POST /batch.
func (a *Server) batch(w http.ResponseWriter, r *http.Request, caller resource.Caller) error {
	switch r.Method {
	case http.MethodPost:
	case http.MethodOptions:
		w.Header().Set("Allow", "OPTIONS, POST")
		w.WriteHeader(http.StatusNoContent)
		return nil
	default:
		w.Header().Set("Allow", "OPTIONS, POST")
		return problem.New(http.StatusMethodNotAllowed, "MethodNotAllowed", "A batch does not accept %s. Allowed: POST", r.Method)
	}
	rq := &request{Request: r, caller: caller}
	if err := a.readHead(rq); err != nil {
		return err
	}
	for _, h := range a.headers {
		if r.Header.Get(h.Name) != "" && !slices.Contains(ofBatches, h.Name) {
			p := problem.BadRequest("InvalidHeaderValue", "%s: applies to a single change; set it in the headers of the change", h.Name)
			p.Fields = []string{h.Name}
			return p
		}
	}
	query, err := parseQuery(r)
	if err != nil {
		return err
	}
	rq.ignored = unknownParameters(query, nil)
	if err := CheckContentType(r, "application/json"); err != nil {
		return err
	}
	if rq.members, rq.raw, err = ReadBody(w, r, batchBody); err != nil {
		return err
	}
	for name := range rq.members {
		if name != "changes" {
			rq.ignored = append(rq.ignored, name)
		}
	}
	raw, ok := rq.members["changes"]
	if !ok {
		return problem.Missing("changes")
	}
	texts, err := listOf("changes", raw)
	if err != nil {
		return err
	}
	done, err := a.waitForBatch(r.Context(), caller)
	if err != nil {
		return err
	}
	defer done()
	makes := make([]bool, len(texts))
	for i, raw := range texts {
		var text struct {
			Method string `json:"method"`
		}
		// A faulty change causes no further errors in changes that refer to it.
		makes[i] = json.Unmarshal(raw, &text) != nil || text.Method == http.MethodPost || !slices.Contains(changes, text.Method)
	}
	parts, err := a.parts(rq, texts, func(at string, raw json.RawMessage, i int) (*part, error) {
		return a.partOf(rq, at, raw, func(ref int) bool { return ref >= 0 && ref < i && makes[ref] })
	})
	if err != nil {
		return err
	}
	return a.writeParts(w, rq, parts, done, http.StatusOK, func(tx *store.Tx, answers []partAnswer) (any, error) {
		answer := struct {
			Count       int          `json:"count"`
			Transaction *int64       `json:"transaction"`
			Results     []partAnswer `json:"results"`
		}{len(answers), nil, answers}
		tally, err := tx.Tally()
		if err == nil && tally != (store.Tally{}) {
			var number int64
			number, err = tx.Number()
			answer.Transaction = &number
		}
		return answer, err
	})
}

// createList serves POST of a list of resources to a path that creates one resource: all are created, or none. rq has the list as its body.
func (a *Server) createList(w http.ResponseWriter, rq *request) error {
	done, err := a.waitForBatch(rq.Context(), rq.caller)
	if err != nil {
		return err
	}
	defer done()
	if int64(len(rq.raw)) > batchBody.Bytes {
		return problem.New(http.StatusRequestEntityTooLarge, "RequestTooLarge", "the list is larger than %s", size(batchBody.Bytes))
	}
	if !json.Valid(rq.raw) {
		return problem.BadRequest("InvalidRequestBody", "the body is not JSON")
	}
	whole, err := schema.ParseObject(slices.Concat([]byte(`{"":`), rq.raw, []byte("}")), StandardBody.Members)
	if err != nil {
		return err
	}
	texts, err := listOf("", whole[""])
	if err != nil {
		return err
	}
	parts, err := a.parts(rq, texts, func(at string, raw json.RawMessage, i int) (*part, error) {
		header := rq.Header.Clone()
		header.Del("Idempotency-Key")
		header.Del(dryRunHeader)
		return a.newPart(rq, at, http.MethodPost, rq.URL, header, raw, func(ref int) bool { return ref >= 0 && ref < i })
	})
	if err != nil {
		return err
	}
	return a.writeParts(w, rq, parts, done, http.StatusCreated, func(_ *store.Tx, answers []partAnswer) (any, error) {
		answer := struct {
			Data  []json.RawMessage `json:"data"`
			Count int               `json:"count"`
		}{make([]json.RawMessage, len(answers)), len(answers)}
		for i, one := range answers {
			answer.Data[i] = one.Body
			for _, name := range one.Ignored {
				if !slices.Contains(rq.ignored, name) {
					rq.ignored = append(rq.ignored, name)
				}
			}
		}
		return answer, nil
	})
}

// listOf decodes the elements of a list.
func listOf(field string, raw json.RawMessage) (list []json.RawMessage, err error) {
	name := field
	if name == "" {
		name = "the body"
	}
	if json.Unmarshal(raw, &list) != nil || list == nil || len(list) == 0 || len(list) > maxChanges {
		p := problem.BadRequest("InvalidRequestBody", "%s: must be a list of 1 to %d entries", name, maxChanges)
		if field != "" {
			p.Fields = []string{field}
		}
		return nil, p
	}
	return list, nil
}

// writeParts applies all changes, ends the turn, and sends the answer that word returns.
func (a *Server) writeParts(w http.ResponseWriter, rq *request, parts []*part, done func(), status int,
	word func(tx *store.Tx, answers []partAnswer) (any, error)) error {
	dry := dryRun(rq.Request)
	switch {
	case dry: // a dry run has no answer to store
		rq.key = ""
	case rq.key != "" && slices.ContainsFunc(parts, func(p *part) bool {
		return p.rq.Collection != nil && (p.rq.Collection.Secret || a.showsSecrets(p.rq.Target))
	}):
		rq.key, rq.ignored = "", append(rq.ignored, "Idempotency-Key")
	}
	var ans answer
	replayed := false
	depends := a.scopeOf(parts)
	tooMany := problem.BadRequest("NoSpaceForAddress", "the change requires more than %d probes of addresses; send fewer changes at once",
		maxBatchProbes)
	err := a.RetryWithWork(rq.Context(), maxBatchProbes, tooMany,
		func(o resource.Outside) error {
			rq.prefetched = o
			return a.change(rq, dry, depends, &ans, func(tx *store.Tx) (answer, error) {
				replay, there, err := a.replay(tx, rq)
				if replayed = there; there || err != nil {
					return replay, err
				}
				return a.performParts(tx, rq, parts, word)
			})
		})
	done()
	listIgnored(w, rq.ignored)
	switch {
	case dry && err == nil:
		status = http.StatusOK
		a.Batched(len(parts), "tried")
	case err != nil:
		if _, ok := problem.As(err); ok { // not a database error or a cancelled request
			a.Batched(len(parts), "refused")
		}
		return err
	case !replayed:
		a.Batched(len(parts), "made")
	}
	media := rq.media
	if dry {
		media = asJSON
	}
	setRecordedHeader(w, rq.caller, ans)
	send(w, rq.Request, status, media, ans.body)
	return nil
}

// scopeOf returns the scope of all changes: their common scope or, if they differ, everything.
func (a *Server) scopeOf(parts []*part) (all store.Scope) {
	for i, p := range parts {
		if p.path != nil || p.rq.Any {
			return store.Scope{}
		}
		one := a.ScopeOf(p.rq.Target, p.rq.Method == http.MethodPost, &resource.Change{Sent: p.rq.members, Options: p.rq.options})
		if i > 0 && one != all {
			return store.Scope{}
		}
		all = one
	}
	return all
}

// batchSummary returns a summary of count changes, starting with the summary of the first.
func batchSummary(first string, count int) string {
	switch count {
	case 0:
		return "Changed nothing"
	case 1:
		return first
	case 2:
		return first + ", and another change"
	}
	return fmt.Sprintf("%s, and %d more changes", first, count-1)
}

// performParts applies the changes one after the other. After a refused change it still tries the following ones, except those that refer
// to a refused one, to report all errors; the returned problem rolls everything back.
func (a *Server) performParts(tx *store.Tx, rq *request, parts []*part, word func(*store.Tx, []partAnswer) (any, error)) (ans answer,
	err error) {
	answers, made, size := make([]partAnswer, len(parts)), make([]int64, len(parts)), 0
	var faults []*problem.Problem
	firstSummary, described := "", 0 // the summary of the first change that has one
	for i, p := range parts {
		if err := rq.Context().Err(); err != nil {
			return ans, err
		}
		if slices.ContainsFunc(p.refs, func(ref int) bool { return answers[ref].Status == 0 }) {
			continue // it refers to a change that was refused or skipped
		}
		before := tx.Writes()
		if len(parts) > 1 {
			tx.Rename("", "")
		}
		one, err := a.performPart(tx, rq, p, made)
		if summary := tx.Summary(); summary != "" && len(parts) > 1 {
			if described++; described == 1 {
				firstSummary = summary
			}
		}
		if fault, ok := problem.As(atPosition(p.position, err)); ok {
			// The writes of the refused change would cause errors in other changes.
			if faults = append(faults, fault); len(faults) == maxFaults || tx.Writes() != before {
				break
			}
			continue
		}
		var question resource.NeedsAnswer
		var work resource.NeedsWork
		outside := errors.As(err, &question) || errors.As(err, &work)
		if len(faults) > 0 && (outside || errors.Is(err, store.ErrTrialEnded) || store.Duplicate(err)) {
			break // the known errors are sufficient
		}
		if err != nil {
			return ans, atPosition(p.position, conflictProblem(err))
		}
		if size += len(one.body); size > maxAnswer && len(faults) > 0 {
			break
		} else if size > maxAnswer {
			return ans, problem.New(http.StatusRequestEntityTooLarge, "RequestTooLarge",
				"%s: the answers are larger than %d MiB; select fewer fields, such as ?fields=id in the path", p.position, maxAnswer>>20)
		}
		made[i] = one.createdID
		answers[i] = partAnswer{Status: one.status, Location: one.location, ETag: one.etag, Body: one.body,
			Ignored: slices.Concat(p.rq.ignored, p.rq.unknown)}
	}
	if len(faults) > 0 {
		return ans, problem.Join(faults)
	}
	if len(parts) > 1 {
		tx.Rename("BATCH", batchSummary(firstSummary, described))
	}
	text, err := word(tx, answers)
	if err != nil {
		return ans, err
	}
	if ans.body, err = json.Marshal(text); err != nil {
		return ans, err
	}
	return ans, a.storeAnswer(tx, rq, ans)
}
