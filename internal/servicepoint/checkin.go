package servicepoint

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"reflect"
	"time"

	"portolan/internal/checkin"
)

// enrolled keeps the identity that the manager gave.
func (a *Agent) enrolled(key *ecdsa.PrivateKey, answer checkin.EnrolAnswer) error {
	text, err := encodeKey(key)
	if err != nil {
		return err
	}
	id := &identity{ID: answer.ID, Name: answer.Name, Endpoint: a.options.Endpoint, Variant: a.options.Variant,
		OriginalVersion: a.options.Version, Certificate: answer.Certificate, Key: text, Authority: answer.Authority}
	if err := a.state.save(id); err != nil {
		a.register(refused, err.Error())
		return err
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
	node, err := a.host.node(a.identity.ID + "-node-1")
	node.DNSServers = a.host.resolvers()
	r := checkin.Report{Version: a.options.Version, Variant: a.options.Variant, ErrorConditions: a.probes.conditions(),
		Nodes: []checkin.Node{node}}
	if p := a.proxy(); p.Host != "" {
		r.HTTPProxySettings = &checkin.ProxySettings{Host: p.Host, Port: p.Port, Scheme: p.Scheme, User: p.User}
	}
	return r, err
}

// checkIn reports and listens until the context ends or the manager no longer knows this service
// point. The report goes up when it changed; otherwise the request waits for the manager.
func (a *Agent) checkIn(ctx context.Context) {
	var known *checkin.Report // what the manager has
	var desired int64
	b := backoff{}
	for ctx.Err() == nil {
		if err := a.renew(ctx); err != nil {
			a.log.Warn("cannot renew the certificate yet", "error", err)
		}
		now, err := a.report()
		if err != nil {
			a.log.Error("reading this machine", "error", err)
			if !b.pause(ctx) {
				return
			}
			continue
		}
		request := checkin.Request{Desired: desired, WaitSeconds: int(a.wait().Seconds())}
		if known == nil || !reflect.DeepEqual(*known, now) {
			request.Report, request.WaitSeconds = &now, 0
		}
		answer, err := a.exchange(ctx, request)
		switch {
		case err == nil:
			b = backoff{}
			desired = answer.Desired
			if request.Report != nil {
				known = &now
			}
			if answer.SendReport {
				known = nil
			}
			a.answered(answer)
		case errors.Is(err, errMoved): // there is something to report
		case gone(err):
			a.register(deregistered, err.Error())
			a.log.Error("the manager no longer knows this service point", "reason", err)
			return
		case ctx.Err() == nil:
			a.log.Warn("cannot check in", "error", err)
			known = nil // the manager may have been restored from a backup, or be another one
			if !b.pause(ctx) {
				return
			}
		}
	}
}

// errMoved ends a waiting check-in because the report may have changed.
var errMoved = errors.New("the report may have changed")

// exchange sends a check-in; one that waits is given up when there is something to report.
func (a *Agent) exchange(ctx context.Context, request checkin.Request) (answer checkin.Answer, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if request.WaitSeconds > 0 {
		go func() {
			select {
			case <-a.moved:
				cancel(errMoved)
			case <-ctx.Done():
			}
		}()
	}
	if err = a.manager.post(ctx, checkin.CheckInPath, request, &answer); err != nil && errors.Is(context.Cause(ctx), errMoved) {
		err = errMoved
	}
	return answer, err
}

// gone reports whether the manager says that there is no such service point.
func gone(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.Status == http.StatusGone
}

func (a *Agent) wait() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.interval
}

func (a *Agent) answered(answer checkin.Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lastAnswer = time.Now()
	if answer.IntervalSeconds > 0 && answer.IntervalSeconds <= 3600 {
		a.interval = time.Duration(answer.IntervalSeconds) * time.Second
	}
}

// renew gets a new certificate at two thirds of the life of the one at hand.
func (a *Agent) renew(ctx context.Context) error {
	_, leaf, err := a.identity.tlsConfig()
	if err != nil {
		return err
	}
	if time.Since(leaf.NotBefore) < leaf.NotAfter.Sub(leaf.NotBefore)*2/3 {
		return nil
	}
	key, text, err := newKey()
	if err != nil {
		return err
	}
	request, err := certificateRequest(key)
	if err != nil {
		return err
	}
	var answer checkin.RenewAnswer
	if err := a.manager.post(ctx, checkin.RenewPath, checkin.RenewRequest{Request: request}, &answer); err != nil {
		return err
	}
	renewed := *a.identity
	renewed.Key, renewed.Certificate = string(text), answer.Certificate
	if err := a.state.save(&renewed); err != nil {
		return err
	}
	a.log.Info("certificate renewed")
	return a.become(&renewed)
}
