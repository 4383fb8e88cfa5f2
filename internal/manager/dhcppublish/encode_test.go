package dhcppublish

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"portolan/internal/manager/serverconfig"
	"portolan/internal/wire/dhcpdata"
)

// encoding is a value of options in JSON, and the octets that a client receives. names are options with the same encoding.
type encoding struct {
	value, want string
	names       string
}

// encodings4 are the encodings of the DHCPv4 client options, by RFC 2132 unless another RFC is named.
var encodings4 = []encoding{
	{`["192.0.2.1","192.0.2.2"]`, "c0000201 c0000202", "router time-server ien-name-server dns-server log-server cookie-server lpr-server " +
		"impress-server resource-location-server nis-server ntp-server wins-nbns-server netbios-over-tcp-ip-nbdd x-window-font-manager " +
		"x-window-display-manager nis-plus-server mobile-ip-home-agent smtp-server pop3-server nntp-server www-server finger-server irc-server " +
		"street-talk-server street-talk-directory-assistance-server"},
	{`["192.0.2.1","192.0.2.2"]`, "c0000201 c0000202", "nds-server bcms-controller-address netinfo-server-address pana-agent " +
		"capwap-ac-v4 ipv4-address-andsf v4-dots-address tftp-server"}, // RFC 2241, 4280, 3679, 5192, 5417, 6153, 8973, 5859
	{`"192.0.2.9"`, "c0000209", "swap-server broadcast-address router-solicitation-address"},
	{`"a/b.c"`, "612f622e63", "host-name merit-dump-file domain-name root-path extensions-path nis-domain netbios-scope-id " +
		"nis-plus-domain-name tftp-server-name boot-file-name"},
	{`"a/b.c"`, "612f622e63", "nwip.domain nds-tree-name nds-context ldap uap-server pcode tcode netinfo-server-tag polycom-server " +
		"ip-telephone loader-configfile loader-pathprefix wpad-url"}, // RFC 2242, 2241, 3679, 2485, 4833, 5071
	{`true`, "01", "ip-forwarding non-local-source-routing all-subnets-local perform-mask-discovery mask-supplier router-discovery " +
		"trailer-encapsulation ieee-802-3-encapsulation tcp-keep-alive-garbage"},
	{`false`, "00", "ip-forwarding"},
	{`66051`, "00010203", "path-mtu-aging-timeout arp-cache-timeout tcp-keep-alive-interval dhcp-renewal-time dhcp-rebinding-time " +
		"v6-only-preferred loader-reboottime"}, // RFC 8925, 5071
	{`-3600`, "fffff1f0", "time-offset"},
	{`1500`, "05dc", "boot-size max-datagram-reassembly path-mtu-plateau-table interface-mtu"},
	{`64`, "40", "default-ip-ttl default-tcp-ttl"},
	{`8`, "08", "wins-nbt-node-type"},
	{`1`, "01", "auto-config"}, // RFC 2563
	{`[["192.0.2.0","255.255.255.0"],["10.0.0.0","255.0.0.0"]]`, "c0000200ffffff00 0a000000ff000000", "policy-filter-masks"},
	{`[["192.0.2.7","192.0.2.1"]]`, "c0000207c0000201", "static-routes"},
	{`"010203"`, "010203", "vendor-encapsulated-options isns geoconf-civic geoconf vivso ipv4-address-mos ipv4-fqdn-mos geoloc rdnss-selection " +
		"etherboot"}, // RFC 4174, 4776, 6225, 3925, 5678, 6731
	{`"01:0203"`, "010203", "vendor-encapsulated-options"},
	{`"0x01:02:03"`, "010203", "vendor-encapsulated-options"},
	{`"ab"`, "ab", "vendor-encapsulated-options"},
	{`"F1:00:74:7E"`, "f100747e", "pxelinux-magic"}, // RFC 5071
	{`"PXEClient"`, "505845436c69656e74", "vendor-class-identifier"},
	{`"0x0102"`, "0102", "vendor-class-identifier pxe-undefined-1"},
	{`"VLAN-A=2;"`, "564c414e2d413d323b", "pxe-undefined-1 pxe-undefined-2 pxe-undefined-3 pxe-undefined-4 pxe-undefined-5 pxe-undefined-6 " +
		"pxe-undefined-7 pxe-undefined-8"}, // RFC 4578
	{`["192.0.2.1"]`, "00 c0000201", "slp-directory-agent"},                         // RFC 2610 section 3: not mandatory
	{`"a,b"`, "00 612c62", "slp-service-scope"},                                     // RFC 2610 section 4
	{`["192.0.2.1"]`, "01 c0000201", "sip-server"},                                  // RFC 3361 section 3.2
	{`["eng.a","b"]`, "03656e67016100 016200", "bcms-controller-names"},             // RFC 4280
	{`["eng.a","b"]`, "03656e67016100 016200", "domain-search sip-ua-cs-domains"},   // RFC 3397, 6011
	{`"eng.a"`, "03656e67016100", "v4-lost v4-dots-ri"},                             // RFC 5223, 8973
	{`[1,44]`, "0001 002c", "name-service-search"},                                  // RFC 2937
	{`"https://p.example/"`, "68747470733a2f2f702e6578616d706c652f", "default-url"}, // RFC 8910
	{`["10.0.0.0/8:192.0.2.1","0.0.0.0/0:192.0.2.2","192.0.2.128/25:0.0.0.0"]`, "080ac0000201 00c0000202 19c000028000000000",
		"classless-static-route-option"}, // RFC 3442
	{`["https://p.example/","urn:a"]`, "0012 68747470733a2f2f702e6578616d706c652f 0005 75726e3a61", "v4-sztp-redirect"}, // RFC 8572 section 8.1
	{`"192.0.2.1"`, "01 04 c0000201", "cablelabs.primary-dhcp-server"},                                                  // RFC 3495 section 5
	{`"192.0.2.1"`, "02 04 c0000201", "cablelabs.secondary-dhcp-server"},
	{`"192.0.2.1"`, "03 05 01 c0000201", "cablelabs.provisioning-server"},
	{`"eng.a"`, "03 08 00 03656e67016100", "cablelabs.provisioning-server"},
	{`[1,2,3]`, "04 0c 00000001 00000002 00000003", "cablelabs.as-backoff-retry"},
	{`[1,2,3]`, "05 0c 00000001 00000002 00000003", "cablelabs.ap-backoff-retry"},
	{`"eng.a"`, "06 07 03656e67016100", "cablelabs.kerberos-realm-name"},
	{`true`, "07 01 01", "cablelabs.ticket-granting-server-utilization"},
	{`20`, "08 01 14", "cablelabs.provisioning-timer-value"},
	{`true`, "05 01 01", "nwip.nsq-broadcast"}, // RFC 2242 section 3
	{`["192.0.2.1","192.0.2.2"]`, "06 08 c0000201 c0000202", "nwip.preferred-dss"},
	{`["192.0.2.1"]`, "07 04 c0000201", "nwip.nearest-nwip-server"},
	{`3`, "08 01 03", "nwip.auto-retries"},
	{`3`, "09 01 03", "nwip.auto-retry-delay"},
	{`true`, "0a 01 01", "nwip.1-1-compatibility"},
	{`"192.0.2.1"`, "0b 04 c0000201", "nwip.primary-dss"},
}

// encodings6 are the encodings of the DHCPv6 client options.
var encodings6 = []encoding{
	{`["2001:db8::1","2001:db8::2"]`, "20010db8000000000000000000000001 20010db8000000000000000000000002", "sip-servers-addresses dns-servers " +
		"nis-servers nisp-servers sntp-servers bcms-server-a pana-agent capwap-ac-v6 v6-pcp-server dhcp4-o-dhcp6-server v6-dots-address " +
		"ipv6-address-andsf"}, // RFC 3319, 3646, 3898, 4075, 4280, 5192, 5417, 7291, 7341, 8973, 6153
	{`["eng.a","b"]`, "03656e67016100 016200", "sip-servers-names domain-search-list bcms-server-d sip-ua-cs-list"}, // RFC 3319, 3646, 4280, 6011
	{`"eng.a"`, "03656e67016100", "nis-domain-name nisp-domain-name v6-lost v6-access-domain aftr-name erp-local-domain-name v6-dots-ri " +
		"registered-domain"}, // RFC 3898, 5223, 5986, 6334, 6440, 8973, 9527
	{`"010203"`, "010203", "vendor-opts geoconf-civic ipv6-address-mos ipv6-fqdn-mos geolocation rdnss-selection krb-kdc addrsel s46-cont-mape " +
		"s46-cont-mapt s46-cont-lw 4rd mpl-parameters v6-prefix64 v6-dnr forward-dist-manager reverse-dist-manager"},
	{`66051`, "00010203", "info-refresh-time sol-max-rt inf-max-rt"},                               // RFC 9915
	{`"EST5EDT"`, "45535435454454", "new-posix-timezone new-tzdb-timezone krb-default-realm-name"}, // RFC 4833, 6784
	{`["2001:db8::1","ff05::101","eng.a"]`, "0001 0010 20010db8000000000000000000000001 0002 0010 ff050000000000000000000000000101 " +
		"0003 0007 03656e67016100", "ntp-server"}, // RFC 5908 section 4
	{`"https://p.example/"`, "68747470733a2f2f702e6578616d706c652f", "bootfile-url v6-captive-portal"}, // RFC 5970, 8910
	{`["root=/dev/nfs","quiet"]`, "000d 726f6f743d2f6465762f6e6673 0005 7175696574", "bootfile-param"}, // RFC 5970 section 3.2
	{`[94,95]`, "005e 005f", "s46-priority"},                                                           // RFC 8026
	{`["urn:a"]`, "0005 75726e3a61", "v6-sztp-redirect"},                                               // RFC 8572 section 8.2
	{`"2001:db8:1::/48"`, "30 20010db80001", "s46-bind-ipv6-prefix"},                                   // RFC 8539
}

// definitionsOf reads the definitions of client options: their codes and formats by name.
func definitionsOf(t testing.TB, file string) map[string][2]string {
	t.Helper()
	text, err := os.ReadFile("../../base/dhcpoption/" + file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][2]string{}
	for line := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n") {
		if fields := strings.Split(line, "\t"); !strings.HasPrefix(line, "#") {
			all[fields[0]] = [2]string{fields[1], fields[2]}
		}
	}
	return all
}

// TestEveryClientOption checks that each client option of both families is encoded as its RFC defines it.
func TestEveryClientOption(t *testing.T) {
	for _, family := range []struct {
		file string
		v6   bool
		all  []encoding
		// refused are the options that a deployment refuses.
		refused string
	}{{"dhcpv4_client.tsv", false, encodings4, ""}, {"dhcpv6_client.tsv", true, encodings6, "unicast addr-reg-enable"}} {
		definitions, seen := definitionsOf(t, family.file), map[string]bool{}
		for _, one := range family.all {
			for name := range strings.FieldsSeq(one.names) {
				seen[name] = true
				d, there := definitions[name]
				if !there {
					t.Errorf("%s is not defined", name)
					continue
				}
				f, err := serverconfig.ParseFormat(json.RawMessage(d[1]))
				if err != nil {
					t.Fatal(err)
				}
				stored, err := f.Check(json.RawMessage(one.value), nil)
				if err != nil {
					t.Errorf("%s: %s %v", name, one.value, err)
					continue
				}
				got, err := encodeOption(name, family.v6, json.RawMessage(d[1]), stored)
				if want := strings.ReplaceAll(one.want, " ", ""); err != nil || hex.EncodeToString(got) != want {
					t.Errorf("%s %s is %x, want %s: %v", name, one.value, got, want, err)
				}
			}
		}
		for name, d := range definitions {
			var code uint16
			if err := json.Unmarshal([]byte(d[0]), &code); err != nil {
				t.Fatal(err)
			}
			listed := slices.Contains(strings.Fields(family.refused), name)
			if refused := dhcpdata.IsFixed(code, family.v6); refused != listed || refused == seen[name] {
				t.Errorf("%s: refused %v, has an encoding here %v", name, refused, seen[name])
			}
		}
	}
}

// TestBadOptionValues checks that a value that cannot be encoded is refused.
func TestBadOptionValues(t *testing.T) {
	for _, one := range [][3]string{{"vendor-encapsulated-options", `"<hex>"`, `"0x"`}, {"vendor-encapsulated-options", `"<hex>"`, `"PXE"`},
		{"domain-name", `"<text>"`, `""`}, {"cablelabs.as-backoff-retry", `["<unsigned_integer_32>"]`, `[1,2]`}, {"cablelabs.ap-backoff-retry", `["<unsigned_integer_32>"]`, `[1,2,3,4]`},
		{"domain-search", `["<domain_name>"]`, `["` + strings.Repeat("a", 64) + `"]`}} {
		if got, err := encodeOption(one[0], false, json.RawMessage(one[1]), json.RawMessage(one[2])); err == nil {
			t.Errorf("%s %s is %x", one[0], one[2], got)
		}
	}
}
