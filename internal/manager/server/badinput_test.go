package server

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestBadBodies checks that bad input gets an error that names the problem, and changes nothing.
func TestBadBodies(t *testing.T) {
	m := startAlone(t)
	_, _, zone, block, network := m.Basics()
	const post, put, patch = "POST", "PUT", "PATCH"
	configurations := "/api/v2/configurations"
	networks := "/api/v2/blocks/" + block + "/networks"
	records := "/api/v2/zones/" + zone + "/resourceRecords"
	long := strings.Repeat("x", 256)
	for _, c := range []struct {
		status                           int
		code, naming, method, path, body string
	}{
		{400, "JsonParseError", "byte 1", post, configurations, `{`},
		{400, "JsonParseError", "not valid JSON", post, configurations, `{"name":"a"} x`},
		{400, "JsonDeserializationError", "JSON object", post, configurations, `[1]`},
		{400, "EmptyRequestBody", "null", post, configurations, `null`},
		{400, "InvalidRequestBody", "UTF-8", post, configurations, "{\"name\":\"\xff\"}"},
		{400, "InvalidRequestBody", "must nest at most", post, configurations, `{"name":` + strings.Repeat("[", 100000) +
			strings.Repeat("]", 100000) + `}`},
		{400, "InvalidRequestBody", "must nest at most", post, configurations, `{"name":` + strings.Repeat(`{"a":`, 100000)},
		{413, "RequestTooLarge", "10 MiB", post, configurations, `{"name":"` + strings.Repeat("a", 10<<20) + `"}`},
		{400, "JsonDeserializationError", "name: must be a string", post, configurations, `{"name":5}`},
		{400, "EmptyFieldValue", "name: must not be null", post, configurations, `{"name":null}`},
		{400, "BlankFieldValue", "name: must not be blank", post, configurations, `{"name":"  "}`},
		{400, "InvalidStringLength", "at most 255 bytes; it has 256", post, configurations, `{"name":"` + long + `"}`},
		{400, "InvalidResourceFieldValue", "control character", post, configurations, `{"name":"a\u0007b"}`},
		{400, "InvalidResourceFieldValue", "control character", post, configurations, `{"name":"a\u0000b"}`},
		{400, "InvalidResourceFieldValue", "control character", post, networks, `{"type":"IPv4Network","range":"10.1.0.0/24","name":"a\nb"}`},
		{400, "JsonDeserializationError", "dnsFeedEnabled: must be true or false", post, configurations, `{"name":"a","dnsFeedEnabled":"yes"}`},
		{400, "InvalidEnumValue", "checkNsValidation", post, configurations, `{"name":"a","checkNsValidation":"MAYBE"}`},
		{400, "InvalidResourceFieldValue", "userDefinedFields", post, configurations, `{"name":"a","userDefinedFields":{"x":[1]}}`},
		{400, "InvalidResourceFieldValue", "control character", post, configurations, `{"name":"a","userDefinedFields":{"x":"\u0000"}}`},
		{400, "InvalidResourceFieldValue", "control character", post, configurations, `{"name":"a","userDefinedFields":{"\u0000":"x"}}`},
		{400, "InvalidResourceFieldValue", "control", post, configurations, `{"name":"a","snmp":{"version":"v3","context":"\u0000"}}`},
		{400, "JsonDeserializationError", "snmp: must be an object", post, configurations, `{"name":"a","snmp":3}`},
		{400, "JsonDeserializationError", "snmp: must be an object; dnsFeedEnabled: must be true or false", post, configurations,
			`{"name":"a","snmp":3,"dnsFeedEnabled":1}`},
		{400, "MissingRequiredField", "required and missing: name", post, configurations, `{}`},
		{400, "MissingRequiredField", "required and missing: name", post, configurations, `{"":0}`},
		{400, "MissingRequiredField", "email, securityPrivilege, accessType", post, "/api/v2/users", `{"name":"x"}`},
		{400, "MissingRequiredField", "type, range", post, networks, `{}`},
		{400, "MissingRequiredField", "range", post, networks, `{"type":"IPv4Network"}`},
		{400, "MissingRequiredField", "name, recordType, rdata", post, records, `{"type":"GenericRecord"}`},
		{400, "InvalidResourceType", `"Nonsense" cannot be created here`, post, networks, `{"type":"Nonsense","range":"10.1.0.0/24"}`},
		{400, "InvalidResourceType", `"IPv4Block" cannot be created here`, post, networks, `{"type":"IPv4Block","range":"10.1.0.0/24"}`},
		{400, "InvalidResourceFieldValue", "type: must be a string", post, networks, `{"type":{},"range":"10.1.0.0/24"}`},
		{400, "InvalidIpRangeValue", "must be CIDR", post, networks, `{"type":"IPv4Network","range":"10.1.0.0"}`},
		{400, "InvalidIpRangeValue", "between 0 and 32", post, networks, `{"type":"IPv4Network","range":"10.1.0.0/33"}`},
		{400, "InvalidIpRangeValue", "host bits", post, networks, `{"type":"IPv4Network","range":"10.1.0.1/24"}`},
		{400, "InvalidResourceFieldValue", "not a valid IPv4 prefix length", post, networks, `{"type":"IPv4Network","range":"/64"}`},
		{400, "ValueOutsideRange", "lowWaterMark: must be 100 or less", post, networks,
			`{"type":"IPv4Network","range":"10.1.0.0/24","lowWaterMark":101}`},
		{400, "JsonDeserializationError", "lowWaterMark: must be a whole number", post, networks,
			`{"type":"IPv4Network","range":"10.1.0.0/24","lowWaterMark":1.5}`},
		{404, "InlinedResourceNotFound", "location: resource 424242 does not exist", post, networks,
			`{"type":"IPv4Network","range":"10.1.0.0/24","location":{"id":424242}}`},
		{404, "InlinedResourceNotFound", "must be of type Location", post, networks, `{"type":"IPv4Network","range":"10.1.0.0/24","location":{"id":` +
			block + `}}`},
		{400, "JsonDeserializationError", "location", post, networks, `{"type":"IPv4Network","range":"10.1.0.0/24","location":7}`},
		{400, "InvalidResourceId", "positive", post, networks, `{"type":"IPv4Network","range":"10.1.0.0/24","location":{"id":-1}}`},
		{400, "InvalidResourceFieldValue", "hyphen", post, records, `{"type":"HostRecord","name":"-a","addresses":[{"address":"10.0.0.5"}]}`},
		{400, "InvalidResourceFieldValue", "64 octets", post, records, `{"type":"TXTRecord","name":"` + strings.Repeat("a", 64) + `"}`},
		{400, "InvalidResourceFieldValue", "the maximum is 253", post, records, `{"type":"TXTRecord","name":"` + strings.Repeat("abcdefgh.", 27) + `abcdefgh"}`},
		{400, "InvalidResourceFieldValue", "is not an IP address", post, records, `{"type":"HostRecord","name":"a","addresses":[{"address":"ten"}]}`},
		{400, "ValueLessThanMinimum", "ttl: must be 0 or more", post, records, `{"type":"TXTRecord","name":"a","ttl":-1}`},
		{400, "InvalidResourceFieldValue", "8 to 256", post, "/api/v2/users",
			`{"name":"u","email":"e@x","securityPrivilege":"NO_ACCESS","accessType":"API","password":"short"}`},
		{400, "MissingRequiredField", "defaultZonesInherited, restrictedZonesInherited, reverseZoneSigned", put, "/api/v2/networks/" + network,
			`{"range":"10.0.0.0/24"}`},
		{400, "InvalidResourceFieldValue", "cannot be changed", patch, "/api/v2/networks/" + network, `{"type":"IPv6Network"}`},
		{404, "ResourceNotFound", "999999", patch, "/api/v2/networks/999999", `{"name":"x"}`},
		{404, "WrongResourceCollection", "in networks", patch, "/api/v2/networks/" + block, `{"name":"x"}`},
		{404, "ResourceNotFound", "999999", "DELETE", "/api/v2/networks/999999", ``},
		{404, "ResourceNotFound", "999999", post, "/api/v2/blocks/999999/networks", `{"type":"IPv4Network","range":"/24"}`},
		{409, "ResourceAlreadyExists", "main", post, configurations, `{"name":"main"}`},
		{403, "ResourceInUse", "last administrator", "DELETE", "/api/v2/users/100000", ``},
		{403, "ResourceInUse", "last administrator", patch, "/api/v2/users/100000", `{"accountLocked":true}`},
		{403, "OperationNotPermitted", "releases", post, "/api/v2/patches", `{"publicKey":"x"}`},
	} {
		m.Refused(c.status, c.code, c.naming, c.method, c.path, c.body)
	}
	m.Verify()
}

func TestBadRequests(t *testing.T) {
	m := startAlone(t)
	_, _, _, _, network := m.Basics()
	at := "/api/v2/networks/" + network
	filter := func(f string) string { return "/api/v2/networks?filter=" + url.QueryEscape(f) }
	for _, c := range []struct {
		status                     int
		code, naming, method, path string
		headers                    []string
	}{
		{400, "InvalidLimitParameterValue", "limit", "GET", "/api/v2/networks?limit=-1", nil},
		{400, "InvalidLimitParameterValue", "limit", "GET", "/api/v2/networks?limit=0", nil},
		{400, "InvalidLimitParameterValue", "100000", "GET", "/api/v2/networks?limit=100001", nil},
		{400, "InvalidLimitParameterValue", "limit", "GET", "/api/v2/networks?limit=99999999999999999999", nil},
		{400, "InvalidLimitParameterValue", "limit", "GET", "/api/v2/networks?limit=ten", nil},
		{400, "MultipleQueryParameterValues", "limit: is given 2 times", "GET", "/api/v2/networks?limit=1&limit=2", nil},
		{400, "InvalidOffsetParameterValue", "offset", "GET", "/api/v2/networks?offset=-1", nil},
		{400, "InvalidOffsetParameterValue", "offset", "GET", "/api/v2/networks?offset=9223372036854775807", nil},
		{400, "InvalidQueryParameterValue", "total", "GET", "/api/v2/networks?total=perhaps", nil},
		{400, "InvalidQueryParameterValue", "malformed", "GET", "/api/v2/networks?filter=%zz", nil},
		{400, "InvalidQueryParameterValue", "NUL", "GET", "/api/v2/networks?filter=name:'%00'", nil},
		{400, "InvalidQueryParameterValue", "NUL", "GET", "/user/api/v1/fleetInstances?name=%00", nil},
		{404, "ResourceNotFound", "", "GET", "/user/api/v1/fleetInstances/%00", nil},
		{400, "FilterParseError", "position 1:", "GET", filter(`:`), nil},
		{400, "FilterParseError", "position 6: expected a value, found the end", "GET", filter(`name:`), nil},
		{400, "FilterTokenError", "position 6: text must be in quotes", "GET", filter(`name:office`), nil},
		{400, "FilterTokenError", "no closing quote", "GET", filter(`name:'office`), nil},
		{400, "InvalidFieldName", "usagePercentage", "GET", "/api/v2/blocks?fields=usage", nil}, // what it shows, not what it can be filtered by
		{400, "UnsupportedFilterOperator", "position 6: unknown operator like", "GET", filter(`name:like('a')`), nil},
		{400, "FilterParseError", "position 15: expected", "GET", filter(`name:'office' name:'x'`), nil},
		{400, "FilterParseError", "\")\"", "GET", filter(`(name:'x'`), nil},
		{400, "FilterParseError", "accepts only one value", "GET", filter(`name:eq('a','b')`), nil},
		{400, "FilterParseError", "must nest at most", "GET", filter(strings.Repeat("(", 1000)), nil},
		{400, "InvalidFilterField", "colour cannot be used here; use one of ", "GET", filter(`colour:'red'`), nil},
		{400, "InvalidFilterField", "defaultZones", "GET", filter(`defaultZones:'x'`), nil},
		{400, "InvalidFilterField", "name.x", "GET", filter(`name.x:'x'`), nil},
		{400, "InvalidFilterField", "location", "GET", filter(`location:'x'`), nil},
		{400, "InvalidFilterValueType", "whole number", "GET", filter(`id:'x'`), nil},
		{400, "InvalidFilterValueType", "true or false", "GET", filter(`defaultZonesInherited:'x'`), nil},
		{400, "InvalidFilterAddress", "IP address", "GET", filter(`gateway:'10.0.0.0/8'`), nil},
		{400, "InvalidFilterValue", "host bits", "GET", filter(`range:'10.0.0.1/8'`), nil},
		{400, "UnsupportedFilterOperator", "operator", "GET", filter(`range:endsWith('x')`), nil},
		{400, "UnsupportedFilterOperator", "operator", "GET", filter(`name:within('10.0.0.0/8')`), nil},
		{400, "InvalidFilterValue", "range", "GET", filter(`range:within('10.0.0.0/99')`), nil},
		{400, "InvalidFilterValue", "gateway", "GET", filter(`gateway:within(null)`), nil},
		{400, "UnsupportedOrderByField", "colour", "GET", "/api/v2/networks?orderBy=colour", nil},
		{400, "InvalidQueryParameterValue", "orderBy", "GET", "/api/v2/networks?orderBy=desc(name", nil},
		{400, "InvalidFieldName", "colour", "GET", "/api/v2/networks?fields=colour", nil},
		{400, "FieldsParseError", "parentheses", "GET", "/api/v2/networks?fields=not(id", nil},
		{400, "UnsupportedEmbeddableCollection", "not a subcollection", "GET", "/api/v2/networks?fields=embed(colours)", nil},
		{400, "InvalidQueryParameterValue", "at most 4 deep", "GET",
			"/api/v2/networks?fields=embed(addresses.resourceRecords.addresses.resourceRecords.addresses)", nil},
		{406, "NotAcceptable", "application/hal+json", "GET", "/api/v2/networks", []string{"Accept: image/png"}},
		{406, "NotAcceptable", "must be one of", "GET", at, []string{"Accept: text/csv"}},
		{415, "UnsupportedMediaType", "application/json", "POST", "/api/v2/configurations", []string{"Content-Type: text/plain"}},
		{415, "UnsupportedMediaType", "application/json", "POST", "/api/v2/configurations", []string{"Content-Type:"}},
		{415, "UnsupportedMediaType", "application/json", "POST", "/api/v2/configurations",
			[]string{"Content-Type: application/json; charset=utf-16"}},
		{415, "UnsupportedMediaType", "compressed", "POST", "/api/v2/configurations", []string{"Content-Encoding: gzip"}},
		{405, "MethodNotAllowed", "GET, HEAD, OPTIONS", "DELETE", "/api/v2/users", nil},
		{405, "MethodNotAllowed", "does not accept POST", "POST", at, nil},
		{405, "MethodNotAllowed", "does not accept BREW", "BREW", at, nil},
		{404, "ResourceNotFound", "999999", "GET", "/api/v2/networks/999999", nil},
		{404, "ResourceNotFound", "does not exist", "GET", "/api/v2/nothing", nil},
		{404, "ResourceNotFound", "does not exist", "GET", at + "/nothing", nil},
		{404, "ResourceNotFound", "does not exist", "GET", "/api/v2/networks/abc", nil},
		{404, "ResourceNotFound", "does not exist", "GET", "/api/v2/networks/99999999999999999999999", nil},
		{404, "ResourceNotFound", "does not exist", "GET", "/api/v2/networks/0", nil},
		{404, "ResourceNotFound", "999999", "GET", "/api/v2/networks/999999/addresses", nil},
		{404, "ResourceNotFound", "does not exist", "GET", "/elsewhere", nil},
		{404, "ResourceNotFound", "does not use the token of a session", "DELETE", "/api/v2/sessions/current", nil},
		{414, "URITooLong", "16384", "GET", filter("name:'" + strings.Repeat("a", 20000) + "'"), nil},
		{400, "InvalidHeaderValue", "Authorization: given 2 times", "GET", "/api/v2/networks",
			[]string{"Authorization: Bearer a", "Authorization: Bearer b"}},
		{400, "InvalidHeaderValue", "Idempotency-Key", "POST", "/api/v2/configurations",
			[]string{"Idempotency-Key: " + strings.Repeat("k", 300), "Content-Type: application/json"}},
		{400, "InvalidHeaderValue", "x-bcn-change-control-comment", "POST", "/api/v2/configurations",
			[]string{"x-bcn-change-control-comment: " + strings.Repeat("k", 3000), "Content-Type: application/json"}},
	} {
		body := ""
		if c.method == "POST" {
			body = `{"name":"x"}`
		}
		m.Refused(c.status, c.code, c.naming, c.method, c.path, body, c.headers...)
	}
	r := m.Want(308, "GET", "/api/v2/networks/?limit=1", "")
	if got := r.Header.Get("Location"); got != "/api/v2/networks?limit=1" {
		t.Errorf("a trailing slash leads to %s", got)
	}
	r = m.Want(405, "DELETE", "/api/v2/events", "")
	if got := r.Header.Get("Allow"); got != "GET, HEAD, OPTIONS" {
		t.Errorf("Allow is %q", got)
	}
}

// TestErrorsRevealNoInternals checks that no answer reveals internal details, and that unusual paths do not cause a 500.
func TestErrorsRevealNoInternals(t *testing.T) {
	m := startAlone(t)
	for _, path := range []string{"/api/v2/networks?filter=name:'%00'", "/api/v2/..%2f..%2fetc", "/api/v2//networks", "/api/v2/networks/1%2f2",
		"/api/v2/networks?filter=userDefinedFields.a-b:'x'", "/api/v2/networks?orderBy=userDefinedFields.a-b",
		"/api/v2/networks?filter=name:in(" + strings.Repeat("'a',", 150) + "'a')",
		"/api/v2/%2e%2e/healthz", "/user/api/v1/fleetInstances/%00", "/api/v2/networks?filter=name:endsWith('')"} {
		r := m.Do("GET", path, "")
		if r.StatusCode >= 500 {
			t.Errorf("%s answers %d %s", path, r.StatusCode, r.Body)
		}
		for _, word := range []string{"sqlite", "SELECT", "goroutine", ".go:", "json_extract", "panic"} {
			if strings.Contains(string(r.Body), word) {
				t.Errorf("%s shows %q: %s", path, word, r.Body)
			}
		}
		if got := r.Header.Get("Server"); got != "" {
			t.Errorf("the Server header says %s", got)
		}
	}
}

// TestMalformedHTTP checks that malformed HTTP is answered by 400, and that the connection ends.
func TestMalformedHTTP(t *testing.T) {
	m := startOnce(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(m.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	fmt.Fprintf(conn, "GET /api/v2 HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n")
	rs, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || rs.StatusCode != http.StatusBadRequest {
		t.Errorf("%v %v", rs, err)
	}
}
