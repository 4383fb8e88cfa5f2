package fleet

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"slices"
	"time"

	"portolan/internal/engine/store"
)

// ApplicationCertificate is the TLS certificate in the configuration of an application.
type ApplicationCertificate struct {
	// ServicePoint and Name are the id and name of the service point.
	ServicePoint, Name string
	Application        string
	NotAfter           time.Time
}

// Certificates returns the TLS certificates of applications that expire before a time, in the order of their expiry.
func (s *Service) Certificates(ctx context.Context, before time.Time) (all []ApplicationCertificate, err error) {
	err = s.store.Lists(ctx, func(tx *store.Tx) error {
		all = nil
		return tx.Each(func(scan func(...any) error) error {
			var one ApplicationCertificate
			var configuration string
			if err := scan(&one.ServicePoint, &one.Name, &one.Application, &configuration); err != nil {
				return err
			}
			if one.NotAfter = expiryOf(configuration); !one.NotAfter.IsZero() && one.NotAfter.Before(before) {
				all = append(all, one)
			}
			return nil
		}, "SELECT s.id, s.name, a.name, a.configuration FROM application a JOIN service_point s ON s.id = a.service_point "+
			"WHERE a.deleted = 0 AND a.configuration LIKE '%BEGIN CERTIFICATE%' ORDER BY s.name, a.name")
	})
	slices.SortStableFunc(all, func(x, y ApplicationCertificate) int { return x.NotAfter.Compare(y.NotAfter) })
	return all, err
}

// expiryOf returns the expiry time of the certificate in the member tls.certificate of a configuration; zero without a valid certificate.
func expiryOf(configuration string) time.Time {
	var c struct{ TLS struct{ Certificate string } }
	if json.Unmarshal([]byte(configuration), &c) != nil {
		return time.Time{} // a configuration of another form has no certificate
	}
	block, _ := pem.Decode([]byte(c.TLS.Certificate))
	if block == nil {
		return time.Time{}
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil { // the application refuses it when it is deployed
		return time.Time{}
	}
	return leaf.NotAfter
}
