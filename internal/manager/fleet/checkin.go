package fleet

import (
	"context"
	"crypto/x509"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"
)

// row is the state of a service point that a check-in needs.
type row struct {
	status                                      string
	desired, acknowledged, generation, sequence int64
	// digest is the digest of the stored report. reported means that there is a report.
	digest   string
	reported bool
	// process is the process that is answered (lineage.go); empty if none is known.
	process string
	// refused is the time of the last refusal of another machine with this identity, in Unix milliseconds; 0 if there is none.
	refused int64
	// logs means that a log excerpt is requested, mayHaveNodes that the service point may have several nodes.
	logs, mayHaveNodes bool
	at                 nodeID
}

// findByCertificate returns the service point of a client certificate. All certificates of the generation last used, or of a later one, are
// accepted. A restored database therefore accepts certificates that were issued after its backup.
func (s *Service) findByCertificate(tx *store.Tx, shown *x509.Certificate) (known row, err error) {
	at := nodeIDOf(shown)
	points, err := knownPoints(tx, []string{at.id})
	if err != nil {
		return known, err
	}
	return rowOfCertificate(tx, points, at, shown)
}

// rowOfCertificate returns the row of the service point, among points by id, that the certificate was issued to. at is the node in the
// certificate.
func rowOfCertificate(tx *store.Tx, points map[string]knownPoint, at nodeID, shown *x509.Certificate) (known row, err error) {
	p, there := points[at.id]
	known = p.row
	known.at = at
	if !there {
		return known, unknownError(tx, at.id)
	}
	if known.mayHaveNodes {
		floor, reported, copies := known.generation, 0, ""
		err = tx.QueryRow("SELECT n.acknowledged, n.generation, n.sequence, n.digest, CASE WHEN n.body = '' THEN 0 ELSE 1 END, "+
			"coalesce(l.process, ''), "+copiesBody+" FROM node n LEFT JOIN lineage l ON l.service_point = n.service_point AND l.node = n.number "+
			"WHERE n.service_point = ? AND n.number = ?", at.id, at.node).Scan(&known.acknowledged, &known.generation, &known.sequence,
			&known.digest, &reported, &known.process, &copies)
		if errors.Is(err, sql.ErrNoRows) {
			return known, errUnknown
		}
		if shows := generationOf(shown); err == nil && shows >= floor && shows < known.generation {
			return known, errNodeRemoved
		}
		known.generation, known.reported = max(known.generation, floor), reported == 1
		if err == nil {
			known.refused, err = refusedIn(copies)
		}
	}
	if err == nil && (generationOf(shown) < known.generation || !known.mayHaveNodes && at.node != 1) {
		return known, errUnknown
	}
	return known, err
}

// knownPoint is the state of a service point that checks in: its row and its desired state without the applications.
type knownPoint struct {
	row
	update checkin.Update
	// servers and anycast are the time servers and the anycast settings, in their stored form.
	servers, anycast string
}

// knownPoints reads up to maxBatch service points by their ids.
func knownPoints(tx *store.Tx, ids []string) (points map[string]knownPoint, err error) {
	points = make(map[string]knownPoint, len(ids))
	return points, eachOf(tx, ids, func(scan func(...any) error) error {
		var id string
		var p knownPoint
		var reported, logs, several int
		var copies string
		err := scan(&id, &p.status, &p.desired, &p.acknowledged, &p.generation, &p.sequence, &p.digest, &reported, &logs, &several,
			&p.update.Version, &p.update.Asked, &p.servers, &p.anycast, &p.process, &copies)
		if err == nil {
			p.refused, err = refusedIn(copies)
		}
		p.reported, p.logs, p.mayHaveNodes = reported == 1, logs == 1, several == 1
		points[id] = p
		return err
	}, "SELECT s.id, s.status, s.desired, s.acknowledged, s.generation, coalesce(r.sequence, 0), coalesce(r.digest, ''), "+
		"CASE WHEN r.body IS NULL THEN 0 ELSE 1 END, s.logs_asked, s.several, s.target_version, s.update_asked, s.ntp_servers, s.anycast, "+
		"coalesce(l.process, ''), "+copiesBody+" FROM service_point s LEFT JOIN report r ON r.service_point = s.id "+
		"LEFT JOIN lineage l ON l.service_point = s.id AND l.node = 1 WHERE s.id IN ", "")
}

// state returns the desired state without the applications and the update.
func (p *knownPoint) state() (*checkin.Desired, error) {
	d := &checkin.Desired{Generation: p.desired}
	var err error
	if d.Anycast, err = readAnycast(p.anycast); err == nil {
		err = json.Unmarshal([]byte(p.servers), &d.NTPServers)
	}
	return d, err
}

// eachOf calls fn for the rows of a query: begins, a list of up to maxBatch ids, and ends are its text.
func eachOf(tx *store.Tx, ids []string, fn func(scan func(...any) error) error, begins, ends string) error {
	args := toArgs(ids)
	for len(args) > 1 && len(args) < maxBatch { // pad the list, so that there are only two statement texts
		args = append(args, ids[0])
	}
	return tx.Each(fn, begins+"("+placeholders(len(args))+")"+ends, args...)
}

// CheckIn processes a service point's report. It answers at once if there is news for the service point, or if the request does not wait.
// Otherwise it calls park and returns parked true. The Reply that park returned is then called once with the answer, later and by another
// goroutine; no goroutine waits meanwhile.
func (s *Service) CheckIn(ctx context.Context, shown *x509.Certificate, rq checkin.Request, park func() (Reply, error)) (a checkin.Answer,
	parked bool, err error) {
	if len(rq.Digest) > maxDigest || strings.ContainsRune(rq.Digest, 0) {
		return a, false, problem.Invalid("digest", "has more than %d bytes, or a NUL", maxDigest)
	}
	if p := rq.Process; p != nil && (p.ID == "" || len(p.ID) > maxProcess || len(p.Before) > maxProcess || len(p.Address) > maxText ||
		strings.ContainsRune(p.ID+p.Before+p.Address, 0)) {
		return a, false, problem.Invalid("process", "has an id of more than %d bytes, or none, an address of more than %d, or a NUL", maxProcess,
			maxText)
	}
	id := shown.Subject.CommonName
	h := s.openWaiters(id)
	defer func() {
		if !parked {
			s.releaseWaiters(id, h)
		}
	}()
	changed := s.wakeChannel(h)
	known, err := s.recordRequest(ctx, shown, rq)
	if err != nil {
		return a, false, err
	}
	rq.Report = nil // it is stored, and need not be kept in memory while the request waits
	if rq.Leaving {
		if known.isOtherProcess(rq) { // another process is answered instead, so this stop does not count
			return s.answer(shown, known, rq), false, nil
		}
		return s.answer(shown, known, rq), false, s.markStopped(ctx, known)
	}
	s.recordContact(known)
	w := &waitingCheckIn{service: s, shown: shown, rq: rq, known: known, waiters: h, changed: changed}
	if rq.WaitSeconds > 0 {
		w.until = time.Now().Add(min(time.Duration(rq.WaitSeconds)*time.Second, s.interval))
	}
	a, due := w.pendingAnswer()
	if !due {
		w.reply, err = park()
		if err == nil {
			w.wait()
		}
		return a, err == nil, err
	}
	return a, false, w.fill(ctx, &a)
}

// recordRequest stores the content of a check-in and returns the state of the service point after it. The certificate is checked first, or
// in the writing transaction if the request has a report.
func (s *Service) recordRequest(ctx context.Context, shown *x509.Certificate, rq checkin.Request) (known row, err error) {
	if rq.Report == nil {
		known, err = s.authenticate(ctx, shown)
		writes := generationOf(shown) > known.generation || acknowledges(rq, known) ||
			!rq.Leaving && (known.isOtherProcess(rq) || s.endsCopies(known, rq))
		if err != nil || !writes {
			return known, err
		}
	} else if err = s.checkExpiry(shown); err != nil {
		return known, err
	}
	known.at = nodeIDOf(shown)
	return known, s.writeReport(ctx, generationOf(shown), &known, rq)
}

// isOtherProcess reports whether a request comes from a process other than the one that is answered.
func (r row) isOtherProcess(rq checkin.Request) bool {
	return rq.Process != nil && rq.Process.ID != r.process
}

// endsCopies reports whether a request ends the conflict of several machines with one identity, because the others have stopped asking.
func (s *Service) endsCopies(r row, rq checkin.Request) bool {
	return rq.Process != nil && r.refused != 0 && othersAreSilent(r.refused, time.UnixMilli(s.startedAt.Load()), s.now())
}

// acknowledges reports whether a request confirms that the service point has stored a later desired state than known. Requests without a
// sequence number come from agents that run nothing and only repeat the generation they were sent.
func acknowledges(rq checkin.Request, known row) bool {
	return rq.Sequence > 0 && rq.Desired > known.acknowledged && rq.Desired <= known.desired
}

// VerifyCertificate checks a client certificate. It returns an error if the certificate does not belong to a service point, or no longer
// does.
func (s *Service) VerifyCertificate(ctx context.Context, shown *x509.Certificate) error {
	_, err := s.authenticate(ctx, shown)
	return err
}

// authenticate checks a client certificate and returns the state that a check-in needs.
func (s *Service) authenticate(ctx context.Context, shown *x509.Certificate) (known row, err error) {
	err = s.store.Read(ctx, func(tx *store.Tx) error {
		known, err = s.findByCertificate(tx, shown)
		return err
	})
	if err == nil {
		err = s.checkExpiry(shown)
	}
	return known, err
}

// checkExpiry returns an error if a certificate has expired.
func (s *Service) checkExpiry(shown *x509.Certificate) error {
	if s.now().Before(shown.NotAfter) {
		return nil
	}
	return errCertificateExpired
}

func (s *Service) answer(shown *x509.Certificate, known row, rq checkin.Request) checkin.Answer {
	return checkin.Answer{Desired: known.desired, IntervalSeconds: max(1, int(s.interval.Seconds())),
		TimeMillis: s.now().UnixMilli(), Sequence: known.sequence,
		SpreadMillis: s.reconnectSpread().Milliseconds(), Renew: shown.NotAfter.Sub(s.now()) < servicePointLife/3,
		// The stored report is missing, or differs from the one just received because another one was later.
		SendReport: !known.reported || rq.Digest != "" && rq.Digest != known.digest}
}

// Limits of a report: the number of error conditions, of nodes, and of addresses of a node. The lengths of a text, of the whole report, and
// of the other values are in bytes.
const (
	maxConditions = 100
	maxNodes      = 64
	maxAddresses  = 512
	maxText       = 1 << 10
	maxReport     = 64 << 10
	maxVersion    = 128
	maxDigest     = 128
	maxProcess    = 64
)

// checkKind returns an error if a kind of service point does not exist or a version is malformed.
func checkKind(variant, version string) error {
	switch {
	case variant != checkin.Fleet && variant != checkin.V4:
		return problem.Invalid("variant", "must be %s or %s, not %q", checkin.Fleet, checkin.V4, variant)
	case len(version) > maxVersion:
		return problem.Invalid("version", "has more than %d bytes", maxVersion)
	case strings.ContainsRune(version, 0):
		return problem.Invalid("version", "contains a NUL")
	}
	return nil
}

// checkReport returns an error if a report exceeds the limits.
func checkReport(r *checkin.Report, text []byte) error {
	if err := checkKind(r.Variant, r.Version); err != nil {
		return err
	}
	short := func(field string, texts ...string) error {
		for _, text := range texts {
			if len(text) > maxText || strings.ContainsRune(text, 0) {
				return problem.Invalid("report", "%s: a text has more than %d bytes, or a NUL", field, maxText)
			}
		}
		return nil
	}
	if len(r.ErrorConditions) > maxConditions || len(r.Nodes) > maxNodes || len(r.Applications) > 2*maxApplications {
		return problem.Invalid("report", "has more than %d error conditions, %d nodes or %d applications", maxConditions, maxNodes,
			2*maxApplications)
	}
	err := short("errorConditions", r.ErrorConditions...)
	for _, a := range r.Applications {
		if len(a.ErrorConditions) > maxConditions {
			return problem.Invalid("report", "applications: one has more than %d error conditions", maxConditions)
		}
		if err == nil {
			err = short("applications", append([]string{a.ID, a.Name, a.Version, a.Status}, a.ErrorConditions...)...)
		}
	}
	if err == nil {
		err = short("platform", r.Platform, r.BaseVersion)
	}
	if m := r.Machine; m != nil && err == nil {
		err = short("machine", m.OriginalVersion, m.Platform, m.NTPStatus.Stratum)
	}
	if u := r.Update; u != nil && err == nil {
		err = short("update", u.Version, u.Status, u.Reason)
	}
	if p := r.HTTPProxySettings; p != nil && err == nil {
		err = short("httpProxySettings", p.Host, p.Port, p.Scheme, p.User)
	}
	for _, n := range r.Nodes {
		if len(n.Addresses) > maxAddresses || len(n.DNSServers) > maxAddresses {
			return problem.Invalid("report", "nodes: one has more than %d addresses or DNS servers", maxAddresses)
		}
		texts := append([]string{n.ID, n.Name, n.Hostname, n.IPv4CIDRAddress, n.IPv4GatewayAddress, n.IPv6CIDRAddress, n.IPv6GatewayAddress},
			n.DNSServers...)
		for _, a := range n.Addresses {
			texts = append(texts, a.Type, a.IPAddress)
		}
		if err == nil {
			err = short("nodes", texts...)
		}
		if err == nil && n.DiagnosticsURL != "" && !isDiagnosticsURL(n.DiagnosticsURL) {
			err = problem.Invalid("report", "nodes: %q is not a URL path for diagnostics", n.DiagnosticsURL)
		}
	}
	if err == nil && len(text) > maxReport {
		err = problem.Invalid("report", "has %d bytes, more than %d", len(text), maxReport)
	}
	return err
}

// isDiagnosticsURL reports whether a text is the URL of the diagnostics page at an address. People copy the URL into a shell, so nothing
// else is accepted.
func isDiagnosticsURL(text string) bool {
	at, ok := strings.CutPrefix(strings.TrimSuffix(text, checkin.DiagnosticsPath), "http://")
	_, err := netip.ParseAddrPort(at)
	return ok && err == nil && strings.HasSuffix(text, checkin.DiagnosticsPath) && !strings.Contains(at, "%")
}

// Reports of one source are written with a minimum interval between them. A report that comes too early waits; a source with too many
// waiting reports gets an error.
const (
	paceDivisor       = 30 // the minimum interval is the report interval divided by this
	maxWaitingReports = 2  // reports of one source
)

// reportSource is a sender of reports: a node with certificates of one generation. A sender with a replaced certificate therefore does not
// slow down the sender with the new one.
type reportSource struct {
	at         nodeID
	generation int64
}

// waitForPace blocks until the next report of a source may be written.
func (s *Service) waitForPace(ctx context.Context, at reportSource) error {
	least := s.interval / paceDivisor
	now := time.Now()
	s.mu.Lock()
	next := s.paces[at]
	if next.Before(now) {
		next = now
	}
	wait := next.Sub(now)
	if wait > maxWaitingReports*least {
		s.mu.Unlock()
		p := problem.New(http.StatusTooManyRequests, "TooManyRequests", "this service point reports more often than once in %v", least)
		p.RetryAfter = wait
		return p
	}
	s.paces[at] = next.Add(least)
	s.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
