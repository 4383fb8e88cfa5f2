package fleet

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"
)

// ServicePoint is a service point as the API of Service Points v4 shows it (reference/fleet.md).
type ServicePoint struct {
	ID               string                `json:"id"`
	Name             string                `json:"name"`
	Description      *string               `json:"description,omitempty"`
	Version          string                `json:"version"`
	TargetVersion    string                `json:"targetVersion,omitempty"`
	OriginalVersion  string                `json:"originalVersion"`
	Platform         string                `json:"platform"`
	LastSeen         int64                 `json:"lastSeen"`
	Status           string                `json:"status"`
	ConnectionStatus string                `json:"connectionStatus"`
	UpdateStatus     string                `json:"updateStatus"`
	AnycastStatus    checkin.AnycastStatus `json:"anycastStatus"`
	NTPConfiguration NTPConfiguration      `json:"ntpConfiguration"`
	NTPStatus        checkin.NTPStatus     `json:"ntpStatus"`
	Hostname         string                `json:"hostname"`

	IPv4CIDRAddress    string              `json:"ipv4CIDRAddress"`
	IPv4GatewayAddress string              `json:"ipv4GatewayAddress"`
	IPv6CIDRAddress    string              `json:"ipv6CIDRAddress"`
	IPv6GatewayAddress string              `json:"ipv6GatewayAddress"`
	Addresses          []checkin.V4Address `json:"addresses"`
	// HTTPProxySettings is null if no proxy is set.
	HTTPProxySettings *checkin.ProxySettings    `json:"httpProxySettings"`
	DNSServers        []string                  `json:"dnsServers"`
	ErrorConditions   []string                  `json:"errorConditions"`
	Applications      []checkin.ServiceInstance `json:"applications"`
	Resources         checkin.Resources         `json:"resources"`
}

// NTPConfiguration are the NTP servers of a service point, and the networks that it serves time to, which are none.
type NTPConfiguration struct {
	Servers        []string `json:"servers"`
	ClientNetworks []string `json:"clientNetworks"`
}

// servicePoint returns the service point in the form of the API of Service Points v4.
func (i *Instance) servicePoint() (v ServicePoint, err error) {
	v = ServicePoint{ID: i.ID, Name: i.Name, Description: i.Description, Version: i.Version, TargetVersion: i.TargetVersion,
		LastSeen: i.LastSeen,
		Status:   i.Status, ConnectionStatus: i.ConnectionStatus, UpdateStatus: i.UpdateStatus, AnycastStatus: i.anycast.Status(),
		NTPConfiguration: NTPConfiguration{ClientNetworks: []string{}}, Addresses: []checkin.V4Address{}, HTTPProxySettings: i.proxy,
		DNSServers: append([]string{}, i.dnsServers...), ErrorConditions: i.ErrorConditions, Applications: []checkin.ServiceInstance{}}
	if m := i.machine; m != nil {
		v.OriginalVersion, v.Platform, v.NTPStatus, v.Resources = m.OriginalVersion, m.Platform, m.NTPStatus, m.Resources
	}
	if len(i.Nodes) > 0 {
		n := i.Nodes[0]
		v.Hostname, v.Addresses = n.Hostname, checkin.V4Addresses(n.Addresses)
		v.IPv4CIDRAddress, v.IPv4GatewayAddress = n.IPv4CIDRAddress, n.IPv4GatewayAddress
		v.IPv6CIDRAddress, v.IPv6GatewayAddress = n.IPv6CIDRAddress, n.IPv6GatewayAddress
	}
	for _, a := range i.Applications {
		v.Applications = append(v.Applications, checkin.ServiceInstance{ID: a.ID, ServiceName: a.Name, Name: cmp.Or(a.title, a.Name),
			Version: a.Version,
			Status:  a.Status, ErrorConditions: a.ErrorConditions, TargetVersion: a.TargetVersion, UpdateStatus: a.UpdateStatus})
	}
	return v, json.Unmarshal([]byte(i.ntpServers), &v.NTPConfiguration.Servers)
}

// ServicePoints calls fn for the service points of the v4 kind that match a filter, in the order of their names.
func (s *Service) ServicePoints(ctx context.Context, f Filter, fn func(ServicePoint) error) error {
	f.Variant = checkin.V4
	return s.List(ctx, f, func(i Instance) error {
		v, err := i.servicePoint()
		if err != nil {
			return err
		}
		return fn(v)
	})
}

// ServicePoint returns one service point of the v4 kind.
func (s *Service) ServicePoint(ctx context.Context, id string) (v ServicePoint, err error) {
	found := false
	err = s.ServicePoints(ctx, Filter{ID: id}, func(one ServicePoint) error {
		v, found = one, true
		return nil
	})
	if err == nil && !found {
		err = problem.NotFound("service point %q of the v4 kind does not exist", id)
	}
	return v, err
}

// maxNTPServers is the maximum number of NTP servers of a service point.
const maxNTPServers = 8

// CheckNTPServers returns an error if a server is not a name or an address, with or without a port.
func CheckNTPServers(servers []string) error {
	if len(servers) > maxNTPServers {
		return problem.Invalid("ntpConfiguration.servers", "has %d entries, more than %d", len(servers), maxNTPServers)
	}
	for _, server := range servers {
		host := server
		if h, port, err := net.SplitHostPort(server); err == nil {
			if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
				return problem.Invalid("ntpConfiguration.servers", "port of %q must be 1 to 65535", server)
			}
			host = h
		}
		if _, err := netip.ParseAddr(host); err != nil && !hostname(host) {
			return problem.Invalid("ntpConfiguration.servers", "must be an address or a name, not %q", server)
		}
	}
	return nil
}

// hostname reports whether a text has the form of a host name: letters, digits, hyphens and dots.
func hostname(text string) bool {
	return text != "" && len(text) <= 253 && !strings.HasPrefix(text, "-") && !strings.Contains(text, "..") &&
		!strings.ContainsFunc(text, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '.'
		})
}

// configureNTP changes the NTP servers of a service point.
func configureNTP(tx *store.Tx, id string, servers []string) error {
	text, err := json.Marshal(servers)
	if err != nil {
		return err
	}
	return tx.Write("UPDATE service_point SET ntp_servers = ? WHERE id = ?", string(text), id)
}

// FindApplication returns an application and the id of the service point that runs it.
func (s *Service) FindApplication(ctx context.Context, application string) (servicePoint string, d ApplicationDetail, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		found, err := scanApplication(tx.QueryRow(selectApplications+"WHERE id = ?", application).Scan)
		if errors.Is(err, sql.ErrNoRows) {
			return problem.NotFound("service instance %q does not exist", application)
		}
		servicePoint, d = found.servicePoint, found.ApplicationDetail
		return err
	})
	return servicePoint, d, err
}

// Descriptor splits a service descriptor of the form NAME-VERSION into the application's name and version.
func (s *Service) Descriptor(text string) (name, version string, err error) {
	for known := range s.programs {
		if rest, ok := strings.CutPrefix(text, known+"-"); ok {
			return known, rest, checkVersion("serviceDescriptorID", rest)
		}
	}
	return "", "", problem.Invalid("serviceDescriptorID", "must be the name of an application, a hyphen and a version, not %q", text)
}
