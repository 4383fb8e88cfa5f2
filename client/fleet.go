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
	// Labels, and Platform, such as linux/amd64, are extensions of Portolan. Platform is set only in the response for a single service point.
	Labels   map[string]string `json:"labels,omitempty"`
	Platform string            `json:"platform,omitempty"`
	// UpdateError is the reason that the last update failed, if UpdateStatus is UPDATE_FAILED.
	UpdateError string `json:"updateError,omitempty"`
	// HTTPProxySettings is set only in the response for a single service point, and only if a proxy is configured.
	HTTPProxySettings *ProxySettings `json:"httpProxySettings,omitempty"`
	// Anycast is the configuration of anycast routing. It is set only in the response for a single service point.
	Anycast json.RawMessage `json:"anycast,omitempty"`
	// NodeCount is the maximum number of nodes. It is set only in the response for a single service point.
	NodeCount int `json:"nodeCount,omitempty"`
	// Pending reports that the desired state has changed and that the service point has not acknowledged it yet. It is set only in the
	// response for a single service point.
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
	// Configuration is set only in the list of one service point's applications.
	Configuration json.RawMessage `json:"configuration,omitempty"`
	// Limits are set in that list only, if there are any.
	Limits           *Limits          `json:"limits,omitempty"`
	AnycastIPAddress []AnycastAddress `json:"anycastIPAddress"`
}

// AnycastAddress is an anycast address of an application.
type AnycastAddress struct {
	IPAddress    string `json:"ipAddress"`
	IsUseByAppID string `json:"isUseByAppId"`
	// IsUp reports that the address is announced.
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
	// DNSServers are set only in the response for a single service point. The fields below are extensions of Portolan. They are set there if
	// the service point may have several nodes.
	DNSServers []string `json:"dnsServers,omitempty"`
	// DiagnosticsURL is the URL of the machine's diagnostics.
	DiagnosticsURL   string `json:"diagnosticsUrl,omitempty"`
	ConnectionStatus string `json:"connectionStatus,omitempty"`
	LastSeen         int64  `json:"lastSeen,omitempty"`
	Version          string `json:"version,omitempty"`
}

// Created is the response to the creation of a service point (spec.md 2.4). The key is not shown again.
type Created struct {
	FleetInstanceID      string `json:"fleetInstanceID"`
	RegistrationKey      string `json:"registrationKey"`
	RegistrationEndpoint string `json:"registrationEndpoint"`
}

// Instances lists the fleet. If name is not empty, it lists only the service point of that name.
func (c *Client) Instances(ctx context.Context, name string) ([]Instance, error) {
	query := url.Values{}
	if name != "" {
		query.Set("name", name)
	}
	return c.InstancesBy(ctx, query)
}

// InstancesBy lists the service points that match the query, whose keys are the filter fields of the API, such as status. The value of the
// key label is NAME:VALUE, or NAME for any value. It returns an error if the manager does not know a field, because the manager would
// ignore the field and list all service points.
func (c *Client) InstancesBy(ctx context.Context, query url.Values) ([]Instance, error) {
	path := FleetPath + "fleetInstances"
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
		return nil, fmt.Errorf("list service points: the manager does not know the field %s; remove it or update the manager",
			strings.ReplaceAll(ignored, "?", ""))
	}
	var answer struct {
		Data []Instance `json:"data"`
	}
	err = json.Unmarshal(data, &answer)
	return answer.Data, err
}

// Instance reads one service point.
func (c *Client) Instance(ctx context.Context, id string) (i Instance, err error) {
	err = c.Do(ctx, http.MethodGet, FleetPath+"fleetInstances/"+url.PathEscape(id), nil, &i)
	return i, err
}

// CreateInstance creates a service point with minimal configuration. nodes is the maximum number of nodes; 0 means one.
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

// Rekey creates a new registration key for a service point. The manager rejects its certificate from then on.
func (c *Client) Rekey(ctx context.Context, id string) (created Created, err error) {
	err = c.Do(ctx, http.MethodPost, FleetPath+"fleetInstances/"+url.PathEscape(id)+"/registrationKey", nil, &created)
	return created, err
}

// AddNode allows a service point one more node and returns the registration data for it.
func (c *Client) AddNode(ctx context.Context, id string) (created Created, err error) {
	err = c.Do(ctx, http.MethodPost, FleetPath+"fleetInstances/"+url.PathEscape(id)+"/nodes", nil, &created)
	return created, err
}

// RemoveNode removes a node from a service point. The manager rejects the node's certificate from then on.
func (c *Client) RemoveNode(ctx context.Context, id, node string) error {
	return c.Do(ctx, http.MethodDelete, FleetPath+"fleetInstances/"+url.PathEscape(id)+"/nodes/"+url.PathEscape(node), nil, nil)
}

func applicationsPath(servicePoint string) string {
	return FleetPath + "fleetInstances/" + url.PathEscape(servicePoint) + "/applications"
}

// Applications lists the applications of a service point.
func (c *Client) Applications(ctx context.Context, servicePoint string) ([]Application, error) {
	var answer struct {
		Data []Application `json:"data"`
	}
	err := c.Do(ctx, http.MethodGet, applicationsPath(servicePoint), nil, &answer)
	return answer.Data, err
}

// ApplicationChange is a change of an application. Empty and nil fields stay unchanged; for a new application they mean the manager's
// default.
type ApplicationChange struct {
	// Version is the version to deploy or to update to.
	Version string
	// Configuration is the complete configuration, a JSON object.
	Configuration json.RawMessage
	// AnycastAddresses is the complete list of anycast addresses.
	AnycastAddresses []string
	Limits           *Limits
}

// Limits are the resource limits of an application on its machine; 0 means the default.
type Limits struct {
	MemoryMiB int `json:"memoryMiB,omitempty"`
	// CPUPercent is a percentage of one processor.
	CPUPercent int `json:"cpuPercent,omitempty"`
}

// body returns the request body. version is the name of its member for the version.
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

// Deploy deploys an application to a service point and returns the application's ID.
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

// Undeploy stops an application of a service point and removes it.
func (c *Client) Undeploy(ctx context.Context, servicePoint, id string) error {
	return c.Do(ctx, http.MethodDelete, applicationsPath(servicePoint)+"/"+url.PathEscape(id), nil, nil)
}

// ApplicationLog reads the last bytes of the log of an application; 0 means the manager's limit.
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

// FleetEvent is a change of a field of a service point or of one of its applications.
type FleetEvent struct {
	At     int64  `json:"at"` // Unix milliseconds
	Field  string `json:"field"`
	Before string `json:"before"`
	After  string `json:"after"`
	Reason string `json:"reason,omitempty"`
}

// FleetEvents lists the latest changes of a service point, oldest first.
func (c *Client) FleetEvents(ctx context.Context, id string) ([]FleetEvent, error) {
	var answer struct {
		Data []FleetEvent `json:"data"`
	}
	err := c.Do(ctx, http.MethodGet, FleetPath+"fleetInstances/"+url.PathEscape(id)+"/events", nil, &answer)
	return answer.Data, err
}

// DeleteInstance deletes a service point.
func (c *Client) DeleteInstance(ctx context.Context, id string) error {
	return c.Do(ctx, http.MethodDelete, FleetPath+"fleetInstances/"+url.PathEscape(id), nil, nil)
}

// Exchange requests an access token for a key set. The client uses the token from then on.
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

// Diagnostics reads the diagnostics of a service point. Base must be http://ADDRESS:8083.
func (c *Client) Diagnostics(ctx context.Context, answer any) error {
	return c.Do(ctx, http.MethodGet, "/api/v1/diagnostics", nil, answer)
}
