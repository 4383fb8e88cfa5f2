package rest

import (
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// Limits of an answer with embedded resources: the number of resources of one subcollection, the number in total, and the length of the
// answer in bytes.
const (
	maxEmbedded    = DefaultLimit
	maxAllEmbedded = 10_000
	maxEmbedBytes  = 32 << 20
)

// errEmbed returns the error for an answer beyond these limits.
func errEmbed() error {
	return problem.BadRequest("EmbedTooLarge",
		"fields: embed returns more than %d resources or %d MiB; embed less, or request smaller pages", maxAllEmbedded, maxEmbedBytes>>20)
}

// embed adds _embedded to the object at the end of b.
func (rd *renderer) embed(b []byte, r *store.Resource, embeds []*schema.Embedding, caller resource.Caller) ([]byte, error) {
	b = b[:len(b)-1]
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(b, `"_embedded":{`...)
	c := rd.api.Collection(r.Collection)
	first := true
	for _, e := range embeds {
		sub := c.Sub(e.Name)
		if sub == nil || sub.Relation == resource.Unbuilt {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = schema.AppendString(b, e.Name)
		b = append(b, ':')
		var err error
		if b, err = rd.embedOne(b, r, sub, e, caller); err != nil {
			return nil, err
		}
	}
	return append(b, '}', '}'), nil
}

// embedOne appends the resources of a subcollection as an array.
func (rd *renderer) embedOne(b []byte, r *store.Resource, sub *resource.Sub, e *schema.Embedding, caller resource.Caller) ([]byte, error) {
	q, err := rd.api.NarrowComputed(rd.tx, sub, r.ID, rd.api.SubQuery(sub, r.ID, caller))
	if err != nil {
		return nil, err
	}
	q.Limit = maxEmbedded
	var rows []*store.Resource
	if err := rd.tx.List(q, func(row *store.Resource) error {
		if rd.embedded++; rd.embedded > maxAllEmbedded {
			return errEmbed()
		}
		rows = append(rows, row.Clone())
		return nil
	}); err != nil {
		return nil, err
	}
	if err := rd.prepare(rows); err != nil {
		return nil, err
	}
	b = append(b, '[')
	for i, row := range rows {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = rd.append(b, row, nil); err != nil {
			return nil, err
		}
		if len(e.Inner) > 0 {
			if b, err = rd.embed(b, row, e.Inner, caller); err != nil {
				return nil, err
			}
		}
		if len(b) > maxEmbedBytes {
			return nil, errEmbed()
		}
	}
	return append(b, ']'), nil
}
