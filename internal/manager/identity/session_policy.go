package identity

import (
	"time"

	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// minTimeout is the shortest time without a request after which a session may end.
const minTimeout = time.Minute

// manner is what the settings say of how users are met.
type manner struct {
	// comments says whether every change needs one.
	comments bool
	// timeout is how long a session lasts without a request.
	timeout time.Duration
	// guesses is the patience with who guesses the password of one account from one address.
	guesses patience
}

// manners remembers what the settings say.
type manners struct {
	known *store.Cache[struct{}, manner]
}

func newManners(s *store.Store) *manners {
	return &manners{known: store.NewCache[struct{}](s, store.CacheOptions[manner]{Topics: []string{"settings"}, Late: true, Max: 1})}
}

// get gives what the settings say; without any, what they say in the beginning.
func (m *manners) get(tx *store.Tx) (said manner, err error) {
	if said, ok := m.known.Get(tx, struct{}{}); ok {
		return said, nil
	}
	said = manner{timeout: SessionLife, guesses: pairPatience}
	if err := tx.List(store.Query{From: store.Resources, Where: store.InCollection("settings")}, func(r *store.Resource) error {
		t := mannerTypes[r.Type]
		if t == nil {
			return nil
		}
		o, err := t.Object(r)
		switch x := o.(type) {
		case *GlobalSettings:
			said.comments, said.timeout = x.MandatoryCommentsEnabled, schema.LengthOf(x.SessionTimeout)
		case *LoginPolicySettings:
			if x.Enabled {
				delay := schema.LengthOf(x.DelayDuration)
				said.guesses = patience{failures: int(x.FailureLimit), within: schema.LengthOf(x.FailureLimitPeriod), first: delay, longest: delay}
			}
		}
		return err
	}); err != nil {
		return manner{}, err
	}
	m.known.Put(tx, struct{}{}, said)
	return said, nil
}

// mannerTypes are the settings that manners follow from, by the names of their types.
var mannerTypes = map[string]*schema.Type{"GlobalSettings": schema.Declare(&GlobalSettings{}),
	"LoginPolicySettings": schema.Declare(&LoginPolicySettings{})}
