package server

import (
	"maps"
	"slices"

	"portolan/internal/testkit/apitest"
)

func init() {
	alsoMade = append(alsoMade, func(m *manager) {
		body, kind := apitest.Form(map[string]string{"fileInfo": `{"name":"kept.csv","contentType":"text/csv"}`}, "type,name\r\n")
		m.ID("/api/v2/imports", body, kind)
		policy := m.Want(200, "GET", "/api/v2/responsePolicies", "").Text("data.0.id")
		body, kind = apitest.Form(map[string]string{"fileInfo": `{"name":"names.txt"}`}, "ads.example\n")
		m.EndedImport(m.Want(201, "POST", "/api/v2/responsePolicies/"+policy+"/imports", body, kind).Text("id"))
	})
}

func init() {
	alsoMade = append(alsoMade, func(m *manager) {
		of := func(collection, kind string) string {
			return collection + "/" + m.Want(200, "GET", "/api/v2/"+collection+"?limit=1&"+filter("type:'"+kind+"'"), "").Text("data.0.id")
		}
		below := map[string]string{"IPv4Block": of("blocks", "IPv4Block"), "IPv4Network": of("blocks", "IPv4Block"),
			"IPv6Block": of("blocks", "IPv6Block"), "IPv6Network": of("blocks", "IPv6Block"), "IPv4Address": of("networks", "IPv4Network"),
			"IPv6Address": of("networks", "IPv6Network"), "Zone": of("views", "View"), "TXTRecord": of("zones", "Zone")}
		for _, kind := range slices.Sorted(maps.Keys(below)) {
			table := "type\n" + kind + "\n" // whose row is refused
			m.EndedImport(m.Want(201, "POST", "/api/v2/"+below[kind]+"/imports", table, "Content-Type: text/csv").Text("id"))
		}
	})
}
