// Package sink holds what is said of where telemetry goes, wherever that is a part of a resource.
package sink

import (
	"net/url"
	"strings"

	"portolan/internal/engine/schema"
)

// Destination is where telemetry goes.
type Destination struct {
	// SinkType is the kind of the receiver.
	SinkType string `api:"sinkType,required,variant" enum:"ELASTICSEARCH|HTTP|KAFKA|SPLUNK"`
	// HealthCheckEnabled says whether the receiver is asked how it is.
	HealthCheckEnabled bool `api:"healthCheckEnabled"`
	// CACertificate is the authority to trust, in base64 or PEM; null for the system's.
	CACertificate string `api:"caCertificate" length:"65535"`
	// CertificateVerificationEnabled says whether the receiver's certificate is verified.
	CertificateVerificationEnabled bool `api:"certificateVerificationEnabled"`
	// HostnameVerificationEnabled says whether its name is verified, too.
	HostnameVerificationEnabled bool `api:"hostnameVerificationEnabled"`
	// URL is the address of the receiver.
	URL string `api:"url" for:"ELASTICSEARCH|HTTP|SPLUNK" length:"2000"`
	// Index is the index that is written to.
	Index string `api:"index" for:"ELASTICSEARCH"`
	// Username is who signs in there.
	Username string `api:"username" for:"ELASTICSEARCH"`
	// Password is the password for it; it is never shown.
	Password schema.Secret `api:"password" for:"ELASTICSEARCH"`
	// Token is what is shown to the receiver; it is never shown here.
	Token schema.Secret `api:"token" for:"HTTP|SPLUNK"`
	// HealthCheckURL is asked how the receiver is.
	HealthCheckURL string `api:"healthCheckUrl" for:"HTTP" length:"2000"`
	// Hosts are the brokers, each host:port.
	Hosts []string `api:"hosts,nonblank" for:"KAFKA"`
	// Topic is what is written to.
	Topic string `api:"topic" for:"KAFKA"`
	// KeyField is the field that messages are spread by.
	KeyField string `api:"keyField" for:"KAFKA"`
}

// Check asks for what the kind of the receiver needs.
func (x *Destination) Check() error {
	if x.SinkType == "KAFKA" {
		switch {
		case len(x.Hosts) == 0:
			return schema.At("hosts", "is needed with KAFKA")
		case x.Topic == "":
			return schema.At("topic", "is needed with KAFKA")
		}
		for _, host := range x.Hosts {
			if !strings.Contains(host, ":") {
				return schema.At("hosts", "%q is no host:port", host)
			}
		}
		return nil
	}
	for name, text := range map[string]string{"url": x.URL, "healthCheckUrl": x.HealthCheckURL} {
		if text == "" && name == "url" {
			return schema.At(name, "is needed with %s", x.SinkType)
		}
		if u, err := url.Parse(text); text != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
			return schema.At(name, "%q is no address of the web", text)
		}
	}
	return nil
}
