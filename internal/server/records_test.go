package server

import (
	"strings"
	"testing"
)

// What DNS does not allow is refused: anything beside an alias, an alias at the apex, the same record
// twice; and an undo that would bring it about.
func TestRecordsOfAName(t *testing.T) {
	m := startManager(t)
	_, view, zone, _, _ := m.basics()
	records := "/api/v2/zones/" + zone + "/resourceRecords"
	host := m.id(records, `{"type":"HostRecord","name":"www","addresses":[{"address":"10.0.0.10"}]}`)
	alias := m.id(records, `{"type":"AliasRecord","name":"web","linkedRecord":{"id":`+host+`}}`)
	txt := m.id(records, `{"type":"TXTRecord","name":"www","text":"one"}`)
	m.id(records, `{"type":"TXTRecord","name":"www","text":"two"}`)
	srv := m.id(records, `{"type":"SRVRecord","name":"_sip._tcp","linkedRecord":{"id":`+host+`},"priority":1,"weight":2,"port":5060}`)
	m.id(records, `{"type":"HINFORecord","name":"www","os":"Unix","cpu":"VAX"}`)
	m.id(records, `{"type":"NAPTRRecord","name":"n","order":1,"preference":2,"flags":"u","service":"E2U+sip","regularExpression":"!^.*$!sip:x@example.com!"}`)
	m.refused(409, "AliasNotAlone", "HostRecord "+host, "POST", records, `{"type":"AliasRecord","name":"WWW","linkedRecord":{"id":`+host+`}}`)
	m.refused(409, "AliasNotAlone", "AliasRecord "+alias, "POST", records,
		`{"type":"HostRecord","name":"Web","addresses":[{"address":"10.0.0.11"}]}`)
	m.refused(409, "AliasNotAlone", "AliasRecord "+alias, "PATCH", "/api/v2/resourceRecords/"+txt, `{"name":"web"}`, mergePatch)
	m.refused(409, "AliasAtApex", "example.com", "POST", records, `{"type":"AliasRecord","name":null,"linkedRecord":{"id":`+host+`}}`,
		"x-bcn-same-as-zone: true")
	m.refused(409, "ResourceAlreadyExists", "TXTRecord "+txt, "POST", records, `{"type":"TXTRecord","name":"www","text":"one"}`)
	m.refused(409, "ResourceAlreadyExists", "HostRecord "+host, "POST", records,
		`{"type":"HostRecord","name":"www","addresses":[{"address":"10.0.0.12"}]}`)
	m.refused(409, "ResourceAlreadyExists", "SRVRecord "+srv, "POST", records,
		`{"type":"SRVRecord","name":"_sip._tcp","linkedRecord":{"id":`+host+`},"priority":1,"weight":2,"port":5060}`)
	m.refused(400, "InvalidField", "RFC 3403", "POST", records,
		`{"type":"NAPTRRecord","name":"n2","regularExpression":"!a!b!","replacement":"example.com"}`)
	m.refused(400, "InvalidField", "65535", "POST", records,
		`{"type":"SRVRecord","name":"s","linkedRecord":{"id":`+host+`},"priority":1,"weight":2,"port":65536}`)

	// The target of a record is somebody else's, when that is said.
	mx := `{"type":"MXRecord","name":"mail","linkedRecord":{"absoluteName":"mx.elsewhere.net"}}`
	m.refused(404, "InlinedResourceNotFound", "mx.elsewhere.net", "POST", records, mx)
	r := m.want(201, "POST", records, mx, "x-bcn-link-to-external-host: true")
	if r.text("linkedRecord.name") != "mx.elsewhere.net" || r.text("linkedRecord.type") != "ExternalHostRecord" {
		t.Errorf("the mail record is %s", r.body)
	}
	external := m.want(200, "GET", "/api/v2/zones?filter=type:'ExternalHostsZone'", "").text("data.0.id")
	m.refused(400, "InvalidField", "nothing but ExternalHostRecords", "POST", "/api/v2/zones/"+external+"/resourceRecords",
		`{"type":"TXTRecord","name":"x","text":"y"}`)
	m.refused(400, "InvalidField", "lies in an ExternalHostsZone", "POST", records, `{"type":"ExternalHostRecord","name":"x.example.net"}`)
	m.refused(409, "ResourceAlreadyExists", "mx.elsewhere.net", "POST", "/api/v2/zones/"+external+"/resourceRecords",
		`{"type":"ExternalHostRecord","name":"mx.elsewhere.net"}`)
	m.refused(409, "ResourceAlreadyExists", "external hosts", "POST", "/api/v2/views/"+view+"/zones", `{"type":"ExternalHostsZone"}`)

	// An alias may not come back beside what has taken its name.
	m.want(204, "DELETE", "/api/v2/resourceRecords/"+alias, "")
	deleted := m.last()
	m.id(records, `{"type":"TXTRecord","name":"web","text":"x"}`)
	if r := m.undo(deleted); r.StatusCode != 409 || !strings.Contains(r.text("message"), "an alias stands alone") {
		t.Errorf("undoing the deletion: %d %s", r.StatusCode, r.body)
	}
	m.verify()
}
