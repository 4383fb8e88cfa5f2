package figures

import (
	"context"
	"time"
)

// Store keeps figures: a Local or a Remote.
type Store interface {
	// Append stores samples of a time.
	Append(ctx context.Context, at time.Time, all []Sample) error
	// Query returns the lines of an object, in the order of the declared metrics.
	Query(ctx context.Context, q Query) ([]Line, error)
	// Trends returns the trends of a metric by object since a time.
	Trends(ctx context.Context, metric string, since time.Time) (map[string]Trend, error)
	// Maintain rolls samples up and deletes old ones. It must be called about every MaintainEvery.
	Maintain(ctx context.Context) error
	// Usage returns the sizes of the levels, and the numbers of stored and refused samples.
	Usage() (all []Usage, samples, refused int64)
	Close() error
}

// MaintainEvery is the interval of Maintain.
const MaintainEvery = 15 * time.Minute
