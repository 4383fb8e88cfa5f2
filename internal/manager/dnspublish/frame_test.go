package dnspublish_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/manager/dnspublish"
	"portolan/internal/testkit/apitest"
)

// structure makes random changes of zones, roles, options and records.
type structure struct {
	*manager
	random              *rand.Rand
	configuration, view string
	block               string
	interfaces, servers []string
	ids                 []string // the paths of resources to change or delete
	made                int
}

// pick returns one of the values.
func (s *structure) pick(values ...string) string { return values[s.random.IntN(len(values))] }

// change makes a random change, which may be refused, and returns it as text.
func (s *structure) change() string {
	names := []string{"a.test", "b.a.test", "c.b.a.test", "d.a.test", "e.test", "10.in-addr.arpa", "1.10.in-addr.arpa"}
	zone := func() string {
		r := s.Do("GET", "/api/v2/zones?"+apitest.Filter("absoluteName:'"+s.pick(names...)+"'"), "")
		return "/api/v2/zones/" + r.Text("data.0.id")
	}
	role := func() string {
		return fmt.Sprintf(`{"type":"DNSDeploymentRole","roleType":"%s","view":{"id":%s},"interfaces":[{"id":%s}]}`,
			s.pick("PRIMARY", "SECONDARY", "HIDDEN_PRIMARY", "NONE"), s.view, s.pick(s.interfaces...))
	}
	method := "POST"
	var path, body string
	switch s.random.IntN(16) {
	case 0, 1:
		path, body = "/api/v2/views/"+s.view+"/zones", `{"type":"Zone","deploymentEnabled":true,"absoluteName":"`+s.pick(names...)+`"}`
	case 2:
		method, path = "DELETE", zone()
	case 3:
		method, path, body = "PATCH", zone(), `{"name":"`+s.pick("a", "b", "d", "e")+`"}`
	case 4:
		path, body = zone()+"/deploymentRoles", role()
	case 5, 6:
		path = zone() + "/resourceRecords"
		body = fmt.Sprintf(`{"type":"HostRecord","name":"%s","addresses":[{"type":"IPv4Address","address":"10.%d.0.%d"}],"reverseRecord":true}`,
			s.pick("ns1", "ns2", "www", "ns1.b", "x.d", ""), s.random.IntN(2), 1+s.random.IntN(200))
	case 7:
		path = zone() + "/resourceRecords"
		body = fmt.Sprintf(`{"type":"GenericRecord","name":"%s","recordType":"NS","rdata":"%s."}`, s.pick("", "sub"),
			s.pick("ns1.a.test", "ns1.b.a.test", "ns.example.org", "b.a.test"))
	case 8:
		path = zone() + "/resourceRecords"
		body = `{"type":"TXTRecord","name":"` + s.pick("", "ns1", "txt", "ns1.b") + `","text":"x"}`
	case 9:
		path = s.pick(zone(), "/api/v2/views/"+s.view) + "/deploymentOptions"
		body = fmt.Sprintf(`{"type":"StartOfAuthority","name":"start-of-authority","value":[%d,null,null,null,null,null,null,null]}`,
			100+s.random.IntN(100))
	case 10:
		method, path, body = "PATCH", zone(), `{"deploymentEnabled":`+s.pick("true", "true", "false")+`}`
	case 11:
		path = "/api/v2/blocks/" + s.block + "/networks"
		body = fmt.Sprintf(`{"type":"IPv4Network","range":"10.%d.%d.0/24"}`, s.random.IntN(2), s.random.IntN(3))
	case 12:
		r := s.Do("GET", "/api/v2/networks", "")
		path, body = "/api/v2/networks/"+r.Text("data."+strconv.Itoa(s.random.IntN(max(1, r.Count())))+".id")+"/deploymentRoles", role()
	case 13: // beside the changes
		if len(s.servers) == 0 {
			return ""
		}
		r := s.Do("POST", s.pick(s.servers...)+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
		return fmt.Sprint("a full deployment ", r.StatusCode)
	default:
		if len(s.ids) == 0 {
			return ""
		}
		i := s.random.IntN(len(s.ids))
		method, path = "DELETE", s.ids[i]
		s.ids = slices.Delete(s.ids, i, i+1)
	}
	r := s.Do(method, path, body)
	if r.StatusCode == 201 && method == "POST" {
		of := path[strings.LastIndexByte(path, '/'):]
		s.ids = append(s.ids, "/api/v2"+of+"/"+r.Text("id"))
	}
	if r.StatusCode < 300 {
		s.made++
	}
	return fmt.Sprint(method, " ", path, " ", body, " ", r.StatusCode)
}

// deployAll deploys all servers.
func (s *structure) deployAll() {
	s.T.Helper()
	for i, server := range s.servers {
		if state := s.deployFully(server, fmt.Sprint("point", i)); state == "FAILED" {
			s.T.Fatalf("a deployment of server %d failed", i)
		}
	}
}

// TestPartsOfZonesEqualWholeZones checks that changes of a live view, which examine parts of its zones, deploy the content that is
// computed from the complete zones.
func TestPartsOfZonesEqualWholeZones(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { comparePartsOfZones(t, seed, 250, true) })
	}
}

// TestChangesSinceDeploymentsEqualWholeZones checks the same for full deployments of a view that is not live, which examine what has
// changed since the deployments before.
func TestChangesSinceDeploymentsEqualWholeZones(t *testing.T) {
	seeds, changes := uint64(1), 100
	if os.Getenv(apitest.AllTests) != "" {
		seeds, changes = 3, 250
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { comparePartsOfZones(t, seed, changes, false) })
	}
}

// comparePartsOfZones makes random changes, and compares the deployed content with that of whole zones after some of them.
func comparePartsOfZones(t *testing.T, seed uint64, changes int, live bool) {
	s := &structure{manager: start(t), random: rand.New(rand.NewPCG(seed, 45))}
	s.configuration = s.ID("/api/v2/configurations", `{"name":"main"}`)
	at := "/api/v2/configurations/" + s.configuration
	s.view = s.ID(at+"/views", `{"name":"live"}`)
	s.block = s.ID(at+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	id, err := strconv.ParseInt(s.configuration, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"ns1.a.test", "ns1.b.a.test", "ns.example.org"} {
		server := "/api/v2/servers/" + s.ID(at+"/servers", fmt.Sprintf(`{"type":"Server","name":"server%d","profile":"DNS_DHCP_SERVER_20",`+
			`"servicePoint":"point%d","interfaces":[{"type":"NetworkInterface","name":"%s","managementAddress":"192.0.2.%d",`+
			`"servicesIPv4Address":"198.51.100.%d"}]}`, i, i, name, i+1, i+1))
		s.servers = append(s.servers, server)
		s.interfaces = append(s.interfaces, s.Want(200, "GET", server+"/interfaces", "").Text("data.0.id"))
	}
	s.ID("/api/v2/views/"+s.view+"/deploymentRoles", `{"type":"DNSDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+
		s.interfaces[0]+`}]}`)
	s.deployAll()
	if live {
		s.Want(200, "PATCH", "/api/v2/views/"+s.view, `{"liveDeployment":true}`)
	}
	var last []string
	most := 0
	for range changes {
		last = append(last, s.change())
		if s.random.IntN(3) > 0 { // some changes are deployed together
			continue
		}
		if !live {
			s.deployAll()
		}
		var differences []string
		apitest.Eventually(t, "the changes are deployed", func() bool {
			done := false
			if err := s.Store.View(t.Context(), func(tx *store.Tx) error {
				zones, all, pending, err := dnspublish.Deployed(tx, s.Address, id)
				differences, done, most = all, !pending, max(most, zones)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			return done
		})
		if len(differences) > 0 {
			t.Fatalf("after\n%s\n%s", strings.Join(last, "\n"), strings.Join(differences, "\n"))
		}
		last = nil
	}
	if s.made < changes/5 || most < 4 {
		t.Errorf("%d changes were made, and at most %d zones deployed", s.made, most)
	}
}
