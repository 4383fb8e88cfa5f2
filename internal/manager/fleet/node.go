package fleet

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"

	"github.com/google/uuid"
)

// MaxNodeCount is the maximum number of nodes of a service point.
const MaxNodeCount = 8

// nodeID identifies a node of a service point: node is its number, from 1 on.
type nodeID struct {
	id   string
	node int64
}

func (s nodeID) String() string { return fmt.Sprintf("%s-node-%d", s.id, s.node) }

// node is a row of the table of nodes. Only service points that may have several nodes have rows there.
type node struct {
	number, generation, acknowledged, lastSeen, sequence int64
	connected                                            bool
	public, digest, body                                 string
	// report is the decoded body; nil before the first report.
	report *checkin.Report
}

// readNodes returns the nodes of a service point in the order of their numbers, without removed nodes. A service point that never could
// have several nodes has none.
func readNodes(tx *store.Tx, id string) (all []node, err error) {
	return all, tx.Each(func(scan func(...any) error) error {
		var n node
		var connected int64
		if err := scan(&n.number, &n.public, &n.generation, &n.acknowledged, &n.lastSeen, &connected, &n.sequence, &n.digest,
			&n.body); err != nil {
			return err
		}
		n.connected = connected == 1
		if n.body != "" {
			if err := json.Unmarshal([]byte(n.body), &n.report); err != nil {
				return err
			}
		}
		all = append(all, n)
		return nil
	}, "SELECT number, key_public, generation, acknowledged, last_seen, connected, sequence, digest, body FROM node WHERE service_point = ? "+
		"AND key_public <> '' ORDER BY number", id)
}

// acknowledgedBy returns the generation of the desired state that all connected nodes have stored.
func acknowledgedBy(all []node) (generation int64) {
	first := true
	for _, n := range all {
		if n.connected && (first || n.acknowledged < generation) {
			generation, first = n.acknowledged, false
		}
	}
	return generation
}

// updateTurn returns the number of the node to be updated to a release now. Nodes are updated one after another, so that the others serve.
// It returns 0 if all connected nodes have the release or no node is connected.
func updateTurn(all []node, target string) int64 {
	if target == "" {
		return 0
	}
	for _, n := range all {
		if n.connected && n.report != nil && n.report.Update != nil && n.report.Update.Status == checkin.UpdateRunning {
			return n.number // even if a node with a lower number has reconnected
		}
	}
	for _, n := range all {
		if n.connected && (n.report == nil || n.report.Version != target || n.report.Update != nil) {
			return n.number
		}
	}
	return 0
}

// mayUpdate reports whether a node may install a release now: it is its turn, no node has the turn, or the node has the release already.
func mayUpdate(all []node, number int64, target string) bool {
	now := updateTurn(all, target)
	has := slices.ContainsFunc(all, func(n node) bool { return n.number == number && n.report != nil && n.report.Version == target })
	return now == 0 || now == number || has
}

// severalColumn returns the value of the column several for a number of nodes. The column keeps the value 1 if the number drops to one
// later.
func severalColumn(count int64) int64 {
	if count > 1 {
		return 1
	}
	return 0
}

// updateNodes changes nodes of a service point with fn, then recomputes the report of the service point and applies it. If another node has
// its turn to be updated after that, the desired state gets a new generation. The service point is locked.
func (s *Service) updateNodes(tx *store.Tx, id string, fn func() error) error {
	var target string
	if err := tx.QueryRow("SELECT target_version FROM service_point WHERE id = ?", id).Scan(&target); err != nil {
		return err
	}
	all, err := readNodes(tx, id)
	if err != nil {
		return err
	}
	before := updateTurn(all, target)
	if err := fn(); err != nil {
		return err
	}
	is, err := s.lockState(tx, id)
	if err != nil {
		return err
	}
	if all, err = readNodes(tx, id); err != nil {
		return err
	}
	now := *is
	if r := mergeReports(all, is.nodeCount, is.update.target); r != nil {
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		now.acknowledged = max(is.acknowledged, acknowledgedBy(all))
		now.sequence, now.digest, now.body = 0, "", string(text)
		if err := s.applyReport(tx, &now, r); err != nil {
			return err
		}
	}
	if updateTurn(all, now.update.target) != before {
		s.renewDesired(tx, &now)
	}
	return s.writeState(tx, is, &now)
}

// AddNode raises the number of nodes of a service point by one and returns a registration key for the new node.
func (s *Service) AddNode(ctx context.Context, id, endpoint string) (c Created, err error) {
	key, err := s.newKey(Wanted{})
	if err != nil {
		return c, err
	}
	c = Created{FleetInstanceID: id, RegistrationKey: key.String(), RegistrationEndpoint: endpoint}
	err = s.change(ctx, func(tx *store.Tx) error {
		if err := lockPoint(tx, id); err != nil {
			return err
		}
		var count int64
		if err := tx.QueryRow("SELECT node_count FROM service_point WHERE id = ?", id).Scan(&count); err != nil {
			return err
		}
		if err := s.changeNodeCount(tx, id, count+1); err != nil {
			return err
		}
		if err := s.replaceKey(tx, id, hashKey(key), s.now().Add(KeyLife).Unix()); err != nil {
			return err
		}
		return addPointHistory(tx, id, "UPDATE_SERVICE_POINT", "Service point %s: allowed another node, up to %d", count+1)
	})
	if err == nil {
		s.Wake(id)
	}
	return c, err
}

// replaceKey replaces the registration key of a service point. Its certificates stay valid. A key with expires 0 is unusable.
func (s *Service) replaceKey(tx *store.Tx, id, hash string, expires int64) error {
	if err := s.markSpent(tx, id); err != nil {
		return err
	}
	return tx.Write("UPDATE service_point SET key_hash = ?, key_expires = ? WHERE id = ?", hash, expires, id)
}

// RemoveNode removes a node and lowers the number of nodes of the service point by one. The node's certificate is rejected from then on.
// The registration key becomes unusable, because the machine may still have it.
func (s *Service) RemoveNode(ctx context.Context, id, name string) error {
	err := s.change(ctx, func(tx *store.Tx) error {
		if err := lockPoint(tx, id); err != nil {
			return err
		}
		all, err := readNodes(tx, id)
		if err != nil {
			return err
		}
		names := make([]string, len(all))
		for i, n := range all {
			names[i] = nodeID{id, n.number}.String()
		}
		i := slices.Index(names, name)
		switch {
		case i < 0 && len(all) == 0:
			return problem.NotFound("service point %q has no node %q to remove: it has one node", id, name)
		case i < 0:
			return problem.NotFound("service point %q has no node %q; there are %s", id, name, strings.Join(names, ", "))
		case len(all) == 1:
			return problem.Conflict("LastNode", "%s is the only node: use portolan fleet rekey to replace its machine", name)
		}
		if err := s.replaceKey(tx, id, "-"+uuid.NewString(), 0); err != nil {
			return err
		}
		if err := addPointHistory(tx, id, "UPDATE_SERVICE_POINT", "Service point %s: removed node %s", name); err != nil {
			return err
		}
		return s.updateNodes(tx, id, func() error {
			tx.Touch(store.Detail(topic, id))
			// The row stays, because it stores which certificates are invalid.
			floor := max(all[i].generation+1, s.now().Add(endsBefore).UnixMilli())
			return errors.Join(tx.Write("DELETE FROM lineage WHERE service_point = ? AND node = ?", id, all[i].number),
				tx.Write("UPDATE node SET key_public = '', generation = ?, acknowledged = 0, last_seen = 0, connected = 0, "+
					"sequence = 0, digest = '', body = '' WHERE service_point = ? AND number = ?", floor, id, all[i].number),
				s.setCount(tx, id, func(count int64) int64 { return max(count-1, int64(len(all))-1) }))
		})
	})
	if err == nil {
		s.Wake(id)
	}
	return err
}

// setCount changes the number of nodes that a service point may have.
func (s *Service) setCount(tx *store.Tx, id string, to func(int64) int64) error {
	var before int64
	if err := tx.QueryRow("SELECT node_count FROM service_point WHERE id = ?", id).Scan(&before); err != nil {
		return err
	}
	count := to(before)
	if count == before {
		return nil
	}
	if err := s.recordChange(tx, id, fieldNodeCount, strconv.FormatInt(before, 10), strconv.FormatInt(count, 10)); err != nil {
		return err
	}
	return tx.Write("UPDATE service_point SET node_count = ?, several = CASE WHEN several = 1 OR ? > 1 THEN 1 ELSE 0 END WHERE id = ?", count,
		count, id)
}

// changeNodeCount sets the number of nodes that a service point may have.
func (s *Service) changeNodeCount(tx *store.Tx, id string, count int64) error {
	if count < 1 || count > MaxNodeCount {
		return problem.Invalid("nodeCount", "must be 1 to %d", MaxNodeCount)
	}
	var several int64
	var public, variant string
	if err := tx.QueryRow("SELECT several, key_public, variant FROM service_point WHERE id = ?", id).Scan(&several, &public,
		&variant); err != nil {
		return err
	}
	if count > 1 && variant == checkin.V4 {
		return problem.Invalid("nodeCount", "a Service Point v4 has one node")
	}
	all, err := readNodes(tx, id)
	if err != nil {
		return err
	}
	if n := len(all); int64(n) > count {
		return problem.Conflict("NodesInUse", "nodeCount: %d nodes exist, such as %s: remove one first", n,
			nodeID{id, all[n-1].number})
	}
	return s.updateNodes(tx, id, func() error {
		tx.Touch(store.Detail(topic, id))
		if err := s.setCount(tx, id, func(int64) int64 { return count }); err != nil || several == 1 || count == 1 || public == "" {
			return err
		}
		// The state of the only node becomes that of node 1. Its presence may not be written yet.
		return tx.Write("INSERT INTO node (service_point, number, key_public, generation, acknowledged, last_seen, connected, sequence, "+
			"digest, body) SELECT s.id, 1, s.key_public, s.generation, s.acknowledged, coalesce(p.last_seen, ?), coalesce(p.connected, 1), "+
			"coalesce(r.sequence, 0), coalesce(r.digest, ''), coalesce(r.body, '') FROM service_point s "+
			"LEFT JOIN presence p ON p.service_point = s.id LEFT JOIN report r ON r.service_point = s.id WHERE s.id = ?",
			s.now().UnixMilli(), id)
	})
}

// assignNode returns the node for a machine that enrols with the public key public, and the generation of its certificate. This is the node
// of an earlier enrolment with the same key whose answer was lost, or a free one. Earlier generations are invalid for the node.
func (s *Service) assignNode(tx *store.Tx, known enrolment, public string) (at nodeID, generation int64, err error) {
	all, err := readNodes(tx, known.id)
	if err != nil {
		return at, 0, err
	}
	at = nodeID{known.id, 1}
	for _, n := range all {
		if n.public == public {
			if n.report != nil {
				return at, 0, refuse("RegistrationKeyUsed", "this machine has already used the registration key")
			}
			at.node = n.number
			return at, s.nextGeneration(max(known.generation, n.generation)), nil
		}
		if n.number == at.node {
			at.node++
		}
	}
	if int64(len(all)) >= known.nodes {
		return at, 0, refuse("RegistrationKeyUsed", fmt.Sprintf("the registration key has already been used by all nodes that the service "+
			"point may have (%d); allow another node with portolan fleet node add", known.nodes))
	}
	var floor int64
	err = tx.QueryRow("SELECT coalesce(max(generation), 0) FROM node WHERE service_point = ? AND number = ?", at.id, at.node).Scan(&floor)
	return at, s.nextGeneration(max(known.generation, floor)), err
}

// writeEnrolledNode writes that a machine enrols as a node with a certificate of a generation. Earlier generations become invalid.
func writeEnrolledNode(tx *store.Tx, at nodeID, public string, generation int64) error {
	return tx.Write("INSERT INTO node (service_point, number, key_public, generation) VALUES (?,?,?,?) ON CONFLICT (service_point, number) "+
		"DO UPDATE SET key_public = excluded.key_public, generation = excluded.generation", at.id, at.node, public, generation)
}

// writeNodes writes the last contacts of nodes: those of connected nodes in chunks, those of reconnecting nodes one by one.
func (s *Service) writeNodes(ctx context.Context, at map[nodeID]time.Time) error {
	due := slices.SortedFunc(maps.Keys(at), func(a, b nodeID) int { return cmp.Or(strings.Compare(a.id, b.id), cmp.Compare(a.node, b.node)) })
	for part := range slices.Chunk(due, chunkSize) {
		var back []nodeID
		if err := s.change(ctx, func(tx *store.Tx) error {
			back = back[:0]
			for _, one := range part {
				n, err := tx.Exec("UPDATE node SET last_seen = ? WHERE service_point = ? AND number = ? AND connected = 1 AND key_public <> ''",
					s.now().Add(-time.Since(at[one])).UnixMilli(), one.id, one.node)
				if err != nil {
					return err
				}
				if n == 0 {
					back = append(back, one)
				}
			}
			return nil
		}); err != nil {
			return err
		}
		for _, one := range back {
			if err := s.change(ctx, func(tx *store.Tx) error { return s.markNodeConnected(tx, one, at[one]) }); err != nil {
				return err
			}
		}
		s.mu.Lock()
		for _, one := range part {
			if h, ok := s.nodeContacts[one]; ok {
				h.written = at[one]
				s.nodeContacts[one] = h
			}
		}
		s.mu.Unlock()
	}
	return nil
}

// markNodeConnected marks a node as connected, unless it was removed.
func (s *Service) markNodeConnected(tx *store.Tx, one nodeID, heard time.Time) error {
	var connected int64
	err := lockPoint(tx, one.id)
	if err == nil {
		err = tx.QueryRow("SELECT connected FROM node WHERE service_point = ? AND number = ? AND key_public <> ''", one.id, one.node).
			Scan(&connected)
	}
	if _, gone := problem.As(err); gone || errors.Is(err, sql.ErrNoRows) || err == nil && connected == 1 {
		return nil
	}
	if err != nil {
		return err
	}
	return s.updateNodes(tx, one.id, func() error {
		return errors.Join(tx.Write("UPDATE node SET last_seen = ?, connected = 1 WHERE service_point = ? AND number = ?",
			s.now().Add(-time.Since(heard)).UnixMilli(), one.id, one.node),
			s.recordChange(tx, one.id, fieldNode, NotConnected, Connected, one.String()))
	})
}

// markNodeStopped records that a node has stopped. It reports whether another node is connected.
func (s *Service) markNodeStopped(tx *store.Tx, at nodeID) (others bool, err error) {
	if err := lockPoint(tx, at.id); err != nil {
		return false, err
	}
	all, err := readNodes(tx, at.id)
	if err != nil {
		return false, err
	}
	was := false
	for _, n := range all {
		if n.number == at.node {
			was = n.connected
		} else {
			others = others || n.connected
		}
	}
	if !was {
		return others, nil
	}
	return others, s.updateNodes(tx, at.id, func() error {
		return errors.Join(tx.Write("UPDATE node SET connected = 0, last_seen = ? WHERE service_point = ? AND number = ?", s.now().UnixMilli(),
			at.id, at.node), s.recordChange(tx, at.id, fieldNode, Connected, NotConnected, at.String(), "the node shut down"))
	})
}

// markSilentNodes sets nodes to NOT_CONNECTED that no manager has heard from for three intervals.
func (s *Service) markSilentNodes(ctx context.Context, update store.Updater) error {
	before := s.now().Add(-s.silence()).UnixMilli()
	return s.each(ctx, update, "SELECT DISTINCT service_point FROM node WHERE connected = 1 AND last_seen < ? "+
		"ORDER BY service_point", []any{before},
		func(tx *store.Tx, id string) error {
			err := lockPoint(tx, id)
			if _, gone := problem.As(err); gone { // deleted in the meantime
				return nil
			}
			if err != nil {
				return err
			}
			all, err := readNodes(tx, id)
			if err != nil {
				return err
			}
			for _, n := range all {
				at := nodeID{id, n.number}
				if !n.connected || n.lastSeen >= before || s.hasRecentNodeContact(at) {
					continue
				}
				s.log.WarnContext(ctx, "node disconnected", "node", at.String(), "silentFor", s.silence().String())
				if err := s.updateNodes(tx, id, func() error {
					return errors.Join(tx.Write("UPDATE node SET connected = 0 WHERE service_point = ? AND number = ?", id, n.number),
						s.recordChange(tx, id, fieldNode, Connected, NotConnected, at.String()))
				}); err != nil {
					return err
				}
			}
			return nil
		})
}

// hasRecentNodeContact reports whether this manager has heard from a node recently enough to be CONNECTED.
func (s *Service) hasRecentNodeContact(at nodeID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.nodeContacts[at]
	return ok && time.Since(h.time) < s.silence()
}
