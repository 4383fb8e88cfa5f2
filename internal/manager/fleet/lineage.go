package fleet

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"
)

// lineage describes the processes that have checked in as one node of a service point. A copy of a state directory has the identity of the
// original: both machines show a valid certificate, and their processes check in alternately.
type lineage struct {
	// Processes are the latest ones; the one that checked in last is first.
	Processes []process `json:"processes"`
	// Next is the number of the latest process. Returns counts how often a process checked in again after another one, since the last new
	// process.
	Next    int64 `json:"next"`
	Returns int   `json:"returns"`
	// Accepted is the process that is answered after several machines were detected. Others are the addresses of the other machines.
	Accepted string   `json:"accepted,omitempty"`
	Others   []string `json:"others,omitempty"`
	// Refused is the time of the last refusal of another process, in Unix milliseconds.
	Refused int64 `json:"refused,omitempty"`
}

// process is a process of an agent.
type process struct {
	ID      string `json:"id"`
	Address string `json:"address"`
	Number  int64  `json:"number"`
	// Returned means that it has checked in again after another process.
	Returned bool `json:"returned,omitempty"`
}

// maxReturns is the number of returns that one machine can cause: a late check-in and the one after it make two. keptProcesses is the
// number of processes kept.
const (
	maxReturns    = 2
	keptProcesses = 8
)

// othersSilentAfter is the time without a check-in of another machine after which a lineage forgets the others. A refused agent asks every
// five minutes.
const othersSilentAfter = 20 * time.Minute

// othersAreSilent reports whether no other machine has checked in for othersSilentAfter, although it could: neither since the last refusal,
// in Unix milliseconds, nor since the manager started.
func othersAreSilent(refused int64, began, now time.Time) bool {
	last := time.UnixMilli(refused)
	if last.Before(began) {
		last = began
	}
	return now.Sub(last) > othersSilentAfter
}

// record records a check-in of a process at a manager that has run since began. changed reports whether the lineage changed, refused
// whether the process gets no answer.
func (l *lineage) record(p checkin.Process, began, now time.Time) (changed, refused bool) {
	if l.Accepted != "" {
		switch {
		case p.ID == l.Accepted:
		case p.Before != l.Accepted || slices.ContainsFunc(l.Processes, func(one process) bool { return one.ID == p.ID }):
			l.Refused = now.UnixMilli()
			return true, true
		default:
			l.Accepted, changed = p.ID, true // the accepted process was restarted
			l.add(p)
		}
		at := slices.IndexFunc(l.Processes, func(one process) bool { return one.ID == l.Accepted })
		if at >= 0 && othersAreSilent(l.Refused, began, now) { // the others have identities of their own, or are off
			*l = lineage{Processes: l.Processes[at : at+1], Next: l.Next}
			l.Processes[0].Returned, changed = false, true
		}
		return changed, false
	}
	at := slices.IndexFunc(l.Processes, func(one process) bool { return one.ID == p.ID })
	switch {
	case at == 0:
		return false, false
	case at < 0:
		l.add(p)
		l.Returns = 0
		for i := range l.Processes {
			l.Processes[i].Returned = false
		}
		return true, false
	}
	one := l.Processes[at]
	one.Address, one.Returned = p.Address, true
	l.Processes = slices.Insert(slices.Delete(l.Processes, at, at+1), 0, one)
	if l.Returns++; l.Returns <= maxReturns {
		return true, false
	}
	first := one
	for _, other := range l.Processes {
		if other.Returned && other.Number < first.Number {
			first = other
		}
	}
	l.Accepted, l.Refused = first.ID, now.UnixMilli()
	for _, other := range l.Processes {
		if other.Returned && other.ID != l.Accepted {
			l.Others = append(l.Others, other.Address)
		}
	}
	return true, p.ID != l.Accepted
}

// add puts a process first.
func (l *lineage) add(p checkin.Process) {
	l.Next++
	l.Processes = slices.Insert(l.Processes, 0, process{ID: p.ID, Address: p.Address, Number: l.Next})
	l.Processes = l.Processes[:min(len(l.Processes), keptProcesses)]
}

// latest returns the process that is answered: the accepted one, or the one that checked in last.
func (l *lineage) latest() string {
	if l.Accepted != "" || len(l.Processes) == 0 {
		return l.Accepted
	}
	return l.Processes[0].ID
}

// condition returns the error condition that several machines answer; it is empty if there is one machine.
func (l *lineage) condition() string {
	if l.Accepted == "" {
		return ""
	}
	address := ""
	for _, one := range l.Processes {
		if one.ID == l.Accepted {
			address = one.Address
		}
	}
	all := append([]string{address}, l.Others...)
	return fmt.Sprintf("%d machines connect as this service point, at %s: the one at %s is the original, the others are rejected; "+
		"portolan fleet rekey creates a key for one machine", len(all), strings.Join(all, " and "), address)
}

// errOtherMachine rejects a machine whose identity is used by another one.
var errOtherMachine = problem.New(http.StatusConflict, checkin.OtherMachine, "another machine connects as this service point. This one "+
	"has a copy of its state directory: enrol this one as a separate service point, or create a new registration key")

// lineages reads the lineages of the nodes of up to maxBatch service points.
func lineages(tx *store.Tx, ids []string) (all map[nodeID]*lineage, err error) {
	all = map[nodeID]*lineage{}
	return all, eachOf(tx, ids, func(scan func(...any) error) error {
		var at nodeID
		var body string
		if err := scan(&at.id, &at.node, &body); err != nil {
			return err
		}
		all[at] = &lineage{}
		return json.Unmarshal([]byte(body), all[at])
	}, "SELECT service_point, node, body FROM lineage WHERE service_point IN ", "")
}

// copiesBody is an SQL expression: the body of the lineage l if several machines were found, else an empty text.
const copiesBody = `CASE WHEN l.body LIKE '%"accepted":%' THEN l.body ELSE '' END`

// refusedIn returns the time of the last refusal, in Unix milliseconds, from the value of copiesBody; 0 if it is empty.
func refusedIn(body string) (int64, error) {
	if body == "" {
		return 0, nil
	}
	var l lineage
	err := json.Unmarshal([]byte(body), &l)
	return max(l.Refused, 1), err
}

// writeLineage writes the lineage of a node.
func writeLineage(tx *store.Tx, at nodeID, l *lineage) error {
	body, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return tx.Write("INSERT INTO lineage (service_point, node, process, body) VALUES (?,?,?,?) "+
		"ON CONFLICT (service_point, node) DO UPDATE SET process = excluded.process, body = excluded.body",
		at.id, at.node, l.latest(), string(body))
}

// updateLineage records the process of a check-in in the lineage l of its node; l is nil if there is none yet. If the number of machines
// changes, the digest is deleted, so that the agent reports again with or without the condition.
func (s *Service) updateLineage(tx *store.Tx, w *pendingReport, is *pointState, l *lineage) (refused, err error) {
	p := w.rq.Process
	if p == nil {
		return nil, nil
	}
	if l == nil {
		l = &lineage{}
	}
	at, several := w.known.at, 1+len(l.Others)
	changed, no := l.record(*p, time.UnixMilli(s.startedAt.Load()), tx.Now())
	if changed {
		if err := writeLineage(tx, at, l); err != nil {
			return nil, err
		}
	}
	if n := 1 + len(l.Others); n != several {
		is.digest, is.sequence = "", 0
		if err := errors.Join(s.recordChange(tx, at.id, fieldMachines, strconv.Itoa(several), strconv.Itoa(n),
			cmp.Or(l.condition(), "no other machine has asked for "+othersSilentAfter.String())),
			tx.Write("UPDATE report SET digest = '', sequence = 0 WHERE service_point = ?", at.id),
			tx.Write("UPDATE node SET digest = '', sequence = 0 WHERE service_point = ? AND number = ?", at.id, at.node)); err != nil {
			return nil, err
		}
		tx.Touch(store.Detail(topic, at.id))
	}
	if no {
		return errOtherMachine, nil
	}
	w.condition = l.condition()
	return nil, nil
}
