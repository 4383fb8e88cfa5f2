package servicepoint

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"portolan/internal/wire/checkin"
	"portolan/internal/wire/release"
)

// storeIdentity stores the identity from the manager's enrolment answer.
func (a *Agent) storeIdentity(key *ecdsa.PrivateKey, answer checkin.EnrolAnswer) error {
	text, err := encodeKey(key)
	if err != nil {
		return err
	}
	id := &identity{ID: answer.ID, Name: answer.Name, Node: answer.Node, Endpoint: a.options.Endpoint, Variant: a.options.Variant,
		OriginalVersion: a.options.Version, credentials: credentials{Certificate: answer.Certificate, Key: text}, Authority: answer.Authority,
		Registered: digestOf([]byte(a.options.Key))}
	another := a.previousID != answer.ID // another service point has another desired state
	if another {
		if err := a.state.saveDesired(&checkin.Desired{}); err != nil {
			return err
		}
		if a.previousID != "" { // before the identity is stored: unsent records belong to the previous one
			if err := a.supervisor.streams.forgetOwn(); err != nil {
				return err
			}
		}
	}
	if err := a.state.save(id); err != nil {
		return err
	}
	if another {
		a.desired = 0
		a.setUpdate(nil)
		a.supervisor.apply(checkin.Desired{})
	}
	if err := a.state.removeEnrolmentKey(); err != nil {
		a.log.Warn("remove enrolment key failed", "error", err)
	}
	a.log.Info("enrolled", "id", id.ID, "name", id.Name)
	return a.useIdentity(id)
}

func encodeKey(key *ecdsa.PrivateKey) (string, error) {
	der, err := x509.MarshalECPrivateKey(key)
	return string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})), err
}

// report returns the current report of the service point.
func (a *Agent) report() (checkin.Report, error) {
	node, err := a.host.node(a.identity.nodeID())
	node.DNSServers, node.DiagnosticsURL = a.host.resolvers(), a.diagnosticsURL(node)
	anycast, _ := a.anycast.report()
	node.Addresses = append(node.Addresses, anycast...)
	r := checkin.Report{Version: a.options.Version, Variant: a.options.Variant, ErrorConditions: a.conditions(),
		Nodes: []checkin.Node{node}}
	machine := a.machine.current()
	machine.OriginalVersion = a.identity.OriginalVersion
	r.Machine = &machine
	r.Platform, r.BaseVersion, r.Update = release.Platform(), a.releases.base, a.updateReport()
	r.Applied, r.Applications = a.supervisor.report()
	shorten(r.Applications)
	if p := a.proxy(); p.Host != "" {
		r.HTTPProxySettings = &checkin.ProxySettings{Host: p.Host, Port: p.Port, Scheme: p.Scheme, User: p.User}
	}
	return r, err
}

// maxConditionBytes is the maximum total size of the applications' error conditions in a report, in bytes. A manager accepts 64 KiB for a
// whole report.
const maxConditionBytes = 40 << 10

// shorten cuts the error conditions to the first 200 bytes of each application's first one if they exceed maxConditionBytes.
func shorten(all []checkin.Application) {
	size := 0
	for _, a := range all {
		for _, text := range a.ErrorConditions {
			size += len(text)
		}
	}
	if size <= maxConditionBytes {
		return
	}
	for i, a := range all {
		if len(a.ErrorConditions) > 0 {
			text := a.ErrorConditions[0]
			all[i].ErrorConditions = []string{strings.ToValidUTF8(text[:min(len(text), 200)], "")}
		}
	}
}

// latest is the latest report with its digest and sequence number.
type latest struct {
	report   checkin.Report
	digest   string
	sequence int64
	// kept reports that the manager has the report or rejected it; refused reports that it rejected it.
	kept, refused bool
}

// refreshReport creates a new report and gives it the next sequence number if it differs from l.
func (a *Agent) refreshReport(l *latest) error {
	now, err := a.report()
	if err != nil {
		return err
	}
	text, err := json.Marshal(now)
	if err != nil {
		return err
	}
	if digest := digestOf(text); digest != l.digest {
		*l = latest{report: now, digest: digest, sequence: l.sequence + 1}
	}
	return nil
}

// applyDesired stores another desired state on the disk and then applies it. It reports whether there was one. After an error the state
// is not acknowledged, and the manager sends it again.
func (a *Agent) applyDesired(d *checkin.Desired) (changed bool, err error) {
	if d == nil || d.Generation == a.desired {
		return false, nil
	}
	if err := a.state.saveDesired(d); err != nil {
		if a.setTrouble("the desired state cannot be stored on the disk: " + err.Error()) {
			a.log.Error("store desired state failed", "error", err)
		}
		return false, err
	}
	a.setTrouble("")
	a.log.Info("desired state changed", "generation", d.Generation, "applications", len(d.Applications))
	a.desired = d.Generation
	a.mu.Lock()
	a.desiredChanged = time.Now()
	a.mu.Unlock()
	a.setUpdate(d.Update)
	a.machine.setServers(d.NTPServers)
	a.supervisor.apply(*d)
	a.anycast.notify()
	return true, nil
}

// reserveSequence returns a sequence number for the next report that is greater than used.
func (a *Agent) reserveSequence(used int64) int64 {
	next, err := a.state.reserveSequence(used)
	if err != nil {
		a.log.Warn("store report sequence number failed", "error", err)
	}
	return next
}

// digestOf returns the SHA-256 digest of a text in hex.
func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// thisProcess returns the process description for check-ins, with its address from the report r.
func (a *Agent) thisProcess(r checkin.Report) *checkin.Process {
	p := a.process
	if len(r.Nodes) > 0 {
		n := r.Nodes[0]
		if at, err := url.Parse(n.DiagnosticsURL); err == nil {
			p.Address = at.Hostname()
		}
		if p.Address == "" && len(n.Addresses) > 0 {
			p.Address = n.Addresses[0].IPAddress
		}
	}
	return &p
}

// keepProcess stores the id of this process once, after its first answer. The next process reports it as its predecessor.
func (a *Agent) keepProcess() {
	if a.processKept {
		return
	}
	if err := a.state.write(processFile, []byte(a.process.ID+"\n")); err != nil {
		a.log.Warn("store process id failed", "error", err)
		return
	}
	a.processKept = true
}

// minPause is the minimum time between the starts of two check-ins that bring no news.
const minPause = time.Second

// maxUnpaused is the number of consecutive changes of the desired state that are acknowledged without a pause.
const maxUnpaused = 5

// signOffLimit limits the sign-off request of an agent that ends.
const signOffLimit = 2 * time.Second

// signOff tells the manager that this service point ends. Failures are ignored, because the manager soon notices the missing check-ins.
func (a *Agent) signOff(ctx context.Context, l latest) {
	if errors.Is(context.Cause(ctx), ErrSwitch) { // another release continues at once
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), signOffLimit)
	defer cancel()
	if err := a.manager.post(ctx, checkin.CheckInPath, 0, checkin.Request{Desired: a.desired, Sequence: l.sequence, Digest: l.digest,
		Process: a.thisProcess(l.report), Leaving: true}, &checkin.Answer{}); err != nil {
		a.log.Debug("sign-off not delivered", "error", err)
	}
}

// checkIn sends check-ins until the context ends. It sends the report when the report changed or when the manager asks for it; otherwise
// the request waits at the manager for news. No answer of the manager ends the loop.
func (a *Agent) checkIn(ctx context.Context) {
	l := latest{sequence: a.reserveSequence(0)}
	defer func() { a.signOff(ctx, l) }()
	b, keeping, changed := backoff{}, backoff{limit: 8 * time.Second}, 0
	for ctx.Err() == nil {
		if err := a.refreshReport(&l); err != nil {
			a.log.Error("read machine state failed", "error", err)
			b.pause(ctx)
			continue
		}
		began := time.Now()
		request := checkin.Request{Desired: a.desired, WaitSeconds: int(a.currentInterval().Seconds()), Sequence: l.sequence, Digest: l.digest,
			Process: a.thisProcess(l.report)}
		if l.refused { // an empty digest lets the manager send the desired state although it refused the report
			request.Digest = ""
		}
		if !l.kept {
			request.Report, request.WaitSeconds = &l.report, 0
		}
		answer, err := a.exchange(ctx, request)
		switch {
		case err == nil:
			if b.wait > 0 {
				a.log.Info("check-ins resumed")
			}
			b, l.kept = backoff{}, !answer.SendReport
			a.keepProcess()
			a.handleAnswer(answer)
			if answer.SendReport && answer.Sequence >= l.sequence { // the state directory is older than the manager's data
				l.sequence = a.reserveSequence(answer.Sequence)
			}
			if answer.Renew {
				a.tryRenew(ctx)
			}
			a.sendLogs(ctx, answer.Logs)
			is, err := a.applyDesired(answer.State)
			if err != nil {
				keeping.pause(ctx)
				continue
			}
			if keeping.wait = 0; is {
				if changed++; changed > maxUnpaused {
					sleep(ctx, minPause-time.Since(began))
				}
				a.delayAcknowledgement(ctx)
				continue
			}
			changed = 0
			a.judgeTrial()
			a.startUpdate(ctx)
			if request.Report == nil || answer.SendReport {
				sleep(ctx, minPause-time.Since(began))
			}
		case errors.Is(err, errReportChanged): // the report may have changed
		case ctx.Err() == nil:
			if request.Report != nil && isReportRejected(err) {
				l.kept, l.refused = true, true
			}
			a.handleFailure(ctx, err, &b)
		}
	}
}

// isReportRejected reports whether the manager rejected the content of a report.
func isReportRejected(err error) bool {
	var r *refusal
	return errors.As(err, &r) && (r.Status == http.StatusBadRequest || r.Status == http.StatusRequestEntityTooLarge)
}

// handleFailure handles a failed check-in and waits before the next one.
func (a *Agent) handleFailure(ctx context.Context, err error, b *backoff) {
	a.mu.Lock()
	a.lastFailure = err.Error()
	a.mu.Unlock()
	var r *refusal
	switch {
	case errors.As(err, &r) && r.Code == checkin.CertificateExpired:
		a.log.Warn("certificate expired")
		a.tryRenew(ctx)
		b.pause(ctx)
	case errors.As(err, &r) && slices.Contains(retiring, r.Code):
		a.disown()
		a.retire(err)
		a.waitAfterRefusal(ctx)
	case errors.As(err, &r) && r.Status == http.StatusGone:
		if a.restoreCertificate() {
			return
		}
		a.disown()
		a.register(deregistered, err.Error())
		a.log.Error("service point unknown to the manager", "reason", err)
		a.waitAfterRefusal(ctx)
	default:
		a.log.Warn("check-in failed", "error", err)
		if b.wait == 0 { // maybe all service points lost the manager together
			a.mu.Lock()
			spread := a.spread
			a.mu.Unlock()
			if spread > 0 && !sleep(ctx, rand.N(spread)) { //nolint:gosec // jitter needs no secrecy
				return
			}
		}
		b.pause(ctx)
	}
}

// disown records that the manager refused this service point; it is shown as not connected.
func (a *Agent) disown() {
	a.mu.Lock()
	a.isRefused = true
	a.mu.Unlock()
}

// retiring are the codes of refusals after which this machine must stop its applications: its node or service point was deleted, or
// another machine took it over.
var retiring = []string{checkin.NodeRemoved, checkin.ServicePointDeleted, checkin.OtherMachine}

// retire stops all applications after a refusal in retiring. If the manager merely does not know the service point, its applications keep
// running, because the manager may have lost data.
func (a *Agent) retire(why error) {
	a.register(deregistered, why.Error())
	a.log.Error("all applications stopped", "reason", why)
	if a.desired == 0 {
		return
	}
	if err := a.state.saveDesired(&checkin.Desired{}); err != nil {
		a.log.Error("store empty desired state failed", "error", err)
	}
	a.desired = 0
	a.setUpdate(nil)
	a.supervisor.apply(checkin.Desired{})
	a.anycast.notify()
}

// errReportChanged ends a waiting check-in because the report may have changed.
var errReportChanged = errors.New("the report may have changed")

// exchange sends a check-in. It cancels a waiting check-in when the report may have changed, and returns errReportChanged.
func (a *Agent) exchange(ctx context.Context, request checkin.Request) (answer checkin.Answer, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if request.WaitSeconds <= 0 {
			return
		}
		select {
		case <-a.changed:
			cancel(errReportChanged)
		case <-ctx.Done():
		}
	}()
	defer func() {
		cancel(nil)
		<-watched // wait for the goroutine, or it could consume the token of the next change
	}()
	err = a.manager.post(ctx, checkin.CheckInPath, time.Duration(request.WaitSeconds)*time.Second, request, &answer)
	switch s := answer.State; {
	case err != nil && errors.Is(context.Cause(ctx), errReportChanged):
		err = errReportChanged
	case err == nil && s != nil && (s.Generation <= 0 || s.Generation != answer.Desired || s.Applications == nil):
		err = errNoState
	}
	return answer, err
}

// errNoState reports an incomplete desired state. Applying it could stop every application, so it is rejected.
var errNoState = errors.New("the manager's response announces a new desired state but does not contain it")

// ackShare divides the manager's spread to get the longest random delay of an acknowledgement. Many service points may receive a new
// desired state at the same time; the delay lets those that still wait for it go first.
const ackShare = 5

// delayAcknowledgement delays the acknowledgement of another desired state at random.
func (a *Agent) delayAcknowledgement(ctx context.Context) {
	a.mu.Lock()
	spread := a.spread / ackShare
	a.mu.Unlock()
	if spread > 0 {
		sleep(ctx, rand.N(spread)) //nolint:gosec // jitter needs no secrecy
	}
}

func (a *Agent) currentInterval() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.interval
}

// handleAnswer applies the settings in the manager's answer. It deletes the previous certificate, because the current one has now been
// used.
func (a *Agent) handleAnswer(answer checkin.Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lastAnswer, a.lastFailure, a.isRefused = time.Now(), "", false
	if answer.TimeMillis > 0 {
		a.update.clockOffset = time.Until(time.UnixMilli(answer.TimeMillis))
	}
	a.registration = checkin.Registration{State: registered}
	if answer.IntervalSeconds > 0 && answer.IntervalSeconds <= 3600 {
		a.interval = time.Duration(answer.IntervalSeconds) * time.Second
	}
	a.spread = min(max(0, time.Duration(answer.SpreadMillis)*time.Millisecond), a.interval*checkin.MissedIntervals)
	if a.identity.Previous != nil {
		used := *a.identity
		used.Previous = nil
		if err := a.state.save(&used); err != nil {
			a.log.Warn("remove previous certificate failed", "error", err)
			return
		}
		a.identity = &used
	}
}

// restoreCertificate restores the certificate from before the renewal if the manager refuses the new one. It reports whether it did.
func (a *Agent) restoreCertificate() bool {
	if a.identity.Previous == nil {
		return false
	}
	before := *a.identity
	before.credentials, before.Previous = *a.identity.Previous, nil
	err := a.state.save(&before)
	if err == nil {
		err = a.useIdentity(&before)
	}
	if err != nil {
		a.log.Error("restore previous certificate failed", "error", err)
	}
	return err == nil
}

// tryRenew renews the certificate. After a failure the next check-in tries again.
func (a *Agent) tryRenew(ctx context.Context) {
	if err := a.renew(ctx); err != nil && ctx.Err() == nil {
		a.log.Warn("certificate renewal failed", "error", err)
	}
}

// renew requests a new certificate. The current one is kept until the new one has been used.
func (a *Agent) renew(ctx context.Context) error {
	key, text, err := newKey()
	if err != nil {
		return err
	}
	request, err := certificateRequest(key)
	if err != nil {
		return err
	}
	var answer checkin.RenewAnswer
	if err := a.manager.post(ctx, checkin.RenewPath, 0, checkin.RenewRequest{Request: request}, &answer); err != nil {
		return err
	}
	renewed := *a.identity
	renewed.Previous = &a.identity.credentials
	renewed.credentials = credentials{Certificate: answer.Certificate, Key: string(text)}
	if _, err := renewed.tlsConfig(); err != nil {
		return err
	}
	if err := a.state.save(&renewed); err != nil {
		return err
	}
	a.log.Info("certificate renewed")
	return a.useIdentity(&renewed)
}
