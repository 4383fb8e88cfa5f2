package identity

import (
	"time"

	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// minTimeout is the minimum session timeout.
const minTimeout = time.Minute

// signInPolicy holds the current settings for sessions and sign-ins.
type signInPolicy struct {
	// comments is true if every change requires a comment.
	comments bool
	// timeout is the time without a request after which a session ends.
	timeout time.Duration
	// throttle is the policy for failures of one account from one address.
	throttle throttlePolicy
}

// policyCache caches the signInPolicy.
type policyCache struct {
	known *store.Cache[struct{}, signInPolicy]
}

func newPolicyCache(s *store.Store) *policyCache {
	return &policyCache{known: store.NewCache[struct{}](s, store.CacheOptions[signInPolicy]{Topics: []string{"settings"}, Late: true, Max: 1})}
}

// get returns the current policy. The defaults apply if there are no settings.
func (m *policyCache) get(tx *store.Tx) (policy signInPolicy, err error) {
	if policy, ok := m.known.Get(tx, struct{}{}); ok {
		return policy, nil
	}
	policy = signInPolicy{timeout: SessionLife, throttle: pairPolicy}
	if err := tx.List(store.Query{From: store.Resources, Where: store.InCollection("settings")}, func(r *store.Resource) error {
		t := policyTypes[r.Type]
		if t == nil {
			return nil
		}
		o, err := t.Object(r)
		switch x := o.(type) {
		case *GlobalSettings:
			policy.comments, policy.timeout = x.MandatoryCommentsEnabled, schema.LengthOf(x.SessionTimeout)
		case *LoginPolicySettings:
			if x.Enabled {
				delay := schema.LengthOf(x.DelayDuration)
				policy.throttle = throttlePolicy{failures: int(x.FailureLimit), period: schema.LengthOf(x.FailureLimitPeriod),
					first: delay, max: delay}
			}
		}
		return err
	}); err != nil {
		return signInPolicy{}, err
	}
	m.known.Put(tx, struct{}{}, policy)
	return policy, nil
}

// policyTypes are the settings types that the policy is read from, by type name.
var policyTypes = map[string]*schema.Type{"GlobalSettings": schema.Declare(&GlobalSettings{}),
	"LoginPolicySettings": schema.Declare(&LoginPolicySettings{})}
