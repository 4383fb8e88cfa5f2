package convert

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestEmptyMembers checks that members which the source leaves empty are null if requested, and are otherwise omitted.
func TestEmptyMembers(t *testing.T) {
	d, err := Phpipam("", []byte("Subnet,Mask,Description\n10.1.0.0,24,\n"), []byte("IP address,hostname,mac\n10.1.0.5,,\n"))
	if err != nil {
		t.Fatal(err)
	}
	d.Settle(Existing{}, false)
	for clear, want := range map[bool][]string{
		false: {`{"gateway":null,"range":"10.1.0.0/24","type":"IPv4Network"}`, `{"address":"10.1.0.5","state":"STATIC","type":"IPv4Address"}`},
		true: {`{"gateway":null,"name":null,"range":"10.1.0.0/24","type":"IPv4Network"}`,
			`{"address":"10.1.0.5","macAddress":null,"name":null,"state":"STATIC","type":"IPv4Address"}`},
	} {
		all, _, err := d.JSON(clear)
		var got []string
		for _, raw := range all {
			got = append(got, string(raw))
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%v: %q %v", clear, got, err)
		}
	}
}

// TestPhpipamPlaces checks that an address without a VRF belongs to the VRF of its subnet. If several VRFs contain the subnet, the address
// is skipped. A network has one gateway.
func TestPhpipamPlaces(t *testing.T) {
	subnets := []byte("Subnet,Mask,VRF\n10.1.0.0,24,RED\n10.1.0.0,24,BLUE\n10.2.0.0,24,RED\n10.3.0.0,24,BLUE\n10.4.0.7,24,RED\n")
	addresses := []byte("IP address,hostname,is gateway\n10.1.0.5,both,\n10.2.0.5,red,\n10.3.0.5,blue,\n10.2.0.1,gw,1\n10.2.0.2,,1\n")
	d, err := Phpipam("RED", subnets, addresses)
	lines, notes := words(t, d, err)
	text := strings.Join(append(lines, notes...), "\n")
	for _, want := range []string{`"10.2.0.5"`, "its subnet is in several VRFs (RED, BLUE)", "rows of the VRF BLUE",
		"the name, the hardware address and the description of the gateway 10.2.0.1", "the network 10.2.0.0/24 already has the gateway 10.2.0.1",
		"the bits of 10.4.0.7/24 behind its mask: it is 10.4.0.0/24"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, `"10.3.0.5"`) || strings.Contains(text, `"address":"10.1.0.5"`) {
		t.Errorf("it has addresses of others:\n%s", text)
	}
}

// TestSkippedRows checks that every row without a resource is skipped with a reason and a remedy. Rows of kinds that are never
// imported do not prevent pruning.
func TestSkippedRows(t *testing.T) {
	for name, one := range map[string]struct {
		read  func() (*Document, error)
		want  []string // prefixes of the skipped rows; ! marks rows that an earlier import may have imported
		notes []string
	}{
		"dhcpd": {func() (*Document, error) {
			return Dhcpd([]byte("include \"more.conf\";\nhost a { hardware ethernet 00:00:5e:00:53:01; }\n"+
				"subnet 10.1.0.0 netmask 255.255.255.0 {\n host b { hardware ethernet 00:00:5e:00:53:02; fixed-address b.example, 10.1.0.7; }\n"+
				" host c { hardware ethernet 00:00:5e:00:53:03; fixed-address 10.1.0.8, 10.2.0.8; } }\n"+
				"subnet 10.2.0.0 netmask 255.255.255.0 { }\nsubnet6 2001:db8::/64 {\n range6 2001:db8::/80 temporary; }"), nil)
		}, []string{"!line 1 (include more.conf): the file more.conf is not read: replace",
			"line 2 (host a): the host has neither an address nor an option",
			"!line 4 (host b): b.example is a host name, which the server resolves: correct"},
			[]string{"the range 2001:db8::/80 of temporary addresses"}},
		"dhcpd, blocks": {func() (*Document, error) {
			return Dhcpd([]byte("key k { secret x; }\nif known { host a { fixed-address 10.1.0.5; } }\n"+
				"shared-network n { subnet6 2001:db8::/64 { }\n"+
				" pool6 { range6 2001:db8::10 2001:db8::20; range6 2001:db9::10 2001:db9::20; } }"), nil)
		}, []string{"!line 2 (if known): the content of the block if is not imported: move hosts and subnets out of it",
			"!line 4 (range6 2001:db9::10 2001:db9::20): the range is not in any subnet"},
			[]string{"the key k: no zone uses it, in line 1 (key k)"}},
		"Kea": {func() (*Document, error) {
			return Kea([]byte(`{"Dhcp6":{"subnet6":[{"id":7,"subnet":"2001:db8::/64","pd-pools":[{"prefix":"2001:db8:8::","prefix-len":48,"delegated-len":65}],"reservations":[`+
				`{"duid":"01:02","prefixes":["2001:db8:9::/48"]},{"duid":"01:03","hostname":"b"},{"duid":"00:01:04","ip-address":"2001:db8::4"}]},`+
				`{"id":8,"subnet":"2001:db8::/64"}]}}`), nil)
		}, []string{"!subnet 2001:db8::/64 (id 7), pool of prefixes 2001:db8:8::: prefixes of the length 65",
			"!subnet 2001:db8::/64 (id 8): it has the same key as subnet 2001:db8::/64 (id 7): remove",
			"reservation number 1 of subnet 2001:db8::/64 (id 7) (01:02): it reserves prefixes alone",
			"reservation number 2 of subnet 2001:db8::/64 (id 7) (b): it has no address: add"}, nil},
		"dhcpd, a subnet that is skipped": {func() (*Document, error) {
			return Dhcpd([]byte("subnet 10.1.0.7 netmask 255.255.255.0 {\n pool { range 10.1.0.8 10.1.0.9; }\n deny x;\n"+
				" group { host a { hardware ethernet 00:00:5e:00:53:01; fixed-address 10.2.0.7; } } }\n"+
				"subnet 10.2.0.0 netmask 255.255.255.0 { option routers 10.2.0.1;\n option routers 10.2.0.2;\n pool { option routers 10.2.0.3;\n"+
				" range 10.2.0.20 10.2.0.30; }\n host b { hardware ethernet 00:00:5e:00:53:01; hardware ethernet 00:00:5e:00:53:02; } }\n"), nil)
		}, []string{"!line 1 (subnet 10.1.0.7 netmask 255.255.255.0): 10.1.0.7/255.255.255.0 is not a subnet: correct",
			"!line 2 (range 10.1.0.8 10.1.0.9): its subnet is not imported: correct the subnet",
			"!line 9 (host b): it has the hardware addresses 00:00:5e:00:53:01 and 00:00:5e:00:53:02: use two hosts"},
			[]string{"an earlier option routers of the same block: the last one counts, in line 6",
				"the statement deny of subnets that are skipped, in line 3 (deny x)"}},
		"Kea, wrong values": {func() (*Document, error) {
			return Kea([]byte("{\"Dhcp4\": {\"valid-lifetime\": 60,\n\"subnet4\": [{\"id\": 1, \"subnet\": \"10.1.0.0/24\",\n"+
				"\"pools\": [{\"pool\": 5}, {\"pool\": \"10.1.0.20-10.1.0.30\"}, {\"pool\": \"10.1.0.20-10.1.0.30\"}],\n"+
				"\"reservations\": [{\"ip-address\": 7}, {\"hw-address\": 8, \"ip-address\": \"10.1.0.7\"},\n"+
				"{\"hw-address\": \"00:00:5e:00:53:01\", \"ip-address\": \"10.1.0.8\", \"hostname\": \"a.example\", \"client-classes\": [\"x\"]}]},\n"+
				"{\"id\": 2, \"subnet\": \"10.2.0.0/24\", \"option-data\": {}}]}}"), nil)
		}, []string{"!subnet 10.1.0.0/24 (id 1), pool number 1: pool must be a string, not a JSON number: correct",
			"!subnet 10.1.0.0/24 (id 1), pool 10.1.0.20-10.1.0.30: it has the same key as subnet 10.1.0.0/24 (id 1), pool 10.1.0.20-",
			"!reservation number 1 of subnet 10.1.0.0/24 (id 1): ip-address must be a string, not a JSON number: correct",
			"!reservation number 2 of subnet 10.1.0.0/24 (id 1) (10.1.0.7): hw-address must be a string, not a JSON number: correct",
			"!subnet 10.2.0.0/24 (id 2): option-data must be an array, not a JSON object, so only its reservations"},
			[]string{"classes of reservations (x): the clients of a class are selected by its condition, in reservation number 3",
				"the domain of names of addresses: an address has the first label alone, in reservation number 3"}},
		"Kea, wrong kinds": {func() (*Document, error) {
			return Kea([]byte("{\"Dhcp4\": {\n\"subnet4\": [\"x\", {\"subnet\": 5}, null, {\"subnet\": \"10.1.0.0/24\"}],\n"+
				"\"shared-networks\": {},\n\"reservations\": \"none\",\n\"option-data\": [{\"code\": \"3\", \"data\": \"10.1.0.1\"}]}}"), nil)
		}, []string{"!subnet number 1: it must be an object, not a JSON string",
			"!subnet number 2: subnet must be a string, not a JSON number",
			"!subnet number 3: it is not a prefix", "!line 3 (shared-networks): it must be an array, not a JSON object: correct it",
			"!line 4 (reservations): it must be an array, not a JSON string", "!line 5 (code): it must be a number, not a JSON string"},
			[]string{"the option 0: the server sets the option 0 itself, in Dhcp4"}},
		"NetBox, further members": {func() (*Document, error) {
			return Netbox([][]json.RawMessage{{json.RawMessage(`{"id":3,"prefix":"10.0.0.0/8"}`), json.RawMessage(`{"id":4,"prefix":"10.0.0.0/8"}`)},
				{json.RawMessage(`{"id":7,"prefix":"10.1.0.0/24","vlan":{"vid":5},"site":null,"is_pool":false,"status":{"value":"reserved"}}`)},
				{}, {}}, "", "")
		}, []string{"!aggregates id 4 (10.0.0.0/8): it has the same key as aggregates id 3 (10.0.0.0/8): remove"},
			[]string{"the member vlan of prefixes, in prefixes id 7 (10.1.0.0/24)", "the status reserved of prefixes, in prefixes id 7"}},
		"phpIPAM, folders": {func() (*Document, error) {
			return Phpipam("", []byte("Subnet,Mask,Is Folder,State,Tag\n10.1.0.0,24,0,,\nHouse,,1,,\n"))
		}, []string{"line 3 (House): it is a folder"}, []string{"the column Tag, which means the same as the column State"}},
		"Infoblox": {func() (*Document, error) {
			return Infoblox([]byte("header-network,address*,netmask*,disabled,comment,EA-Site,lease_time,_new_address\n"+
				"network,10.1.0.0,255.255.255.0,FALSE,x,Berlin,60,10.9.0.0\nnetwork,10.2.0.0,255.255.255.0,TRUE,x,,,\n"+
				"header-ptrrecord,fqdn,dname,ttl\nptrrecord,1.0.1.10.in-addr.arpa,a.example,60\n"+
				"header-arecord,fqdn*,address*\narecord,a.example,10.1.0.1\n"), InfobloxChoice{})
		}, []string{"!line 7 (arecord a.example 10.1.0.1): it is a DNS record: choose",
			"line 3 (network 10.2.0.0): it is disabled",
			"!line 5 (ptrrecord 1.0.1.10.in-addr.arpa): it is a DNS record"},
			[]string{"the column lease_time of 1 rows (network)", "the extensible attribute site of 1 rows (network): define"}},
		"Infoblox, with a view": {func() (*Document, error) {
			return Infoblox([]byte("header-ptrrecord,fqdn,dname,ttl\nptrrecord,1.0.1.10.in-addr.arpa,a.example,60\n"),
				InfobloxChoice{View: "default"})
		}, []string{"line 2 (ptrrecord 1.0.1.10.in-addr.arpa): rows of the kind ptrrecord are not imported: create"}, nil},
		"Infoblox, a record twice": {func() (*Document, error) {
			return Infoblox([]byte("header-arecord,fqdn*,address*\narecord,a.example,10.1.0.1\narecord,A.example,10.1.0.1\n"),
				InfobloxChoice{View: "default"})
		}, []string{"!line 3 (arecord A.example 10.1.0.1): it has the same name and address as line 2 (arecord a.example"}, nil},
		"Infoblox, hosts": {func() (*Document, error) {
			return Infoblox([]byte("header-hostrecord,fqdn*,addresses,configure_for_dns,aliases,ipv6_addresses,view\n"+
				"hostrecord,a.example,10.1.0.1,true,\"b,c.example\",2001:db8::1,in\n"+
				"hostrecord,A.example,10.1.0.2,true,,,in\nhostrecord,q.example,,false,,,in\n"+
				"header-hostaddress,address*,parent*,mac_address,view\nhostaddress,10.1.0.3,a.example,zz,in\nhostaddress,10.1.0.4,a.example,,out\n"+
				"hostaddress,10.1.0.5,q.example,00:00:5e:00:53:01,in\nhostaddress,10.1.0.5,q.example,00:00:5e:00:53:02,in\n"+
				"header-arecord,fqdn*,address*,ttl,view\narecord,a.example,10.1.0.6,60,in\n"),
				InfobloxChoice{View: "default", FromView: "in"})
		}, []string{"!line 3 (hostrecord A.example): it has the same key as line 2 (hostrecord a.example): remove",
			"!line 6 (hostaddress 10.1.0.3): \"zz\" is not a hardware address: correct",
			"!line 9 (hostaddress 10.1.0.5): the address 10.1.0.5 of the host has the hardware address 00:00:5e:00:53:01 by an earlier row: remove"},
			[]string{"names of hosts", "the domain of names of addresses",
				"the rows of the view out: import them separately, by --from-view, in line 7", "the ttl of a further address of a name"}},
		"Infoblox, without names": {func() (*Document, error) {
			return Infoblox([]byte("header-arecord,fqdn*,address*\narecord,a.example,10.1.0.1\n"), InfobloxChoice{WithoutNames: true})
		}, nil, []string{"DNS records (--without-names), in line 2"}},
		"NetBox": {func() (*Document, error) {
			return Netbox([][]json.RawMessage{{}, {json.RawMessage(`{"prefix":"10.1.0.0/24"}`)},
				{json.RawMessage(`{"start_address":"10.1.0.5/24","end_address":"10.1.0.9/24"}`)},
				{json.RawMessage(`{"address":"10.1.0.10/24","status":{"value":"dhcp"}}`)}}, "", "")
		}, []string{"ip-addresses number 1 (10.1.0.10/24): the address was assigned by DHCP or SLAAC",
			"ip-ranges number 1 (10.1.0.5/24): no range"}, nil},
		"phpIPAM": {func() (*Document, error) {
			return Phpipam("", []byte("Subnet,Mask\n10.1.0.0,24\nHouse (folder),\n2001:db8::,64\n"),
				[]byte("IP address,mac,state,is gateway\n10.1.0.7,,DHCP,\n10.9.0.1,,,1\n2001:db8::1,,,1\n"))
		}, []string{"!file 2 line 3 (10.9.0.1): the gateway 10.9.0.1 is not in any network: create",
			"file 1 line 3 (House (folder)): it is a folder", "file 2 line 2 (10.1.0.7): the address was assigned by DHCP"},
			[]string{"the gateway of an IPv6 network: IPv6 networks have no gateway, in file 2 line 4 (2001:db8::1)"}},
	} {
		d, err := one.read()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		d.Settle(Existing{}, true)
		var got []string
		for _, skipped := range d.Skipped {
			if text := skipped.String(); skipped.ByRule {
				got = append(got, text)
			} else {
				got = append(got, "!"+text)
			}
		}
		slices.Sort(got)
		slices.Sort(one.want)
		if !slices.EqualFunc(got, one.want, strings.HasPrefix) || !slices.EqualFunc(d.Notes(), one.notes, strings.HasPrefix) {
			t.Errorf("%s: skipped\n%s\nnotes\n%s", name, strings.Join(got, "\n"), strings.Join(d.Notes(), "\n"))
		}
	}
}

// TestRepeatedKeys checks that a repeated key or column is an error with the line and the name.
func TestRepeatedKeys(t *testing.T) {
	for want, read := range map[string]func() (*Document, error){
		"line 3: subnet4 is already in line 2: remove one of the two": func() (*Document, error) {
			return Kea([]byte("{\"Dhcp4\": {\n\"subnet4\": [],\n\"subnet4\": []}}"), nil)
		},
		"line 2: the file more.json is not read: replace it with the text of the file": func() (*Document, error) {
			return Kea([]byte("{\"Dhcp4\": {\n\"subnet4\": <?include \"more.json\"?> }}"), nil)
		},
		"line 1: the column Mask occurs twice: rename or remove one of them": func() (*Document, error) {
			return Phpipam("", []byte("Subnet,mask,Mask\n10.1.0.0,24,24\n"))
		},
		"line 1: the column address occurs twice: rename or remove one of them": func() (*Document, error) {
			return Infoblox([]byte("header-network,address*,address,netmask\nnetwork,10.1.0.0,10.1.0.0,24\n"), InfobloxChoice{})
		},
	} {
		if _, err := read(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
