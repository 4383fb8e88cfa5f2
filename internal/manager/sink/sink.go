// Package sink defines the destination of telemetry: a type that several resources embed.
package sink

import (
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"

	"portolan/internal/engine/schema"
)

// Destination is the receiver of telemetry and how to connect to it.
type Destination struct {
	// SinkType is the kind of the receiver.
	SinkType string `api:"sinkType,required,variant" enum:"ELASTICSEARCH|HTTP|KAFKA|SPLUNK"`
	// HealthCheckEnabled controls whether the health of the receiver is checked before a failed message is sent again.
	HealthCheckEnabled bool `api:"healthCheckEnabled"`
	// CACertificate is the certificate authority to trust, in base64 or PEM; null for the authorities of the operating system.
	CACertificate string `api:"caCertificate" length:"65535"`
	// CertificateVerificationEnabled controls whether the receiver's certificate is verified.
	CertificateVerificationEnabled bool `api:"certificateVerificationEnabled" default:"true"`
	// HostnameVerificationEnabled controls whether the name in the receiver's certificate is verified.
	HostnameVerificationEnabled bool `api:"hostnameVerificationEnabled" default:"true"`
	// URL is the address of the receiver.
	URL string `api:"url" for:"ELASTICSEARCH|HTTP|SPLUNK" length:"2000"`
	// Index is the index to write to.
	Index string `api:"index" for:"ELASTICSEARCH"`
	// Username is the user name for the receiver.
	Username string `api:"username" for:"ELASTICSEARCH"`
	// Password is the password of that user; it is never shown.
	Password schema.Secret `api:"password" for:"ELASTICSEARCH"`
	// Token is the access token for the receiver; it is never shown.
	Token schema.Secret `api:"token" for:"HTTP|SPLUNK"`
	// HealthCheckURL is the address that health checks request.
	HealthCheckURL string `api:"healthCheckUrl" for:"HTTP" length:"2000"`
	// Hosts are the Kafka brokers, each as host:port.
	Hosts []string `api:"hosts,nonblank" for:"KAFKA"`
	// Topic is the topic to write to.
	Topic string `api:"topic" for:"KAFKA"`
	// KeyField is the field that is the message key, which determines the partition.
	KeyField string `api:"keyField" for:"KAFKA"`
}

// Authorities returns the certificates of CACertificate; nil stands for those of the operating system.
func (x *Destination) Authorities() (*x509.CertPool, error) {
	if x.CACertificate == "" {
		return nil, nil
	}
	text := []byte(x.CACertificate)
	if der, err := base64.StdEncoding.DecodeString(x.CACertificate); err == nil {
		text = der
	}
	pool := x509.NewCertPool()
	if pool.AppendCertsFromPEM(text) {
		return pool, nil
	}
	one, err := x509.ParseCertificate(text)
	if err != nil {
		return nil, fmt.Errorf("it is not a certificate in PEM or base64: %w", err)
	}
	pool.AddCert(one)
	return pool, nil
}

// Check returns an error for a missing or malformed field that the sink type requires.
func (x *Destination) Check() error {
	if _, err := x.Authorities(); err != nil {
		return schema.MemberError("caCertificate", "%v", err)
	}
	if x.SinkType == "KAFKA" {
		switch {
		case len(x.Hosts) == 0:
			return schema.MemberError("hosts", "is needed with KAFKA")
		case x.Topic == "":
			return schema.MemberError("topic", "is needed with KAFKA")
		}
		for _, host := range x.Hosts {
			if !strings.Contains(host, ":") {
				return schema.MemberError("hosts", "%q is not of the form host:port", host)
			}
		}
		return nil
	}
	for name, text := range map[string]string{"url": x.URL, "healthCheckUrl": x.HealthCheckURL} {
		if text == "" && name == "url" {
			return schema.MemberError(name, "is needed with %s", x.SinkType)
		}
		if u, err := url.Parse(text); text != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
			return schema.MemberError(name, "%q is not an http or https URL", text)
		}
	}
	return nil
}
