package client

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Deployment is the status of a deployment (docs/dns.md).
type Deployment struct {
	ID    int64  `json:"id"`
	Type  string `json:"type"`
	State string `json:"state"`
	// Message describes the result for users.
	Message string `json:"message"`
	// PercentComplete is the progress, 0 to 100.
	PercentComplete int64 `json:"percentComplete"`
}

// Ended reports whether the deployment has ended.
func (d *Deployment) Ended() bool {
	return slices.Contains([]string{"COMPLETED", "COMPLETED_WITH_WARNINGS", "FAILED", "CANCELLED"}, d.State)
}

// DeployServer starts a deployment of DNS to a server. kind is FullDeployment, DifferentialDeployment or ValidationDeployment.
func (c *Client) DeployServer(ctx context.Context, server int64, kind string) (d *Deployment, err error) {
	return c.DeployService(ctx, server, kind, "DNS")
}

// DeployService starts a deployment of a service, such as DNS or TFTP, to a server. kind is as for DeployServer.
func (c *Client) DeployService(ctx context.Context, server int64, kind, service string) (d *Deployment, err error) {
	d = &Deployment{}
	return d, c.Create(ctx, fmt.Sprintf("servers/%d/deployments", server), map[string]string{"type": kind, "service": service}, d)
}

// DeployZone starts a deployment of the user's changes to a zone and to the other zones that its server writes.
func (c *Client) DeployZone(ctx context.Context, zone int64) (d *Deployment, err error) {
	d = &Deployment{}
	return d, c.Create(ctx, fmt.Sprintf("zones/%d/deployments", zone), map[string]string{"type": "QuickDeployment"}, d)
}

// WaitForDeployment waits until a deployment has ended and returns its final status.
func (c *Client) WaitForDeployment(ctx context.Context, id int64) (*Deployment, error) {
	for wait := 50 * time.Millisecond; ; wait = min(wait*2, time.Second) {
		d := &Deployment{}
		if err := c.Get(ctx, fmt.Sprintf("deployments/%d", id), d); err != nil || d.Ended() {
			return d, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return d, ctx.Err()
		}
	}
}
