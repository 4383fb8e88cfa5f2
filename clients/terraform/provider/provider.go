// Package provider implements the Portolan provider for Terraform and OpenTofu. Its resources are derived from the declarations of the
// manager: each type is a resource, and each field an attribute, with the same names in snake case.
package provider

import (
	"context"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"portolan/client"
	"portolan/internal/manager/model"
)

// kinds are the types that are available as resources.
var kinds = []string{"Configuration", "View", "Zone", "IPv4Block", "IPv4Network", "IPv4DHCPRange", "IPv4Address", "IPv6Block", "IPv6Network",
	"IPv6Address", "HostRecord", "AliasRecord", "MXRecord", "TXTRecord", "SRVRecord", "GenericRecord", "Device", "TagGroup", "Tag"}

// Provider is the provider.
type Provider struct{ version string }

// New returns the constructor of the provider.
func New(version string) func() provider.Provider {
	return func() provider.Provider { return &Provider{version} }
}

// settings are the settings of the provider.
type settings struct {
	URL           types.String `tfsdk:"url"`
	Token         types.String `tfsdk:"token"`
	Configuration types.String `tfsdk:"configuration"`
}

// manager is the client of the manager. into is the default path that resources belong below.
type manager struct {
	*client.Client
	into string
}

// Metadata sets the name of the provider.
func (p *Provider) Metadata(_ context.Context, _ provider.MetadataRequest, rs *provider.MetadataResponse) {
	rs.TypeName, rs.Version = "portolan", p.version
}

// Schema describes the settings of the provider.
func (p *Provider) Schema(_ context.Context, _ provider.SchemaRequest, rs *provider.SchemaResponse) {
	rs.Schema = schema.Schema{Description: "Manages address space and DNS names in Portolan.", Attributes: map[string]schema.Attribute{
		"url":           schema.StringAttribute{Optional: true, Description: "The URL of the manager. Default: PORTOLAN_URL."},
		"token":         schema.StringAttribute{Optional: true, Sensitive: true, Description: "A bearer token. Default: PORTOLAN_TOKEN."},
		"configuration": schema.StringAttribute{Optional: true, Description: "The name of the configuration of the resources."},
	}}
}

// Configure creates the client.
func (p *Provider) Configure(ctx context.Context, rq provider.ConfigureRequest, rs *provider.ConfigureResponse) {
	var s settings
	rs.Diagnostics.Append(rq.Config.Get(ctx, &s)...)
	or := func(value types.String, variable, otherwise string) string {
		if text := value.ValueString(); text != "" {
			return text
		}
		if text := os.Getenv(variable); text != "" {
			return text
		}
		return otherwise
	}
	m := &manager{Client: &client.Client{Base: or(s.URL, "PORTOLAN_URL", "http://127.0.0.1:8080"), Token: or(s.Token, "PORTOLAN_TOKEN", ""),
		Agent: "terraform-provider-portolan/" + p.version}}
	if m.Token == "" {
		rs.Diagnostics.AddError("No token", "Set token in the provider, or PORTOLAN_TOKEN.")
	}
	if name := s.Configuration.ValueString(); name != "" {
		m.into = "configurations/" + name
	}
	rs.ResourceData, rs.DataSourceData = m, m
}

// Resources returns the resources, which are derived from the declarations.
func (p *Provider) Resources(context.Context) (all []func() resource.Resource) {
	a := model.NewAPI(nil)
	for _, name := range kinds {
		t := a.TypeNamed(name)
		all = append(all, func() resource.Resource { return newKind(a, t) })
	}
	return all
}

// DataSources returns the data sources for the same types.
func (p *Provider) DataSources(context.Context) (all []func() datasource.DataSource) {
	a := model.NewAPI(nil)
	for _, name := range kinds {
		t := a.TypeNamed(name)
		all = append(all, func() datasource.DataSource { return found{newKind(a, t)} })
	}
	return all
}
