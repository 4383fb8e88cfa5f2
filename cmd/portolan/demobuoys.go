package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	"portolan/internal/manager/fleet"
	"portolan/internal/manager/server"
	"portolan/internal/servicepoint"
	"portolan/internal/wire/checkin"
)

// demoLabel is the label that tells the service points of the demo (quay) from the simulated ones (sea).
const demoLabel, demoQuay, demoSea = "site", "quay", "sea"

// The buoys are simulated service points. The rollout updates the first wave; the update of the next buoy never ends, so that the rollout
// stays part done. One buoy has a resolver with an expired certificate.
const (
	demoBuoys       = 8
	demoFirstWave   = 3
	demoExpiredBuoy = 2
	// demoExpired is the time since the end of the certificate.
	demoExpired = 3 * 24 * time.Hour
	// demoPatience is the time after which the update that never ends counts as failed: longer than a demo runs.
	demoPatience = 7 * 24 * time.Hour
)

// startBuoys starts the simulated service points, and returns a function that starts their rollout once the release is published.
func startBuoys(ctx context.Context, s *session, m *server.Manager) (rollOut func() error, run func()) {
	crowd := &servicepoint.Crowd{Size: demoBuoys, Hands: demoBuoys, Version: versionText(), Log: s.log,
		Stalled: func(number int) bool { return number == demoFirstWave },
		Enrol: func(ctx context.Context, number int) (endpoint, key string, err error) {
			c, err := enrolBuoy(ctx, m, number+1)
			return c.RegistrationEndpoint, c.RegistrationKey, err
		}}
	run = func() {
		if err := crowd.Run(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("demo service points ended", "error", err)
		}
	}
	return func() error {
		for crowd.Enrolled.Load() < demoBuoys {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(50 * time.Millisecond):
			}
		}
		for _, name := range demoPoints { // only now, because they are created while the manager starts
			if err := labelPoint(ctx, m, name.name, demoQuay); err != nil {
				return err
			}
		}
		all, err := m.Fleet.Rollouts(ctx)
		if err != nil || len(all) > 0 { // the demo started again
			return err
		}
		plan := fleet.NewPlan()
		plan.Version, plan.Description = demoVersion(), "One buoy at a time"
		plan.Filter, plan.Waves = fleet.Filter{Labels: map[string]string{demoLabel: demoSea}}, []fleet.Amount{{N: demoFirstWave}}
		plan.MaxUnavailable, plan.GiveUpSeconds = fleet.Amount{N: 1}, int(demoPatience.Seconds())
		_, err = m.Fleet.StartRollout(ctx, plan)
		return err
	}, run
}

// labelPoint labels a service point with its site.
func labelPoint(ctx context.Context, m *server.Manager, name, site string) error {
	var id string
	if err := m.Fleet.List(ctx, fleet.Filter{Name: name}, func(i fleet.Instance) error {
		id = i.ID
		return nil
	}); err != nil || id == "" {
		return err
	}
	return m.Fleet.Modify(ctx, id, fleet.InstanceChange{Labels: map[string]*string{demoLabel: &site}})
}

// enrolBuoy returns a registration key for a simulated service point, which it creates if it does not exist.
func enrolBuoy(ctx context.Context, m *server.Manager, number int) (c fleet.Created, err error) {
	name, id := fmt.Sprint("buoy-", number), ""
	if err := m.Fleet.List(ctx, fleet.Filter{Name: name}, func(i fleet.Instance) error {
		id = i.ID
		return nil
	}); err != nil {
		return c, err
	}
	if id != "" {
		return m.Fleet.Rekey(ctx, id, m.RegistrationEndpoint())
	}
	description := "A simulated service point of the demo"
	if c, err = m.Fleet.Create(ctx, fleet.Wanted{Name: name, Description: &description, Endpoint: m.RegistrationEndpoint()}); err != nil {
		return c, err
	}
	if err := labelPoint(ctx, m, name, demoSea); err != nil {
		return c, err
	}
	if number != demoExpiredBuoy {
		return c, nil
	}
	certificate, key, err := expiredCertificate(name+".harbour.example", m.Store.Now().Add(-demoExpired))
	if err != nil {
		return c, err
	}
	configuration, err := json.Marshal(map[string]any{"listen": []map[string]any{{"address": "127.0.0.1", "port": 8853, "tls": true}},
		"tls": map[string]string{"certificate": certificate, "key": key}, "upstreams": []map[string]string{{"address": "127.0.0.2"}}})
	if err != nil {
		return c, err
	}
	application := checkin.Resolver
	_, err = m.Fleet.Deploy(ctx, c.FleetInstanceID, fleet.ApplicationChange{Name: &application, Configuration: configuration})
	return c, err
}

// expiredCertificate returns a self-signed certificate that expired at a time, and its key, in PEM.
func expiredCertificate(name string, end time.Time) (certificate, key string, err error) {
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: end.AddDate(-1, 0, 0), NotAfter: end}
	text, err := x509.CreateCertificate(rand.Reader, template, template, own.Public(), own)
	if err != nil {
		return "", "", err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		return "", "", err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: text})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})), nil
}
