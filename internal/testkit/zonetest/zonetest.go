// Package zonetest provides fixed and generated zone files for tests that compare with BIND.
package zonetest

import (
	"math/rand/v2"
	"strings"
)

// Include is the file hosts.inc that some of the files include.
const Include = "www A 192.0.2.80\n$TTL 77\n A 192.0.2.81\n$ORIGIN deep\nx TXT deep\n"

// Head is the start of a zone file; records can be appended.
const Head = "$TTL 60\n@ SOA ns1 hostmaster 1 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.53\n"

// Files are zone files that together use all features of the format.
var Files = []string{
	"$TTL 1D\n@ SOA ns1 hostmaster 1 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.53\n$GENERATE 1-2 host-$ A 192.0.2.$\nplain A 192.0.2.9\n",
	"@ 60 SOA ns1 hostmaster 1 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.53\n 300 AAAA ::1\nx TXT a\n",
	"@ SOA ns1 hostmaster 1 3600 600 86400 60\n@ NS ns1\nns1 30 A 192.0.2.53\nx A 192.0.2.1\n",
	"$TTL 300\n@ SOA ns1 hostmaster (1 3600 ; serial\n 600 86400\n 60 )\n@ NS ns1\nns1 A 192.0.2.53\n$INCLUDE hosts.inc\nafter A 192.0.2.9\n" +
		"$INCLUDE hosts.inc sub\n$INCLUDE hosts.inc sub2 ; comment\n A 192.0.2.10\n",
	"$TTL 300\n@ SOA ns1 hostmaster 1 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.53\nLab\\032Printer._ipp._tcp SRV 0 0 631 ns1\n" +
		"Lab\\032Printer._ipp._tcp TXT \"txtvers=1\"\n_ipp._tcp PTR Lab\\032Printer._ipp._tcp\nfirst\\.last TXT \"dot in a label\"\n" +
		"a\\@b TXT x\n\\195\\188 TXT u\n\xc3\xbc TXT utf8\nw\\*x TXT y\nx+y!z~ TXT odd\n\\097b TXT z\nq\\\"t TXT q\nd\\\\ TXT backslash\n",
	"$TTL 300\n@ SOA ns1 hostmaster 1 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.53\npriv TYPE65280 \\# 4 0A000001\n_25._tcp.mail SMIMEA 3 0 0 308202\n" +
		"key OPENPGPKEY AQIDBAU=\nmac EUI48 00-00-5e-00-53-2a\nmac EUI64 00-00-5e-ef-10-00-00-2a\n@ CSYNC 66 3 A NS AAAA\n" +
		"@ ZONEMD 1 1 1 aabbccddeeff00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff00112233445566778899\n" +
		"node NID 10 0014:4fff:ff20:ee64\nnode L64 10 2001:0DB8:1140:1000\nnode L32 10 10.1.2.0\nnode LP 10 l64.example.com.\n" +
		"a A \\# 4 c0000201\nempty TYPE731 \\# 0\nsplit TYPE731 \\# 6 abcd ef 01 2345\n",
	"$TTL 4294967295\n@ 2147483648 SOA ns1 hostmaster 1 3600 600 86400 60\n@ NS ns1\nns1 2147483647 A 192.0.2.53\nx 3000000000 A 192.0.2.1\n",
	"$TTL 1h30m\n@ SOA ns1 hostmaster 1 1H 10M 1D 1M\n@ IN 60 NS ns1\n@ 1w2d NS ns2.example.net.\nns1 IN A 192.0.2.53\nns1 60 IN A 192.0.2.54\nns1 CLASS1 A 192.0.2.55\n",
	"$TTL 60\n@ SOA ns1 hostmaster 1 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.53\nx 10 A 192.0.2.1\nx 20 A 192.0.2.2\ny 20 A 192.0.2.1\nz A 192.0.2.1\ny 10 A 192.0.2.2\n",
	"$TTL 60\n@ SOA ns1 hostmaster 1 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.53\n$GENERATE 0-15 ${0,3}.r CNAME $.x\n$GENERATE 1-31/5 a${10,2,x} A 192.0.2.$\n" +
		"$GENERATE 1-3 ${0,3,n}.ip6 PTR h$\n$GENERATE 250-260 ${0,5,N}.ip6u PTR h${-1}\n$GENERATE 1-2 o${0,3,o} TXT \"a $ b \\$ $$\"\n$GENERATE 5-6 t 30 IN A 10.0.0.$\n" +
		"$GENERATE 1-2 mx$ MX \"10 mail$\"\n",
	"$ORIGIN example.com.\n$TTL 60\n@ SOA ns1 hostmaster 1 3600 600 86400 60\n@ NS ns1\n$ORIGIN a\nns1 A 192.0.2.1\n$ORIGIN example.com.\nns1 A 192.0.2.53\n" +
		"t TXT ( \"one\"\n \"two;not a comment\" ; a comment\n three )\nt2 TXT \"a\\\"b\" \"\\200\\001\" \"\"\nt3 TXT a\\;b\\ c\n",
	"$TTL 60\n@ SOA ns1 hostmaster 1 3600 600 86400 60\n@ 77 NS localhost.\n",
	"$TTL 60\r\n@ SOA ns1 hostmaster 1 3600 600 86400 60\r\n@ NS ns1\r\nns1 A 192.0.2.53\r\nlast A 192.0.2.9",
	"$TTL 60\n@\tIN\tSOA\tns1 hostmaster 1 3600 600 86400 60\n\tIN\tNS\tns1\n\nns1\t\tA 192.0.2.53\n   ; only a comment\n\t\n \t ; another\nIN A 192.0.2.7\n",
}

// Lines are records of rare types. Each must be read as BIND reads it, or rejected if BIND rejects it.
var Lines = []string{
	`svcb SVCB 1 . key1="\002h2"`,
	`svcb SVCB 1 . key1="\002h2\003foo" key3="\0005" key5="abc"`,
	`svcb SVCB 1 "t.example." port=53`,
	`svcb SVCB 1 . key0="\000\001" alpn=h2`,
	`svcb SVCB 1 . key4="\192\000\002\001"`,
	`svcb SVCB 1 . key667`,
	`svcb SVCB 1 . key667=`,
	`svcb SVCB 1 . no-default-alpn alpn=h2`,
	`apl APL 1:0.0.0.0/0`,
	`$GENERATE 1-5/2/3 a$ A 192.0.2.$`,
	`$GENERATE 1-5x a$ A 192.0.2.$`,
	`$GENERATE +1-+2 a$ A 192.0.2.$`,
	`$GENERATE 1-2/ a$ A 192.0.2.$`,
	`$GENERATE 1- a$ A 192.0.2.$`,
	`$GENERATE 2-3 a${4294967295} A 192.0.2.$`,
	`$GENERATE 2-3 a${3000000000,1,d} A 192.0.2.$`,
	`apl APL 1:10.1.2.3/8 !2:2001:db8::1/32`,
	`apl APL 1:10.1.0.0/16 !1:10.1.2.3/24`,
	`apl APL 1:10.1.2.3/33`,
	`svcb SVCB 1 . key65535=ab`,
	`svcb SVCB 1 t.example. alpn=h2 key65535 port=53`,
	`svcb SVCB 1 . ipv6hint=::ffff:192.0.2.1`,
	`svcb HTTPS 1 . ipv6hint=2001:db8::1,::ffff:192.0.2.1 alpn=h2`,
	`gpos GPOS "" "" ""`,
	`gpos GPOS 10 "" 5`,
	`loc LOC \# 16 01 12 16 13 800000008000000000989680`,
	`h NSEC3 1 0 1 ab 00 A`,
	`h NSEC3 1 0 1 - 0p9mhaveqvm6t7vbl5lop2u3t2rp3toma A RRSIG`,
	`h NSEC3 1 0 1 - 0p9mhaveqvm6t7vbl5lop2u3 A CAA TYPE65280`,
	`key KEY 0x4000 DNSSEC RSASHA256 AQABAQAB`,
	`key KEY ZONE DNSSEC 5 AQABAQAB`,
	`key KEY HOST|SIG4 ALL 5 AQABAQAB`,
	`key DNSKEY ZONE DNSSEC RSASHA256 AwEAAQ==`,
	`key KEY NOSUCH DNSSEC 5 AQAB`,
	`cert CERT pkix 1 rsasha256 MTIz`,
	`cert CERT iacpkix 0 0 MTIz`,
	`cert CERT OID 0 0 MTIz`,
	`gpos GPOS "\049" "2" "3"`,
	`gpos GPOS -22.6882 116.8652 250.0`,
	`wks WKS 10.0.0.1 icmp`,
	`wks WKS 10.0.0.1 udp`,
	`x TYPE01 \# 4 01020304`,
	`x CLASS01 TYPE16 \# 2 01 61`,
	`x TYPE016 \# 2 01 61`,
	`x TYPE \# 2 01 61`,
	`ipseckey IPSECKEY 10 3 2 a\\b.example. AQID`,
	`txt TXT \# 3 02 61 62`,
	`txt TXT "\#" 3 abc`,
	`rp RP a\.b.example. a\\b.example.`,
	`talink TALINK a\\b.example. b.example.`,
	`px PX 10 a\\b.x. b.y.`,
	"wks WKS 192.0.2.1 TCP ( smtp 25 domain )",
	"a6 A6 64 ::1 prefix",
	"nsap NSAP 0x47.0005.80.005a00.0000.0001.e133.ffffff000161.00",
	"loc LOC 52 22 23.000 N 4 53 32.000 E -2.00m 0.00m 10000m 10m",
	"loc LOC 1 N 1 E 0",
	"hip HIP 2 200100107B1A74DF365639CC39F1D578 AwEAAbdxyhNuSutc5EMzxTs9LBPCIkOFH8cIvM4p9+LrV4e19WzK00+CI6zBCQTdtWsuxKbWIy87UOoJTwkUs7lBu+Upr1gsNrut79ryra+bSRGQb1slImA8YVJyuIDsj7kwzG7jnERNqnWxZ48AWkskmdHaVDP4BcelrTI3rMXdXF5D",
	"rp RP . .",
	"gpos GPOS 10.0 20.0 10.0",
	"isdn ISDN 150862028003217 004",
	"x25 X25 311061700956",
	"px PX 10 a b",
	"kx KX 10 a",
	"afsdb AFSDB 1 a",
	"cert CERT PGP 0 0 AQIDBA==",
	"naptr NAPTR 100 10 \"u\" \"E2U+sip\" \"!^.*$!sip:info@example.com!\" .",
	"apl APL 1:192.0.2.0/24 !2:2001:db8::/32",
	"dhcid DHCID AAIBY2/AuCccgoJbsaxcQc9TUapptP69lOjxfNuVAA2kjEA=",
	"spf SPF \"v=spf1 -all\"",
	"ipsec IPSECKEY 10 1 2 192.0.2.38 AQIDBA==",
	"null TYPE10 \\# 1 00",
	"svcb SVCB 1 . alpn=h2,h3 port=8443 ipv4hint=192.0.2.1 key667=hello",
	"https HTTPS 0 svc",
	"uri URI 10 1 \"ftp://ftp.example.com/public\"",
	"sshfp SSHFP 2 1 123456789abcdef67890123456789abcdef67890",
	"tlsa TLSA 3 1 1 0D6FCB3A4E1B2F2E3C4D5E6F708192A3B4C5D6E7F8091A2B3C4D5E6F70819293",
	"caa CAA 0 issue \"ca.example.net; policy=ev\"",
	"caa CAA 128 issue \";\"",
	"ds DS 60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118",
	"ds NS ns1",
	"cds CDS 0 0 0 00",
	"cds CDNSKEY 0 3 0 AA==",
	"talink TALINK a b",
	"ninfo NINFO \"x\"",
	"avc AVC \"x\"",
	"sink SINK 1 2 AQID",
	"md MINFO a b",
	"rt RT 10 a",
	"k DNSKEY 0x0101 3 RSASHA256 AQIDBAU=",
	"k DS 1 RSASHA256 SHA-256 2BB183AF5F22588179A53B0A98631FAD1A2921182BB183AF5F22588179A53B0A",
	"l LOC 40 32 N 105 04 W 1208m",
	"n NAPTR 100 50 s http+N2L \"\" www",
	"e EUI48 1-23-45-67-89-ab",
	"@ CSYNC 66 3 NS AAAA A",
	"w WKS 10.0.0.1 tcp 0 tcpmux 2 ftp telnet smtp 26",
	"t TXT \\# text",
	"\"q r\" A 192.0.2.1",
	"b HHIT abcd",
	"w WALLET \"a\" \"b\"",
	"d DSYNC CDS NOTIFY 53 d",
	"u UID \\# 1 02",
	"$DATE 20100101000000",
	"t TXT \"a\\010b\"",
	"t TXT \" \"",
	"t TXT \"\\200\"",
	"h HINFO \"a\\001\" \"\\255\"",
	"n NAPTR 1 1 \"\\007\" \"s\" \"\" a",
	"n NAPTR 1 1 \"u\" \"s\" \"!a!b!\" a",
	"n NAPTR 1 1 \"u\" \"s\" \" \" .",
	"u URI 1 1 \"a\\009b\"",
	"s SVCB 1 . port=0",
	"s SVCB 1 . alpn=\"a\\001b\"",
	"s SVCB 1 . alpn=\" \"",
	"s SVCB 1 . ipv6hint=2001:db8::1 mandatory=port port=53 key65280=\"\\000\"",
	"\\#a A 192.0.2.1",
	"a\\. A 192.0.2.1",
	"\\@ A 192.0.2.1",
	"a MX 10 a\\ b",
	"a CNAME a\\.b",
	"mg MG a",
	"mr MR a",
	"mb MB a",
	"eid EID 0102",
	"nimloc NIMLOC 0102",
	"amt AMTRELAY 10 0 1 192.0.2.1",
	"amt2 AMTRELAY 10 1 0 .",
	"rkey RKEY 0 3 5 AQID",
	"doa DOA 0 1 2 \"\" AQID",
	"ta TA 1 5 1 0123456789012345678901234567890123456789",
	"dlv DLV 1 5 1 0123456789012345678901234567890123456789",
	"uid TYPE101 \\# 4 00000001",
	"nsapptr NSAP-PTR foo",
	"atma ATMA +61200000000",
	"atma2 ATMA 4700058000",
}

// Random returns a random zone file that uses the different notations of the format.
func Random(random *rand.Rand) string {
	pick := func(all ...string) string { return all[random.IntN(len(all))] }
	var b strings.Builder
	ttl := func() string {
		return pick("", "", "60 ", "1h ", "1D2h3M4s ", "0 ", "2147483647 ", "2147483648 ", "IN ", "IN 30 ", "30 IN ", "in ", "class1 ")
	}
	if random.IntN(3) > 0 {
		b.WriteString(pick("$TTL 300\n", "$ttl 1W ; a week\n", "$TTL 1h\n"))
	}
	b.WriteString(pick("@ ", "@ 60 ", "@ IN ") + "SOA ns h" + pick(" 1 2 3 4 5", " ( 1\n\t2 3 ; x\n 4 5\n)", "(1 1H 1M 1W 1D)") + pick("\n",
		" ; end\n"))
	b.WriteString(" NS ns\nns 60 A 192.0.2.53\nns.sub 60 A 192.0.2.54\n")
	for range 3 + random.IntN(15) {
		owner := pick("a", "b", "*.c", "A", "_x._tcp", "a.b", " ", "\t", "@", "x\\.y", "\\097", "q\\\"", "sp\\032ace", "\\*", "i\\;j",
			"\xc3\xa4", "a_b", "l+m", "k\\@",
			"\\$d", "\\000", "\\255z")
		data := pick("A 192.0.2.1", "A 192.0.2.2", "AAAA 2001:db8::1", "TXT \"a b\" c", "TXT \"q\\\"u\"", "TXT ( \"x\"\n\"y\" )",
			"TXT \"semi;colon\" ; comment", "TXT \\035x",
			"MX 10 m", "MX 10 @", "mx 0 .", "SRV 0 0 80 a\\032b", "PTR x\\.y", "CAA 0 issue \"x\"", "TYPE65400 \\# 2 0102", "TYPE1 \\# 4 01020304", "TXT \\# 2 0161",
			"HINFO \"a\" b", "NAPTR 1 2 \"\" \"\" \"!(a)!\\\\1!\" .", "LOC 1 N 1 E 1m", "RP a\\.b.c .", "DS 1 13 2 (\nEF\n"+strings.Repeat("ef",
				31)+" )", "SVCB 1 . alpn=\"h2,h3\" port=1",
			"NS ns.sub", "DNAME x.example.", "SPF x", "URI 1 1 \"http://x/;y\"", "OPENPGPKEY (AQ\nID)")
		if kind, _, _ := strings.Cut(data, " "); (kind == "DNAME" || kind == "DS" || kind == "NS") && !strings.HasPrefix(owner, "a") {
			owner = "deleg"
		}
		switch random.IntN(12) {
		case 0:
			b.WriteString(pick("$ORIGIN sub\n", "$ORIGIN example.com.\n", "$ORIGIN xn--mller-kva.example.\n", "$ORIGIN @\n", "$ORIGIN x\\.y\n"))
		case 1:
			b.WriteString("$TTL " + pick("60", "1h", "4294967295", "0") + "\n")
		case 2:
			b.WriteString("$GENERATE " + pick("1-3", "0-6/2", "10-12") + " " + pick("g$", "g${0,3}", "$.h", "g${-1,2,x}", "${0,3,n}") + " " +
				pick("", "60 ", "IN ") +
				pick("A 10.0.0.$", "CNAME $.x", "TXT $", "PTR h${5,4,o}", "MX \"1 m$\"") + "\n")
		case 3:
			b.WriteString(pick("\n", "; comment ( \" \n", "   \n", "\t; x\n"))
		default:
			b.WriteString(owner + " " + ttl() + data + pick("", "", " ; c", "\t") + pick("\n", "\n", "\r\n"))
		}
	}
	return b.String()
}
