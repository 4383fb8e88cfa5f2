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

// A batch is many changes in one transaction: all of them are made, or none. Each is read as if it was sent alone, all of them
// before the transaction begins, and has the same rights, rules and headers. A change may name one before it that makes
// something: $3 in its path, or as the value of a member id of its body, is the id of what changes[3] makes.

// batchName is the name of what takes batches, below the API's path.
const batchName = "batch"

// Bounds of a batch.
const (
	// maxChanges is how many changes it may have, maxFaults how many faults are named that are found before it begins.
	maxChanges = 10_000
	maxFaults  = 100
	// maxFault is how much is said of one, in bytes.
	maxFault = 1_000
	// maxPrepared is how many of its changes may need work before they are made, such as hashing a password.
	maxPrepared = 16
	// maxAnswer bounds what the answers of its changes may take, in bytes.
	maxAnswer = 32 << 20
	// maxBatchProbes is how many addresses are asked for it whether they answer. All is done anew behind each.
	maxBatchProbes = 64
)

// batchBody bounds its body.
var batchBody = Bounds{Bytes: 4 << 20, Members: 300_000}

// batchesEach is how many batches of one caller may be under way at a time, batchesWaiting how many may wait. maxBatches is how many
// there may be of all callers: each has its body, its changes and its answer in memory.
const (
	batchesEach    = 1
	batchesWaiting = 8
	maxBatches     = 1
)

// takeBatch waits for the caller's turn, when the body is there; done ends it, at the latest before the answer is sent: no client may
// keep others waiting by being slow. It may be called again.
func (a *Server) takeBatch(ctx context.Context, caller resource.Caller) (done func(), err error) {
	_, leave, err := a.batches.take(ctx, caller.Owner())
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

// batch answers POST of a batch.
func (a *Server) batch(w http.ResponseWriter, r *http.Request, caller resource.Caller) error {
	switch r.Method {
	case http.MethodPost:
	case http.MethodOptions:
		w.Header().Set("Allow", "OPTIONS, POST")
		w.WriteHeader(http.StatusNoContent)
		return nil
	default:
		w.Header().Set("Allow", "OPTIONS, POST")
		return problem.New(http.StatusMethodNotAllowed, "MethodNotAllowed", "%s is not for a batch; POST is", r.Method)
	}
	rq := &request{Request: r, caller: caller}
	if err := a.readHead(rq); err != nil {
		return err
	}
	for _, h := range a.headers {
		if r.Header.Get(h.Name) != "" && !slices.Contains(ofBatches, h.Name) {
			p := problem.BadRequest("InvalidHeaderValue", "%s: is for one change: put it into its headers", h.Name)
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
	done, err := a.takeBatch(r.Context(), caller)
	if err != nil {
		return err
	}
	defer done()
	makes := make([]bool, len(texts))
	for i, raw := range texts {
		var text struct {
			Method string `json:"method"`
		}
		// One that is wrong itself is not held against those that name it.
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

// listed answers POST of a list of resources where one is made: all are made, or none. rq has the list as its body.
func (a *Server) listed(w http.ResponseWriter, rq *request) error {
	done, err := a.takeBatch(rq.Context(), rq.caller)
	if err != nil {
		return err
	}
	defer done()
	if int64(len(rq.raw)) > batchBody.Bytes {
		return problem.New(http.StatusRequestEntityTooLarge, "RequestTooLarge", "a list may have %s", size(batchBody.Bytes))
	}
	if !json.Valid(rq.raw) {
		return problem.BadRequest("InvalidRequestBody", "the body is no JSON")
	}
	whole, err := schema.ParseObject(slices.Concat([]byte(`{"":`), rq.raw, []byte("}")), AnyBody.Members)
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

// listOf reads the elements of a list.
func listOf(field string, raw json.RawMessage) (list []json.RawMessage, err error) {
	name := field
	if name == "" {
		name = "the body"
	}
	if json.Unmarshal(raw, &list) != nil || list == nil || len(list) == 0 || len(list) > maxChanges {
		p := problem.BadRequest("InvalidRequestBody", "%s: a list of 1 to %d is expected", name, maxChanges)
		if field != "" {
			p.Fields = []string{field}
		}
		return nil, p
	}
	return list, nil
}

// writeParts makes all changes, ends the turn, and answers what is worded.
func (a *Server) writeParts(w http.ResponseWriter, rq *request, parts []*part, done func(), status int,
	word func(tx *store.Tx, answers []partAnswer) (any, error)) error {
	dry := dryRun(rq.Request)
	switch {
	case dry: // what is only tried is no answer to keep
		rq.key = ""
	case rq.key != "" && slices.ContainsFunc(parts, func(p *part) bool {
		return p.rq.Collection != nil && (p.rq.Collection.Secret || a.showsSecrets(p.rq.Target))
	}):
		rq.key, rq.ignored = "", append(rq.ignored, "Idempotency-Key")
	}
	var ans answer
	replayed := false
	depends := a.scopeOf(parts)
	err := a.WithOutside(rq.Context(), maxBatchProbes,
		"%d addresses were asked whether they answer, and more would have to be: send fewer changes at once", func(o resource.Outside) error {
			rq.outside = o
			return a.change(rq, dry, depends, &ans, func(tx *store.Tx) (answer, error) {
				replay, there, err := a.replay(tx, rq)
				if replayed = there; there || err != nil {
					return replay, err
				}
				return a.performParts(tx, rq, parts, word)
			})
		})
	done()
	note(w, rq.ignored)
	switch {
	case dry && err == nil:
		status = http.StatusOK
		a.Batched(len(parts), "tried")
	case err != nil:
		if _, ok := problem.As(err); ok { // and it did not end for want of a database, or of the client
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
	tellRecorded(w, rq.caller, ans)
	send(w, rq.Request, status, media, ans.body)
	return nil
}

// scopeOf gives what the changes depend on and change: of all what it is for each, where that is one; else everything.
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

// together describes so many changes by the sentence of the first of them.
func together(first string, count int) string {
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

// performParts makes the changes, one behind the other. Behind one that is refused the others are still tried, but for those that name
// one that was refused, to name the faults of all; the problem that is returned takes everything back.
func (a *Server) performParts(tx *store.Tx, rq *request, parts []*part, word func(*store.Tx, []partAnswer) (any, error)) (ans answer,
	err error) {
	answers, made, size := make([]partAnswer, len(parts)), make([]int64, len(parts)), 0
	var faults []*problem.Problem
	sentence, said := "", 0 // of the first change that says something: it says most of what all are
	for i, p := range parts {
		if err := rq.Context().Err(); err != nil {
			return ans, err
		}
		if slices.ContainsFunc(p.refs, func(ref int) bool { return answers[ref].Status == 0 }) {
			continue // it names one that was refused, or passed over like this one
		}
		before := tx.Writes()
		if len(parts) > 1 {
			tx.Rename("", "")
		}
		one, err := a.performPart(tx, rq, p, made)
		if says := tx.Summary(); says != "" && len(parts) > 1 {
			if said++; said == 1 {
				sentence = says
			}
		}
		if fault, ok := problem.As(placed(p.at, err)); ok {
			// What it had written by then would be in the way of others that are not at fault.
			if faults = append(faults, fault); len(faults) == maxFaults || tx.Writes() != before {
				break
			}
			continue
		}
		var probe resource.NeedsProbe
		var work resource.NeedsWork
		if len(faults) > 0 && (errors.Is(err, store.ErrTrialEnded) || store.Duplicate(err) || errors.As(err, &probe) || errors.As(err, &work)) {
			break // what is known is enough to refuse it
		}
		if err != nil {
			return ans, placed(p.at, wordConflict(err))
		}
		if size += len(one.body); size > maxAnswer && len(faults) > 0 {
			break
		} else if size > maxAnswer {
			return ans, problem.New(http.StatusRequestEntityTooLarge, "RequestTooLarge",
				"%s: the answers take more than %d MiB: ask for less of each, as by ?fields=id in its path", p.at, maxAnswer>>20)
		}
		made[i] = one.made
		answers[i] = partAnswer{Status: one.status, Location: one.location, ETag: one.etag, Body: one.body,
			Ignored: slices.Concat(p.rq.ignored, p.rq.unknown)}
	}
	if len(faults) > 0 {
		return ans, problem.Join(faults)
	}
	if len(parts) > 1 {
		tx.Rename("BATCH", together(sentence, said))
	}
	text, err := word(tx, answers)
	if err != nil {
		return ans, err
	}
	if ans.body, err = json.Marshal(text); err != nil {
		return ans, err
	}
	return ans, a.keep(tx, rq, ans)
}
