package provider

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"portolan/client"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/model"
	"portolan/internal/manager/server"
	"portolan/internal/servicepoint/application/all"
)

// startManager starts a manager for the test and returns a client.
func startManager(t *testing.T) *client.Client {
	t.Helper()
	m, err := server.Start(context.Background(), server.Options{Programs: all.Programs(), Data: t.TempDir(), Listen: "127.0.0.1:0", CheckinListen: "127.0.0.1:0",
		AdminPassword: "a-password-for-tests", Log: slog.New(slog.DiscardHandler), LogLevel: "error"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	token, err := m.Identity.CreateToken(context.Background(), identity.Grant{Name: "test", Role: authz.Administrator, User: "admin"})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PORTOLAN_URL", m.URL())
	t.Setenv("PORTOLAN_TOKEN", token)
	return &client.Client{Base: m.URL(), Token: token}
}

var factories = map[string]func() (tfprotov6.ProviderServer, error){"portolan": providerserver.NewProtocol6WithError(New("test")())}

// site returns a Terraform configuration with the name of a network and the TTL of a host.
func site(network string, ttl int, more string) string {
	return fmt.Sprintf(`
provider "portolan" { configuration = "main" }
resource "portolan_configuration" "main" { name = "main" }
resource "portolan_ipv4_block" "harbour" {
  range      = "10.0.0.0/8"
  name       = "Harbour"
  depends_on = [portolan_configuration.main]
}
resource "portolan_ipv4_network" "office" {
  range      = "10.1.0.0/24"
  name       = %q
  location   = "NO"
  depends_on = [portolan_ipv4_block.harbour]
}
resource "portolan_ipv4_network" "next" {
  in   = "blocks/${portolan_ipv4_block.harbour.range}/networks"
  size = "/26"
  name = "next"
  depends_on = [portolan_ipv4_network.office]
}
resource "portolan_ipv4_address" "printer" {
  in          = "networks/${portolan_ipv4_network.office.range}/addresses"
  state       = "STATIC"
  name        = "printer"
  mac_address = "00:00:5e:00:53:01"
}
resource "portolan_view" "inside" {
  name       = "inside"
  depends_on = [portolan_configuration.main]
}
resource "portolan_zone" "lab" {
  absolute_name = "lab.example"
  view          = portolan_view.inside.name
}
resource "portolan_host_record" "www" {
  absolute_name = "www.${portolan_zone.lab.absolute_name}"
  view          = portolan_view.inside.name
  addresses     = [portolan_ipv4_address.printer.address]
  ttl           = %d
}
%s`, network, ttl, more)
}

// TestAcceptance creates resources, checks that an unchanged plan is empty, changes them, reverts a change of another client, and deletes
// them.
func TestAcceptance(t *testing.T) {
	if os.Getenv("TF_ACC") == "" {
		t.Skip("needs OpenTofu or Terraform: make terraform-test")
	}
	c := startManager(t)
	check := resource.TestCheckResourceAttr
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: factories, Steps: []resource.TestStep{
		{Config: site("office", 300, ""), Check: resource.ComposeAggregateTestCheckFunc(
			check("portolan_ipv4_network.office", "gateway", "10.1.0.1"),
			check("portolan_ipv4_network.next", "range", "10.0.0.0/26"),
			check("portolan_ipv4_address.printer", "address", "10.1.0.2"),
			check("portolan_ipv4_address.printer", "mac_address", "00:00:5e:00:53:01"),
			check("portolan_host_record.www", "addresses.0", "10.1.0.2"))},
		{Config: site("lab", 60, `resource "portolan_alias_record" "web" {
  absolute_name = "web.lab.example"
  view          = "inside"
  linked_record = portolan_host_record.www.absolute_name
}`), Check: resource.ComposeAggregateTestCheckFunc(check("portolan_ipv4_network.office", "name", "lab"),
			check("portolan_host_record.www", "ttl", "60"), check("portolan_alias_record.web", "linked_record", "www.lab.example"))},
		{Config: site("lab", 60, `
data "portolan_ipv4_network" "office" {
  range      = "10.1.0.0/24"
  depends_on = [portolan_ipv4_network.office]
}
data "portolan_ipv4_address" "printer" {
  filter     = "name:startsWith('print')"
  depends_on = [portolan_ipv4_address.printer]
}
data "portolan_host_record" "www" {
  absolute_name = portolan_host_record.www.absolute_name
}
data "portolan_configuration" "main" {
  name       = "main"
  depends_on = [portolan_configuration.main]
}
`), Check: resource.ComposeAggregateTestCheckFunc(
			resource.TestCheckResourceAttrPair("data.portolan_ipv4_network.office", "id", "portolan_ipv4_network.office", "id"),
			check("data.portolan_ipv4_network.office", "name", "lab"), check("data.portolan_ipv4_network.office", "gateway", "10.1.0.1"),
			check("data.portolan_ipv4_network.office", "location", "NO"), check("data.portolan_ipv4_address.printer", "address", "10.1.0.2"),
			check("data.portolan_ipv4_address.printer", "mac_address", "00-00-5E-00-53-01"), check("data.portolan_host_record.www", "ttl", "60"),
			check("data.portolan_host_record.www", "addresses.0", "10.1.0.2"),
			resource.TestCheckResourceAttrPair("data.portolan_configuration.main", "id", "portolan_configuration.main", "id"))},
		{Config: site("lab", 60, `data "portolan_ipv4_network" "none" { range = "192.0.2.0/24" }`),
			ExpectError: regexp.MustCompile("there is none with type:'IPv4Network' and range:'192.0.2.0/24'")},
		{Config: site("lab", 60, `data "portolan_ipv4_network" "many" { filter = "range:within('10.0.0.0/8')" }`),
			ExpectError: regexp.MustCompile("there are several")},
		{Config: site("lab", 60, `data "portolan_ipv4_network" "any" {}`), ExpectError: regexp.MustCompile("set one of id, name, range or")},
		{PreConfig: func() { // another client
			ids, err := c.IDs(t.Context(), "networks", "range:'10.1.0.0/24'", 1)
			if err == nil {
				err = c.Change(t.Context(), fmt.Sprint("networks/", ids[0]), map[string]any{"name": "elsewhere", "location": nil}, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, Config: site("lab", 60, ""), Check: func(*terraform.State) error {
			page, err := c.List(t.Context(), "networks", client.Query{Filter: "range:'10.1.0.0/24' and name:'lab' and location.code:'NO'", Limit: 1})
			if err == nil && page.Count != 1 {
				err = fmt.Errorf("the network was not put right")
			}
			return err
		}},
	}, CheckDestroy: func(*terraform.State) error {
		ids, err := c.IDs(t.Context(), "configurations", "name:'main'", 1)
		if err == nil && len(ids) > 0 {
			err = fmt.Errorf("the configuration is still there")
		}
		return err
	}})
}

// TestNames checks the names of attributes, and that every required field is an attribute.
func TestNames(t *testing.T) {
	for name, want := range map[string]string{"IPv4Network": "ipv4_network", "absoluteName": "absolute_name", "MXRecord": "mx_record",
		"IPv4DHCPRange": "ipv4_dhcp_range", "macAddress": "mac_address", "TTL": "t_t_l"} {
		if got := snake(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	a := model.NewAPI(nil)
	for _, name := range kinds {
		tt := a.TypeNamed(name)
		if tt == nil {
			t.Errorf("the type %s does not exist", name)
			continue
		}
		for _, f := range tt.Fields {
			if f.OnPost && typeOf(f) == nil {
				t.Errorf("%s.%s is required, and no attribute", name, f.Name)
			}
		}
	}
}
