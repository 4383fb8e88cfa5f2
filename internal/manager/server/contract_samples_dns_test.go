package server

import "encoding/base64"

func init() {
	alsoMade = append(alsoMade, func(m *manager) {
		at := "/api/v2/configurations/" + m.Want(200, "GET", "/api/v2/configurations?"+filter("name:'main'"), "").Text("data.0.id")
		m.ID(at+"/signingKeys", `{"type":"TSIGKey","name":"transfer","algorithm":"SHA256","length":256,"privateKey":"`+
			base64.StdEncoding.EncodeToString(make([]byte, 32))+`"}`)
		realm := m.ID(at+"/realms", `{"name":"EXAMPLE.NET","domain":"example.net"}`)
		m.ID("/api/v2/realms/"+realm+"/keyDistributionCenters", `{"name":"one","host":"kdc.example.net"}`)
		m.ID("/api/v2/realms/"+realm+"/servicePrincipals", `{"name":"DNS/ns.example.net","keyVersionNumber":1,"password":"x"}`)
	})
}
