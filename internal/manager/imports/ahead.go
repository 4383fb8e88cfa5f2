package imports

import (
	"context"
	"slices"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// aheadReader reads and prepares rows while earlier rows are applied.
type aheadReader struct {
	rows chan aheadRow
	stop context.CancelFunc
}

// aheadRow is a row, or the error after the last one.
type aheadRow struct {
	one *row
	err error
}

// readAhead returns a reader of the rows of in. close must be called before the rows or their file are used otherwise.
func (j *job) readAhead(ctx context.Context, in rowReader) *aheadReader {
	ctx, stop := context.WithCancel(ctx)
	a := &aheadReader{make(chan aheadRow, maxStepRows), stop}
	go func() {
		defer close(a.rows)
		for {
			one, err := in.next()
			if err == nil {
				j.parse(one)
			}
			select {
			case a.rows <- aheadRow{one, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return a
}

func (a *aheadReader) next() (*row, error) {
	r, ok := <-a.rows
	if !ok {
		return nil, context.Canceled
	}
	return r.one, r.err
}

// close ends the reading and waits for its end.
func (a *aheadReader) close() {
	a.stop()
	for range a.rows { //nolint:revive // until the reader has ended
	}
}

// parse prepares the part of a row that does not depend on the database. A row with an error is left as it is: applying it reports the
// error.
func (j *job) parse(one *row) {
	if one.wrong != nil || one.lease != nil {
		return
	}
	p := &executor{job: j, Change: &resource.Change{API: j.api}}
	t, err := p.typeOf(one)
	if err != nil {
		return
	}
	sent, err := one.body(t)
	if err != nil {
		return
	}
	one.kind, one.sent = t, sent
	if o := t.New(); isSpanned(o) {
		if _, problems := t.Decode(o, sent, true); len(problems) == 0 {
			one.object = o
		}
	}
}

func isSpanned(o schema.Object) bool {
	_, ok := o.(schema.Spanned)
	return ok
}

// expect reads the existing resources of prepared rows at once, if all rows have the same parent.
func (p *executor) expect(rows []*row) error {
	at := p.at.list
	if at == nil || at.Sub == nil || len(rows) < 2 {
		return nil
	}
	above, err := p.Tx.Get(at.ID)
	if store.IsNotFound(err) { // each row reports it
		return nil
	}
	if err != nil {
		return err
	}
	var keys []string
	lows := map[string][][]byte{}
	for _, one := range rows {
		t := one.kind
		switch {
		case t == nil:
		case one.object != nil && isSpanned(one.object):
			spanned, _ := one.object.(schema.Spanned)
			if low, _ := spanned.Span(); low.IsValid() {
				lows[t.Collection] = append(lows[t.Collection], store.AddrKey(low))
			}
		case t.ByName["absoluteName"] != nil && t.Unique != "siblings" && t.Unique != "all":
			if one.object = named(t, above, one.sent); one.object != nil {
				keys = append(keys, t.KeyOf(one.object))
			}
		}
	}
	configuration := above.Configuration
	if at.Collection.Scope {
		configuration = at.ID
	}
	keys = slices.DeleteFunc(keys, func(key string) bool { return key == "" })
	if err := p.Tx.ExpectKeys(configuration, keys); err != nil {
		return err
	}
	for collection, found := range lows {
		if err := p.Tx.ExpectSpans(at.ID, collection, found); err != nil {
			return err
		}
	}
	return nil
}
