package server

import (
	"encoding/binary"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"portolan/internal/testkit/apitest"
)

// ntpServer is an NTP server of stratum 3 (RFC 5905, section 7.3) that is so far ahead.
func ntpServer(t *testing.T, ahead time.Duration) string {
	t.Helper()
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			rq := make([]byte, 512)
			n, from, err := l.ReadFrom(rq)
			if err != nil {
				return
			}
			if n < 48 {
				continue
			}
			now := time.Now().Add(ahead)
			stamp := uint64(now.Unix()+2_208_988_800)<<32 | uint64(now.Nanosecond())<<32/1e9 //nolint:gosec // from 1900 on
			rs := make([]byte, 48)
			rs[0], rs[1], rs[2], rs[3] = 4<<3|4, 3, 4, 0xe9
			binary.BigEndian.PutUint32(rs[12:], 0x7f000001)
			binary.BigEndian.PutUint64(rs[16:], stamp-1<<32)
			copy(rs[24:32], rq[40:48])
			binary.BigEndian.PutUint64(rs[32:], stamp)
			binary.BigEndian.PutUint64(rs[40:], stamp)
			if _, err := l.WriteTo(rs, from); err != nil {
				return
			}
		}
	}()
	return l.LocalAddr().String()
}

// TestServicePointsV4 checks the API of Service Points v4: a service point is created, configured, enrolled, given a service and deleted.
// Unsupported settings are refused.
func TestServicePointsV4(t *testing.T) {
	m := startManager(t)
	const path = "/user/api/v1/servicePoints"
	m.Refused(400, "MissingRequiredField", "name", "POST", path, `{"description":"x"}`)
	for name, value := range map[string]string{"hostname": `"x"`, "ipv4CIDRAddress": `"192.0.2.1/24"`, "sshPublicKey": `"k"`,
		"consolePassword": `"p"`, "dnsServers": `["192.0.2.53"]`, "httpProxySettings": `{"host":"p"}`} {
		m.Refused(400, "InvalidResourceFieldValue", name, "POST", path, fmt.Sprintf(`{"name":"four",%q:%s}`, name, value))
	}
	m.Refused(400, "InvalidResourceFieldValue", "ntp", "POST", path, `{"name":"four","ntpServers":["a b"]}`)
	created := m.Want(202, "POST", path, `{"name":"four","description":"d","hostname":"","dnsServers":[],"ntpServers":[]}`)
	id := created.Text("id")
	fleet, _ := m.create("other")
	if r := m.Want(200, "GET", path, ""); r.Text("data.0.id") != id || r.Get("data.1") != nil {
		t.Errorf("the list is %s", r.Body)
	}
	m.Refused(404, "ResourceNotFound", fleet, "GET", path+"/"+fleet, "")
	m.Refused(404, "ResourceNotFound", fleet, "DELETE", path+"/"+fleet, "")
	_, stop := m.agent(filepath.Join(t.TempDir(), "state"), "v4", m.RegistrationEndpoint(), created.Text("registrationKey"))
	defer stop()
	var r reply
	apitest.Eventually(t, "it is healthy and has reported", func() bool {
		r = m.Want(200, "GET", path+"/"+id, "")
		return r.Text("status") == "HEALTHY" && r.Text("resources.cpu.cores") != "0"
	})
	for _, field := range []string{"hostname", "ipv4CIDRAddress", "addresses.0.ipAddress", "platform", "resources.cpu.cores",
		"resources.memory.totalMB",
		"resources.disk.varTotalMB", "originalVersion", "anycastStatus.status", "ntpStatus.synchronized"} {
		if r.Text(field) == "" || r.Text(field) == "0" {
			t.Errorf("%s is %v in %s", field, r.Get(field), r.Body)
		}
	}

	settings := path + "/" + id + "/settings"
	m.Refused(400, "InvalidResourceFieldValue", "clientNetworks", "PATCH", settings, `{"ntpConfiguration":{"clientNetworks":["192.0.2.0/24"]}}`)
	m.Refused(400, "InvalidResourceFieldValue", "servers", "PATCH", settings, `{"ntpConfiguration":{"servers":["x:0"]}}`)
	m.Refused(400, "InvalidResourceFieldValue", "servers", "PATCH", settings, `{"ntpConfiguration":{"servers":"x"}}`)
	good, wrong := ntpServer(t, 0), ntpServer(t, time.Hour)
	m.Want(200, "PATCH", settings, fmt.Sprintf(`{"name":"vier","ntpConfiguration":{"servers":[%q]}}`, good))
	apitest.Eventually(t, "the NTP server is asked", func() bool {
		r := m.Want(200, "GET", path+"/"+id, "")
		return r.Text("ntpStatus.stratum") == "3" && r.Get("ntpStatus.synchronized") == true && r.Text("name") == "vier"
	})
	m.Want(200, "PATCH", settings, fmt.Sprintf(`{"ntpConfiguration":{"servers":[%q]}}`, wrong))
	apitest.Eventually(t, "the clock is off", func() bool {
		r := m.Want(200, "GET", path+"/"+id, "")
		ahead, _ := strconv.ParseFloat(r.Text("ntpStatus.offsetMillis"), 64)
		return r.Text("ntpStatus.stratum") == "3" && r.Get("ntpStatus.synchronized") == false && ahead > 3_599_000 && ahead < 3_601_000
	})

	services := path + "/" + id + "/serviceInstances"
	m.Refused(400, "MissingRequiredField", "serviceDescriptorID", "POST", services, `{"name":"probe"}`)
	m.Refused(400, "InvalidResourceFieldValue", "serviceDescriptorID", "POST", services, `{"serviceDescriptorID":"dhcp-1"}`)
	m.Refused(400, "InvalidResourceFieldValue", "parameters", "POST", services, `{"serviceDescriptorID":"http-probe-service-1.0.0","parameters":{}}`)
	m.Refused(400, "InvalidResourceFieldValue", "portLabel", "POST", services,
		`{"serviceDescriptorID":"dns-resolver-service-1.0.0","ingressEndpoints":[{"portLabel":"management","addresses":["192.0.2.1"]}]}`)
	m.Refused(404, "ResourceNotFound", fleet, "POST", path+"/"+fleet+"/serviceInstances", `{"serviceDescriptorID":"http-probe-service-1.0.0"}`)
	instance := m.Want(202, "POST", services, `{"serviceDescriptorID":"http-probe-service-1.0.0","name":"my probe",`+
		`"parameters":[{"name":"targets","value":"[{\"address\":\"127.0.0.1\"}]"}]}`).Text("id")
	r = m.Want(200, "GET", path+"?serviceName=http-probe-service", "")
	if r.Text("data.0.applications.0.serviceName") != "http-probe-service" || r.Text("data.0.applications.0.name") != "my probe" {
		t.Errorf("with a service it is %s", r.Body)
	}
	if r := m.Want(200, "GET", path+"?serviceName=dns-resolver-service", ""); r.Get("data.0") != nil {
		t.Errorf("with a resolver there is %s", r.Body)
	}
	at := "/user/api/v1/serviceInstances/" + instance
	m.Want(202, "PATCH", at, `{"parameters":[{"name":"intervalSeconds","value":"60"}]}`)
	if got := string(m.Want(200, "GET", "/user/api/v1/fleetInstances/"+id+"/applications/"+instance, "").Body); !strings.Contains(got,
		`"intervalSeconds":60`) || !strings.Contains(got, "127.0.0.1") {
		t.Errorf("configured anew it is %s", got)
	}
	m.Refused(400, "InvalidResourceFieldValue", "serviceDescriptorID", "PATCH", at, `{"serviceDescriptorID":"dns-resolver-service-1.0.0"}`)
	m.Refused(400, "MissingRequiredField", "version", "PATCH", at, `{}`)
	m.Refused(404, "ResourceNotFound", "nothing", "PATCH", "/user/api/v1/serviceInstances/nothing", `{"version":"2"}`)
	m.Want(202, "DELETE", at, "")
	m.Want(204, "DELETE", path+"/"+id, "")
	m.Refused(404, "ResourceNotFound", id, "GET", path+"/"+id, "")
}
