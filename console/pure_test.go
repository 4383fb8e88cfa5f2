package console_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
)

// TestPureParts tests pure modules without a browser: records as text and back, tables, arithmetic on address space.
func TestPureParts(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("node is not on the PATH")
	}
	r := api.Build(api.BuildOptions{Stdin: &api.StdinOptions{ResolveDir: "src", Loader: api.LoaderTS,
		Contents: `export * as records from "./records"; export * as leasefilter from "./leasefilter"; export * as table from "./table"; export * as space from "./space"; export * as filter from "./filter"; export * as ds from "./ds"; export * as form from "./jsonform"; export * as pattern from "./pattern"; export * as sheet from "./sheet"; export * as operations from "./operations"; export * as dhcpoption from "./dhcpoption"`},
		Bundle: true, Format: api.FormatIIFE, GlobalName: "parts", Platform: api.PlatformNeutral, TsconfigRaw: "{}",
		Alias: map[string]string{"@preact/signals": "./npm/@preact/signals/dist/signals.mjs", "preact": "./npm/preact/dist/preact.mjs",
			"preact/hooks": "./npm/preact/hooks/dist/hooks.mjs", "@preact/signals-core": "./npm/@preact/signals-core/dist/signals-core.mjs",
			"uplot": "./npm/uplot/dist/uPlot.esm.js"}})
	if len(r.Errors) > 0 {
		t.Fatal(r.Errors)
	}
	const host = `{id: 1, type: "HostRecord", name: "a", ttl: null, _embedded: {addresses: [{address: "10.0.0.1"}, {address: "2001:db8::1"}]}}`
	const mx = `{id: 2, type: "MXRecord", name: "@", ttl: 60, priority: 10, linkedRecord: {absoluteName: "mail.x"}}`
	const txt = `{id: 3, type: "TXTRecord", name: "t", ttl: null, text: "two  spaces \"quoted\""}`
	change := func(text string) string {
		return `JSON.stringify(parts.records.difference(9, [` + host + "," + mx + "," + txt + "], `" + text + "`))"
	}
	const all = "a - A 10.0.0.1\na - AAAA 2001:db8::1\n@ 60 MX 10 mail.x.\nt - TXT \"two  spaces \\\\\"quoted\\\\\"\"\n"
	headers, err := os.ReadFile("../internal/client/cli/testdata/headers.json") // the cases of the command line
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ expression, want string }{
		"the rows of headers": {`JSON.stringify((` + string(headers) + `).filter(x => parts.sheet.likelyKind(x.header) !== x.type))`, `[]`},
		"values of DHCP options": {`JSON.stringify([[51, "00000e10"], [1, "ffffff00"], [3, "0a000001c0a80001"], [15, "686172626f7572"], [26, "05dc"], [43, "0102"], [1, "ff"], [53, ""]].map(o => parts.dhcpoption.optionText(...o)))`,
			`["3600 s","255.255.255.0","10.0.0.1, 192.168.0.1","harbour","1500","0x0102","0xff","0x"]`},
		"values of DHCPv6 options": {`JSON.stringify([[23, "20010db8000000000000000000000053"], [24, "0471756179076578616d706c650002616200"], [24, "3f61"], ` +
			`[24, "0161"], [82, "00000e10"], [7, "ff"], [65, "686172626f7572"], [17, "0001"], [23, ""]].map(o => parts.dhcpoption.optionText6(...o)))`,
			`["2001:db8::53","quay.example, ab","0x3f61","0x0161","3600 s","255","harbour","0x0001","0x"]`},
		"equal values": {`JSON.stringify([[{id: 1, name: "a"}, {id: 1}], [[{id: 1, _links: {}}], [{id: 1}]], [null, undefined], [{a: null}, {}], ` +
			`[null, {id: 1}], [[1, 2], [2, 1]], ["1", 1]].map(v => parts.operations.isEqual(...v)))`, `[true,true,true,true,false,false,false]`},
		"filters of leases": {`JSON.stringify(["10.0.0.7", "2001:db8::7", "2001:db8::/56", "2001:db8::1/56", "10.0.0.0/24", "10.0.0."].map(parts.leasefilter.leaseFilter))`,
			`["address:'10.0.0.7'","(address:'2001:db8::7' or prefix:contains('2001:db8::7'))",` +
				`"((address:ge('2001:db8::') and address:le('2001:db8:0:ff:ffff:ffff:ffff:ffff')) or prefix:contains('2001:db8::/56'))",` +
				`"((address:ge('2001:db8::') and address:le('2001:db8:0:ff:ffff:ffff:ffff:ffff')) or prefix:contains('2001:db8::/56'))",` +
				`"address:ge('10.0.0.0') and address:le('10.0.0.255')","address:ge('10.0.0.0') and address:le('10.0.0.255')"]`},
		"causes of faults": {`JSON.stringify(parts.sheet.causesOf([{row: 3, says: "row 1 is about the same IPv4Address 7: remove one of the two"}, {row: 4, says: "row 2 is about the same IPv4Address 8: remove one of the two"}, {row: 5, field: "state", says: "must be one of A, not \"x\""}]).map(c => [c.says, c.rows]))`,
			`[["an earlier row is about the same resource: remove one of the two",[3,4]],["state: must be one of A, not \"x\"",[5]]]`},
		"a move as the user reads it": {`JSON.stringify(parts.operations.readable([{operationType: "ADD", resourceId: 1, resourceType: "IPMove", name: "m"}, {operationType: "CHANGE", resourceId: 3, resourceType: "IPv4Address", name: "10.0.0.10 b", fieldUpdates: [{name: "x", value: 1, previousValue: 2}]}, {operationType: "CHANGE", resourceId: 2, resourceType: "IPv4Address", name: "10.0.0.9 a", fieldUpdates: []}, {operationType: "DELETE", resourceId: 4, resourceType: "IPv4Address", name: "10.0.0.1"}, {operationType: "ADD", resourceId: 5, resourceType: "IPv4Address", name: "10.0.0.1"}]).map(o => o.name))`,
			`["10.0.0.9 a","10.0.0.10 b"]`},
		"two changes of a resource": {`JSON.stringify([parts.operations.readable([{operationType: "CHANGE", resourceId: 1, resourceType: "IPv4Network", fieldUpdates: [{name: "gateway", value: null, previousValue: "10.0.0.1"}, {name: "range", value: "b", previousValue: "a"}]}, {operationType: "CHANGE", resourceId: 1, resourceType: "IPv4Network", fieldUpdates: [{name: "gateway", value: "10.0.0.1", previousValue: null}]}]).map(o => o.fieldUpdates.filter(f => f.value !== f.previousValue).map(f => f.name)), ...[[1, 2], [2, 3]].map(([created, changed]) => parts.operations.partsOf({created, changed, deleted: 0, operations: [{operationType: "ADD", resourceId: 9, resourceType: "IPv4NetworkSplit"}, {operationType: "CHANGE", resourceId: 1, resourceType: "X"}, {operationType: "CHANGE", resourceId: 1, resourceType: "X"}]}))])`,
			`[[["range"]],[[1,"changed"]],[[2,"new"],[3,"changed"]]]`},
		"nothing is changed": {change(all), `{"gone":[],"come":[],"changes":[],"faults":[]}`},
		"an address goes": {change(strings.Replace(all, "a - AAAA 2001:db8::1\n", "", 1)),
			`{"gone":["a - AAAA 2001:db8::1"],"come":[],"changes":[{"method":"PATCH","path":"resourceRecords/1","body":{"addresses":[{"address":"10.0.0.1"}],"ttl":null}}],"faults":[]}`},
		"a priority": {change(strings.Replace(all, "MX 10", "MX 20", 1)),
			`{"gone":["@ 60 MX 10 mail.x."],"come":["@ 60 MX 20 mail.x."],"changes":[{"method":"PATCH","path":"resourceRecords/2","body":{"priority":20,"linkedRecord":{"absoluteName":"mail.x"},"ttl":60}}],"faults":[]}`},
		"a host at the zone itself": {change(all + "@ - A 10.0.0.2"),
			`{"gone":[],"come":["@ - A 10.0.0.2"],"changes":[{"method":"POST","path":"zones/9/resourceRecords","body":{"type":"HostRecord","name":"@","addresses":[{"address":"10.0.0.2"}]}}],"faults":[]}`},
		"what no line says well": {change(all + "n - NAPTR 1 2 x"),
			`{"gone":[],"come":["n - NAPTR 1 2 x"],"changes":[],"faults":["n - NAPTR 1 2 x: create and change NAPTR records on their own pages"]}`},
		"quotes in cells":     {`JSON.stringify(parts.table.parseTable('a;b\n"x;""y""";2\r\n\n'))`, `[["a","b"],["x;\"y\"","2"]]`},
		"members and lists":   {`JSON.stringify(parts.table.bodyOf(undefined, ["a.b", "l[0].id", "empty"], ["1", "2", ""]))`, `{"a":{"b":"1"},"l":[{"id":2}]}`},
		"no prototype":        {`parts.table.bodyOf(undefined, ["__proto__.headers.X", "constructor.y"], ["1", "2"]); JSON.stringify([{}.headers ?? null, parts.table.badColumns(["__proto__.x", "l[999999]", "name"])])`, `[null,["__proto__.x","l[999999]"]]`},
		"a name that is true": {`JSON.stringify(parts.table.bodyOf({types: {T: {f: [{n: "name", k: "text"}, {n: "ok", k: "yes"}, {n: "n", k: "number"}]}}}, ["type", "name", "ok", "n"], ["T", "true", "TRUE", "7"]))`, `{"type":"T","name":"true","ok":true,"n":7}`},
		"names": {`JSON.stringify(["rack7-srv-[01-03]", "srv-[08-10].x", "a[9]", "rack7-srv-##", "printer", "", "a[1-2]", "a[3-1]", "a[1-3]##", "a[x]"].map(p =>
			{ const n = parts.pattern.namesOf(p, 3); return n.fault ? "fault" : n.names.join() }).concat(String(parts.pattern.countOf("rack7-srv-[01-40]"))))`,
			`["rack7-srv-01,rack7-srv-02,rack7-srv-03","srv-08.x,srv-09.x,srv-10.x","a9,a10,a11","rack7-srv-01,rack7-srv-02,rack7-srv-03","printer-1,printer-2,printer-3","","fault","fault","fault","fault","40"]`},
		"hosts": {`JSON.stringify(["10.0.0.0/24", "10.0.0.0/30", "10.0.0.0/31", "10.0.0.0/32", "2001:db8::/126"].map(t => parts.space.hosts(parts.space.parseSpan(t))).map(parts.space.span))`,
			`["10.0.0.1-10.0.0.254","10.0.0.1-10.0.0.2","10.0.0.0/31","10.0.0.0/32","2001:db8::/126"]`},
		"gaps":                 {`JSON.stringify(parts.space.gaps(parts.space.parseSpan("10.0.0.0/24"), ["10.0.0.0/26", "10.0.0.128/25"].map(parts.space.parseSpan)).map(parts.space.span))`, `["10.0.0.64/26"]`},
		"the largest prefixes": {`JSON.stringify(parts.space.prefixes(parts.space.parseSpan("10.0.0.64-10.0.1.255")).map(parts.space.span))`, `["10.0.0.64/26","10.0.0.128/25","10.0.1.0/24"]`},
		"scattered": {`JSON.stringify([3, 4].map(n => parts.space.scattered(["10.0.0.64/26", "10.0.1.0-10.0.1.191", "10.1.0.0/24"].map(parts.space.parseSpan), n, 26)?.map(t => [t.gap, parts.space.span(t.s)])))`,
			`[[[0,"10.0.0.64/26"],[1,"10.0.1.0/26"],[1,"10.0.1.128/26"]],[[0,"10.0.0.64/26"],[1,"10.0.1.0/26"],[1,"10.0.1.64/26"],[1,"10.0.1.128/26"]]]`},
		"DS records": {`JSON.stringify([["x. 60 IN DS 7 13 2 ab cd"], ["x. 60 IN DS 7 13 2 ABCD", "x. 60 IN DS 8 13 2 ABCD"], [], ["x. 60 IN DS 8 13 2 EE"]]` +
			`.map(found => parts.ds.compareDS(["x.\t3600\tIN\tDS\t7 13 2 ABCD"], found).state))`, `["OK","WARNING","WARNING","ERROR"]`},
		"a JSON schema as fields": {`JSON.stringify(parts.form.fieldOf("listen", {type: "array", items: {type: "object", properties: {tls: {type: "boolean"}, ` +
			`port: {anyOf: [{type: "integer"}, {type: "null"}]}, address: {type: "string", description: "d"}}}}))`,
			`{"n":"listen","k":"list","i":{"n":"listen","k":"object","m":[{"n":"address","d":"d","k":"text"},{"n":"port","k":"number"},{"n":"tls","k":"yes"}]}}`},
		"too many": {`JSON.stringify(parts.space.scattered([parts.space.parseSpan("10.0.0.0/26")], 2, 26))`, `null`},
		"RFC 5952": {`JSON.stringify(["2001:DB8:0:0:1:0:0:1", "::", "2001:db8::", "::ffff:10.0.0.1"].map(t => { const a = parts.space.parseAddress(t); return parts.space.address(a.n, true) }))`, `["2001:db8::1:0:0:1","::","2001:db8::","::ffff:a00:1"]`},
		"filters": {`JSON.stringify([["10.3.4.0/24", "address"], ["10.3.4.0/24", "range"], ["10.3.4.7", "range"], ["10.3.4", "address"],
			["2001:db8:", "address"],
			["00:50:56:00:00:01", "address"], ["state:RESERVED'", "address"], ["state:'RESERVD", "address"],
			["foo:bar"], ["crane (1)"], ["zone x: failed"], ["o'neil"]]
			.map(([t, space]) => parts.filter.filterOf(t, "name", space)))`,
			`["address:within('10.3.4.0/24')","range:within('10.3.4.0/24')","range:contains('10.3.4.7')","address:contains('10.3.4')",` +
				`"address:contains('2001:db8:')","macAddress.address:'00:50:56:00:00:01'","state:RESERVED'","state:'RESERVD","foo:bar",` +
				`"name:contains('crane (1)')","name:contains('zone x: failed')","o'neil"]`},
		"invalid addresses": {`JSON.stringify(["10.0.0", "10.0.0.256", "1::2::3", "x", "10.0.0.0/33"].map(t => parts.space.parseSpan(t)))`, `[null,null,null,null,null]`},
	}
	expressions := map[string]string{}
	for name, c := range cases {
		expressions[name] = c.expression
	}
	given, err := json.Marshal(expressions)
	if err != nil {
		t.Fatal(err)
	}
	// A module of a page may access the page when it is loaded.
	c := exec.Command(node, "-e", "globalThis.location = new URL('http://localhost/'); globalThis.addEventListener = () => {}; "+
		"globalThis.document = { addEventListener() {} }; globalThis.sessionStorage = globalThis.localStorage = { getItem: () => null };"+
		string(r.OutputFiles[0].Contents)+`; globalThis.parts = parts; const all = JSON.parse(require("fs").readFileSync(0, "utf8"))
for (const name in all) all[name] = (0, eval)(all[name]); console.log(JSON.stringify(all))`)
	var stderr bytes.Buffer
	c.Stdin, c.Stderr = bytes.NewReader(given), &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	var got map[string]string
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	for name, c := range cases {
		if got[name] != c.want {
			t.Errorf("%s: %s, want %s", name, got[name], c.want)
		}
	}
}
