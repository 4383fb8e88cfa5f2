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

// enrolled keeps the identity that the manager gave.
func (a *Agent) enrolled(key *ecdsa.PrivateKey, answer checkin.EnrolAnswer) error {
	text, err := encodeKey(key)
	if err != nil {
		return err
	}
	id := &identity{ID: answer.ID, Name: answer.Name, Node: answer.Node, Endpoint: a.options.Endpoint, Variant: a.options.Variant,
		OriginalVersion: a.options.Version, credentials: credentials{Certificate: answer.Certificate, Key: text}, Authority: answer.Authority,
		Registered: digestOf([]byte(a.options.Key))}
	another := a.before != answer.ID // another service point runs other things
	if another {
		if err := a.state.saveDesired(&checkin.Desired{}); err != nil {
			return err
		}
	}
	if err := a.state.save(id); err != nil {
		return err
	}
	if another {
		a.desired = 0
		a.wantUpdate(nil)
		a.supervisor.apply(checkin.Desired{})
	}
	if err := a.state.enrolled(); err != nil {
		a.log.Warn("removing the enrolment key", "error", err)
	}
	a.log.Info("enrolled", "id", id.ID, "name", id.Name)
	return a.become(id)
}

func encodeKey(key *ecdsa.PrivateKey) (string, error) {
	der, err := x509.MarshalECPrivateKey(key)
	return string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})), err
}

// report is what the service point says of itself now.
func (a *Agent) report() (checkin.Report, error) {
	node, err := a.host.node(a.identity.nodeID())
	node.DNSServers, node.DiagnosticsURL = a.host.resolvers(), a.diagnosticsURL(node)
	anycast, _ := a.anycast.now()
	node.Addresses = append(node.Addresses, anycast...)
	r := checkin.Report{Version: a.options.Version, Variant: a.options.Variant, ErrorConditions: a.conditions(),
		Nodes: []checkin.Node{node}}
	machine := a.machine.now()
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

// longestReport is how long what is said of applications may be, in bytes: a manager takes 64 KiB for all of a report.
const longestReport = 40 << 10

// shorten leaves, where there is much to say, of each application the beginning of the first condition.
func shorten(all []checkin.Application) {
	size := 0
	for _, a := range all {
		for _, text := range a.ErrorConditions {
			size += len(text)
		}
	}
	if size <= longestReport {
		return
	}
	for i, a := range all {
		if len(a.ErrorConditions) > 0 {
			text := a.ErrorConditions[0]
			all[i].ErrorConditions = []string{strings.ToValidUTF8(text[:min(len(text), 200)], "")}
		}
	}
}

// latest is the latest report, and what names it.
type latest struct {
	report   checkin.Report
	digest   string
	sequence int64
	// kept says that the manager has it, or has refused it.
	kept, refused bool
}

// look makes the report anew; where it has changed it gets a number.
func (a *Agent) look(l *latest) error {
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

// desire applies another desired state: first on the disk, then in force. It reports whether there was one. An error says that it cannot be
// kept: it is not acknowledged, and the manager sends it again.
func (a *Agent) desire(d *checkin.Desired) (changed bool, err error) {
	if d == nil || d.Generation == a.desired {
		return false, nil
	}
	if err := a.state.saveDesired(d); err != nil {
		if a.troubled("the desired state cannot be kept on the disk: " + err.Error()) {
			a.log.Error("desired state not kept", "error", err)
		}
		return false, err
	}
	a.troubled("")
	a.log.Info("what is to run has changed", "generation", d.Generation, "applications", len(d.Applications))
	a.desired = d.Generation
	a.mu.Lock()
	a.settled = time.Now()
	a.mu.Unlock()
	a.wantUpdate(d.Update)
	a.machine.ask(d.NTPServers)
	a.supervisor.apply(*d)
	a.anycast.look()
	return true, nil
}

// number gives a number for the next report, behind one that was used.
func (a *Agent) number(used int64) int64 {
	next, err := a.state.reserve(used)
	if err != nil {
		a.log.Warn("keeping the number of the next report", "error", err)
	}
	return next
}

// digestOf names a text by its SHA-256.
func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// thisProcess is what check-ins say of the process that sends them, whose latest report is at hand.
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

// keepProcess keeps, once, that this process had an answer: the next one names it.
func (a *Agent) keepProcess() {
	if a.processKept {
		return
	}
	if err := a.state.write(processFile, []byte(a.process.ID+"\n")); err != nil {
		a.log.Warn("process not kept", "error", err)
		return
	}
	a.processKept = true
}

// leastPause is the least time between the beginnings of two check-ins that bring nothing.
const leastPause = time.Second

// mostAtOnce is how many changes of what is to run, one behind the other, are acknowledged without a pause.
const mostAtOnce = 5

// leaveTime is how long the end of an agent may be held up to say so.
const leaveTime = 2 * time.Second

// leave says that the service point ends. Nobody needs to hear it: it would be missed a little later.
func (a *Agent) leave(ctx context.Context, l latest) {
	if errors.Is(context.Cause(ctx), ErrSwitch) { // another release goes on at once
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	if err := a.manager.post(ctx, checkin.CheckInPath, 0, checkin.Request{Desired: a.desired, Sequence: l.sequence, Digest: l.digest,
		Process: a.thisProcess(l.report), Leaving: true}, &checkin.Answer{}); err != nil {
		a.log.Debug("the manager does not hear that this service point ends", "error", err)
	}
}

// checkIn reports and listens until the context ends. The report goes up when it changed, or when the manager has another one;
// otherwise the request waits for the manager. Nothing that a manager says ends it.
func (a *Agent) checkIn(ctx context.Context) {
	l := latest{sequence: a.number(0)}
	defer func() { a.leave(ctx, l) }()
	b, keeping, changed := backoff{}, backoff{most: 8 * time.Second}, 0
	for ctx.Err() == nil {
		if err := a.look(&l); err != nil {
			a.log.Error("reading this machine", "error", err)
			b.pause(ctx)
			continue
		}
		began := time.Now()
		request := checkin.Request{Desired: a.desired, WaitSeconds: int(a.wait().Seconds()), Sequence: l.sequence, Digest: l.digest,
			Process: a.thisProcess(l.report)}
		if l.refused { // what is to run comes down all the same
			request.Digest = ""
		}
		if !l.kept {
			request.Report, request.WaitSeconds = &l.report, 0
		}
		answer, err := a.exchange(ctx, request)
		switch {
		case err == nil:
			if b.wait > 0 {
				a.log.Info("checking in again")
			}
			b, l.kept = backoff{}, !answer.SendReport
			a.keepProcess()
			a.answered(answer)
			if answer.SendReport && answer.Sequence >= l.sequence { // the state directory is older than the manager's
				l.sequence = a.number(answer.Sequence)
			}
			if answer.Renew {
				a.renewing(ctx)
			}
			a.sendLogs(ctx, answer.Logs)
			is, err := a.desire(answer.State)
			if err != nil {
				keeping.pause(ctx)
				continue
			}
			if keeping.wait = 0; is {
				if changed++; changed > mostAtOnce {
					sleep(ctx, leastPause-time.Since(began))
				}
				a.letOthers(ctx)
				continue
			}
			changed = 0
			a.judgeTrial()
			a.startUpdate(ctx)
			if request.Report == nil || answer.SendReport {
				sleep(ctx, leastPause-time.Since(began))
			}
		case errors.Is(err, errMoved): // there is something to report
		case ctx.Err() == nil:
			if request.Report != nil && unreported(err) {
				l.kept, l.refused = true, true
			}
			a.failed(ctx, err, &b)
		}
	}
}

// unreported reports whether a manager refuses what is in a report.
func unreported(err error) bool {
	var r *refusal
	return errors.As(err, &r) && (r.Status == http.StatusBadRequest || r.Status == http.StatusRequestEntityTooLarge)
}

// failed sees to a check-in that failed, and waits before the next one.
func (a *Agent) failed(ctx context.Context, err error, b *backoff) {
	a.mu.Lock()
	a.silence = err.Error()
	a.mu.Unlock()
	var r *refusal
	switch {
	case errors.As(err, &r) && r.Code == checkin.CertificateExpired:
		a.log.Warn("the certificate has expired")
		a.renewing(ctx)
		b.pause(ctx)
	case errors.As(err, &r) && slices.Contains(retiring, r.Code):
		a.disown()
		a.retire(err)
		a.patiently(ctx)
	case errors.As(err, &r) && r.Status == http.StatusGone:
		if a.goBack() {
			return
		}
		a.disown()
		a.register(deregistered, err.Error())
		a.log.Error("the manager does not know this service point", "reason", err)
		a.patiently(ctx)
	default:
		a.log.Warn("cannot check in", "error", err)
		if b.wait == 0 { // all service points of the manager have lost it together, it may be
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

// disown notes that the manager has refused this service point, so that it is not connected.
func (a *Agent) disown() {
	a.mu.Lock()
	a.disowned = true
	a.mu.Unlock()
}

// retiring are the codes of the refusals by which a machine ends what it runs: others do that, or nobody is to.
var retiring = []string{checkin.NodeRemoved, checkin.ServicePointDeleted, checkin.OtherMachine}

// retire ends what runs: the refusal is one of retiring. One that the manager merely does not know goes on: it may have lost it.
func (a *Agent) retire(why error) {
	a.register(deregistered, why.Error())
	a.log.Error("this machine runs nothing any more", "reason", why)
	if a.desired == 0 {
		return
	}
	if err := a.state.saveDesired(&checkin.Desired{}); err != nil {
		a.log.Error("keeping that nothing is to run", "error", err)
	}
	a.desired = 0
	a.wantUpdate(nil)
	a.supervisor.apply(checkin.Desired{})
	a.anycast.look()
}

// errMoved ends a waiting check-in because the report may have changed.
var errMoved = errors.New("the report may have changed")

// exchange sends a check-in; one that waits is given up when there is something to report.
func (a *Agent) exchange(ctx context.Context, request checkin.Request) (answer checkin.Answer, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if request.WaitSeconds <= 0 {
			return
		}
		select {
		case <-a.moved:
			cancel(errMoved)
		case <-ctx.Done():
		}
	}()
	defer func() {
		cancel(nil)
		<-watched // or it would take the token of what moves next
	}()
	err = a.manager.post(ctx, checkin.CheckInPath, time.Duration(request.WaitSeconds)*time.Second, request, &answer)
	switch s := answer.State; {
	case err != nil && errors.Is(context.Cause(ctx), errMoved):
		err = errMoved
	case err == nil && s != nil && (s.Generation <= 0 || s.Generation != answer.Desired || s.Applications == nil):
		err = errNoState
	}
	return answer, err
}

// errNoState is an answer that nobody can have meant: taken for what is to run it would end all that runs.
var errNoState = errors.New("the manager's answer says that something else is to run, and not what")

// ackShare is the share of the time in which all service points of a manager would come back together, in which they say that they have
// another desired state: many may have got it at the same time, and those that have not go first.
const ackShare = 5

// letOthers waits a little before it is said that another desired state was taken on.
func (a *Agent) letOthers(ctx context.Context) {
	a.mu.Lock()
	spread := a.spread / ackShare
	a.mu.Unlock()
	if spread > 0 {
		sleep(ctx, rand.N(spread)) //nolint:gosec // jitter needs no secrecy
	}
}

func (a *Agent) wait() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.interval
}

// answered takes over what the manager says. A certificate that was used replaces the one before.
func (a *Agent) answered(answer checkin.Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lastAnswer, a.silence, a.disowned = time.Now(), "", false
	if answer.TimeMillis > 0 {
		a.update.ahead = time.Until(time.UnixMilli(answer.TimeMillis))
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
			a.log.Warn("the certificate before this one cannot be removed yet", "error", err)
			return
		}
		a.identity = &used
	}
}

// goBack takes on the certificate from before the renewal, where the new one is refused that was never used.
func (a *Agent) goBack() bool {
	if a.identity.Previous == nil {
		return false
	}
	before := *a.identity
	before.credentials, before.Previous = *a.identity.Previous, nil
	err := a.state.save(&before)
	if err == nil {
		err = a.become(&before)
	}
	if err != nil {
		a.log.Error("going back to the certificate before", "error", err)
	}
	return err == nil
}

// renewing renews the certificate; where that fails it is tried again at the next check-in.
func (a *Agent) renewing(ctx context.Context) {
	if err := a.renew(ctx); err != nil && ctx.Err() == nil {
		a.log.Warn("cannot renew the certificate yet", "error", err)
	}
}

// renew gets a new certificate. The one at hand is kept until the new one was used.
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
	return a.become(&renewed)
}
