package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Instance is a fleet service point (spec.md 2.1).
type Instance struct {
	ID               string        `json:"id"`
	Name             string        `json:"name"`
	Description      string        `json:"description,omitempty"`
	Status           string        `json:"status"`
	LastSeen         int64         `json:"lastSeen"` // Unix milliseconds; 0 means never
	ConnectionStatus string        `json:"connectionStatus"`
	Version          string        `json:"version"`
	TargetVersion    string        `json:"targetVersion,omitempty"`
	UpdateStatus     string        `json:"updateStatus"`
	ErrorConditions  []string      `json:"errorConditions"`
	Nodes            []Node        `json:"nodes"`
	Applications     []Application `json:"applications"`
	// Labels, and Platform, such as linux/amd64, are Portolan's own; the latter is there in a single service point alone.
	Labels   map[string]string `json:"labels,omitempty"`
	Platform string            `json:"platform,omitempty"`
	// UpdateError is why the last update failed, where UpdateStatus is UPDATE_FAILED.
	UpdateError string `json:"updateError,omitempty"`
	// HTTPProxySettings is there in a single service point alone, and only where a proxy is set.
	HTTPProxySettings *ProxySettings `json:"httpProxySettings,omitempty"`
	// Anycast is how it tells routers of anycast addresses, in a single service point alone.
	Anycast json.RawMessage `json:"anycast,omitempty"`
	// NodeCount is how many nodes it may have, in a single service point alone.
	NodeCount int `json:"nodeCount,omitempty"`
	// Pending says, of a single service point alone, that what it is to run has changed, and that it has not acknowledged that yet.
	Pending bool `json:"pending,omitempty"`
}

// Application is an application of a fleet service point (spec.md 2.3).
type Application struct {
	ID              string   `json:"id"`
	Name            string   `json:"name"`
	Version         string   `json:"version"`
	Status          string   `json:"status"`
	ErrorConditions []string `json:"errorConditions"`
	TargetVersion   string   `json:"targetVersion,omitempty"`
	UpdateStatus    string   `json:"updateStatus,omitempty"`
	// Configuration is there where the applications of one service point are asked for.
	Configuration json.RawMessage `json:"configuration,omitempty"`
	// Limits are there, too, where there are any.
	Limits           *Limits          `json:"limits,omitempty"`
	AnycastIPAddress []AnycastAddress `json:"anycastIPAddress"`
}

// AnycastAddress is an anycast address of an application.
type AnycastAddress struct {
	IPAddress    string `json:"ipAddress"`
	IsUseByAppID string `json:"isUseByAppId"`
	// IsUp says that it is announced.
	IsUp bool `json:"isUp"`
}

// ProxySettings is the HTTP proxy of a service point, without its password.
type ProxySettings struct {
	Host   string `json:"host"`
	Port   string `json:"port"`
	Scheme string `json:"scheme"`
	User   string `json:"user"`
}

// Node is a machine of a fleet service point (spec.md 2.2).
type Node struct {
	ID                 string `json:"id"`
	Name               string `json:"name"`
	Hostname           string `json:"hostname"`
	IPv4CIDRAddress    string `json:"ipv4CIDRAddress"`
	IPv4GatewayAddress string `json:"ipv4GatewayAddress"`
	IPv6CIDRAddress    string `json:"ipv6CIDRAddress"`
	IPv6GatewayAddress string `json:"ipv6GatewayAddress"`
	Addresses          []struct {
		Type         string `json:"type"`
		IPAddress    string `json:"ipAddress"`
		IsUseByAppID string `json:"isUseByAppId,omitempty"`
		IsUp         *bool  `json:"isUp,omitempty"`
	} `json:"addresses"`
	// DNSServers are there in a single service point alone; so are, where it may have several nodes, the others, which are Portolan's own.
	DNSServers []string `json:"dnsServers,omitempty"`
	// DiagnosticsURL is where the machine shows its diagnostics.
	DiagnosticsURL   string `json:"diagnosticsUrl,omitempty"`
	ConnectionStatus string `json:"connectionStatus,omitempty"`
	LastSeen         int64  `json:"lastSeen,omitempty"`
	Version          string `json:"version,omitempty"`
}

// Created is what the creation of a service point answers (spec.md 2.4). The key is shown once.
type Created struct {
	FleetInstanceID      string `json:"fleetInstanceID"`
	RegistrationKey      string `json:"registrationKey"`
	RegistrationEndpoint string `json:"registrationEndpoint"`
}

// Instances lists the fleet; name, where it is not empty, narrows it to the one of that name.
func (c *Client) Instances(ctx context.Context, name string) ([]Instance, error) {
	query := url.Values{}
	if name != "" {
		query.Set("name", name)
	}
	return c.InstancesBy(ctx, query)
}

// InstancesBy lists the service points whose fields are as the query says; label is NAME:VALUE, or NAME for any value. A field that the
// manager does not know is an error: it would list all.
func (c *Client) InstancesBy(ctx context.Context, query url.Values) ([]Instance, error) {
	path := "/user/api/v1/fleetInstances"
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	rs, err := c.ask(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rs.Body.Close() }()
	data, err := io.ReadAll(rs.Body)
	if err != nil {
		return nil, err
	}
	if rs.StatusCode >= http.StatusBadRequest {
		return nil, refusal(rs, data)
	}
	if ignored := rs.Header.Get("x-portolan-ignored"); ignored != "" {
		return nil, fmt.Errorf("service points have no field %s to be found by", strings.ReplaceAll(ignored, "?", ""))
	}
	var answer struct {
		Data []Instance `json:"data"`
	}
	err = json.Unmarshal(data, &answer)
	return answer.Data, err
}

// Instance reads one service point.
func (c *Client) Instance(ctx context.Context, id string) (i Instance, err error) {
	err = c.Do(ctx, http.MethodGet, "/user/api/v1/fleetInstances/"+url.PathEscape(id), nil, &i)
	return i, err
}

// CreateInstance makes a service point with minimal configuration, which may have so many nodes; 0 means one.
func (c *Client) CreateInstance(ctx context.Context, name, description string, nodes int) (created Created, err error) {
	body := map[string]any{"name": name}
	if description != "" {
		body["description"] = description
	}
	if nodes > 0 {
		body["nodeCount"] = nodes
	}
	err = c.Do(ctx, http.MethodPost, "/api/v1/fleetInstanceMinimumConfig", body, &created)
	return created, err
}

// Rekey gives a service point a new registration key; its certificate is refused from then on.
func (c *Client) Rekey(ctx context.Context, id string) (created Created, err error) {
	err = c.Do(ctx, http.MethodPost, "/user/api/v1/fleetInstances/"+url.PathEscape(id)+"/registrationKey", nil, &created)
	return created, err
}

// AddNode lets a service point have one node more, and gives what it enrols with.
func (c *Client) AddNode(ctx context.Context, id string) (created Created, err error) {
	err = c.Do(ctx, http.MethodPost, "/user/api/v1/fleetInstances/"+url.PathEscape(id)+"/nodes", nil, &created)
	return created, err
}

// RemoveNode takes a node away from a service point; its certificate is refused from then on.
func (c *Client) RemoveNode(ctx context.Context, id, node string) error {
	return c.Do(ctx, http.MethodDelete, "/user/api/v1/fleetInstances/"+url.PathEscape(id)+"/nodes/"+url.PathEscape(node), nil, nil)
}

func applicationsPath(servicePoint string) string {
	return "/user/api/v1/fleetInstances/" + url.PathEscape(servicePoint) + "/applications"
}

// Applications lists the applications of a service point.
func (c *Client) Applications(ctx context.Context, servicePoint string) ([]Application, error) {
	var answer struct {
		Data []Application `json:"data"`
	}
	err := c.Do(ctx, http.MethodGet, applicationsPath(servicePoint), nil, &answer)
	return answer.Data, err
}

// ApplicationChange is what is asked of an application; what is empty or nil stays as it is or, for a new one, is the manager's default.
type ApplicationChange struct {
	// Version is the one to deploy, or to be updated to.
	Version string
	// Configuration is a JSON object, whole.
	Configuration json.RawMessage
	// AnycastAddresses are all that it is to have.
	AnycastAddresses []string
	Limits           *Limits
}

// Limits are what an application may take of its machine; 0 means the default.
type Limits struct {
	MemoryMiB int `json:"memoryMiB,omitempty"`
	// CPUPercent is of one processor.
	CPUPercent int `json:"cpuPercent,omitempty"`
}

// body is the change as a request has it, with the version under its name there.
func (a ApplicationChange) body(version string) map[string]any {
	body := map[string]any{}
	if a.Version != "" {
		body[version] = a.Version
	}
	if len(a.Configuration) > 0 {
		body["configuration"] = a.Configuration
	}
	if a.AnycastAddresses != nil {
		body["anycastAddresses"] = a.AnycastAddresses
	}
	if a.Limits != nil {
		body["limits"] = a.Limits
	}
	return body
}

// Deploy lets a service point run an application, and gives its id.
func (c *Client) Deploy(ctx context.Context, servicePoint, name string, a ApplicationChange) (id string, err error) {
	body := a.body("version")
	body["name"] = name
	var answer struct {
		ID string `json:"id"`
	}
	err = c.Do(ctx, http.MethodPost, applicationsPath(servicePoint), body, &answer)
	return answer.ID, err
}

// ChangeApplication changes an application.
func (c *Client) ChangeApplication(ctx context.Context, servicePoint, id string, a ApplicationChange) error {
	return c.Do(ctx, http.MethodPatch, applicationsPath(servicePoint)+"/"+url.PathEscape(id), a.body("targetVersion"), nil)
}

// Undeploy lets a service point end and forget an application.
func (c *Client) Undeploy(ctx context.Context, servicePoint, id string) error {
	return c.Do(ctx, http.MethodDelete, applicationsPath(servicePoint)+"/"+url.PathEscape(id), nil, nil)
}

// ApplicationLog reads the end of the log of an application, of so many bytes; 0 means the manager's own bound.
func (c *Client) ApplicationLog(ctx context.Context, servicePoint, id string, bytes int) (text []byte, err error) {
	path := applicationsPath(servicePoint) + "/" + url.PathEscape(id) + "/log"
	if bytes > 0 {
		path += "?bytes=" + strconv.Itoa(bytes)
	}
	body, err := c.open(ctx, path, "text/plain, application/json")
	if err != nil {
		return nil, err
	}
	text, err = io.ReadAll(body)
	return text, errors.Join(err, body.Close())
}

// FleetEvent is a move of a field of a service point, or of one of its applications.
type FleetEvent struct {
	At     int64  `json:"at"` // Unix milliseconds
	Field  string `json:"field"`
	Before string `json:"before"`
	After  string `json:"after"`
	Reason string `json:"reason,omitempty"`
}

// FleetEvents lists the last moves of a service point, the earliest first.
func (c *Client) FleetEvents(ctx context.Context, id string) ([]FleetEvent, error) {
	var answer struct {
		Data []FleetEvent `json:"data"`
	}
	err := c.Do(ctx, http.MethodGet, "/user/api/v1/fleetInstances/"+url.PathEscape(id)+"/events", nil, &answer)
	return answer.Data, err
}

// DeleteInstance deletes a service point.
func (c *Client) DeleteInstance(ctx context.Context, id string) error {
	return c.Do(ctx, http.MethodDelete, "/user/api/v1/fleetInstances/"+url.PathEscape(id), nil, nil)
}

// Exchange gets an access token for a key set and uses it from then on.
func (c *Client) Exchange(ctx context.Context, clientID, clientSecret string) error {
	var answer struct {
		AccessToken string `json:"accessToken"`
	}
	err := c.Do(ctx, http.MethodPost, "/v1/api/authentication/token", map[string]any{"grantType": "ClientCredentials",
		"clientCredentials": map[string]string{"clientId": clientID, "clientSecret": clientSecret}}, &answer)
	if err == nil {
		c.Token = answer.AccessToken
	}
	return err
}

// Diagnostics reads the diagnostics of a service point; Base is http://ADDRESS:8083.
func (c *Client) Diagnostics(ctx context.Context, answer any) error {
	return c.Do(ctx, http.MethodGet, "/api/v1/diagnostics", nil, answer)
}
