package server

func init() {
	alsoMade = append(alsoMade, func(m *manager) {
		configuration := m.Want(200, "GET", "/api/v2/configurations?"+filter("name:'main'"), "").Text("data.0.id")
		kind := m.ID("/api/v2/deviceTypes", `{"name":"Anchor"}`)
		model := m.ID("/api/v2/deviceTypes/"+kind+"/deviceSubtypes", `{"name":"Anchor 12"}`)
		m.ID("/api/v2/configurations/"+configuration+"/devices", `{"name":"bollard","deviceSubtype":{"id":`+model+`},`+
			`"addresses":[{"address":"10.0.0.77"}]}`)
	})
}
