package server

func init() {
	alsoMade = append(alsoMade, func(m *manager) {
		user, _ := m.User("reader", "NO_ACCESS")
		m.Right(user, "", "VIEW", `,"accessOverrides":[{"resourceType":"Server","accessLevel":"HIDE"}]`)
		m.ID("/api/v2/accessRights", `{"type":"AdministrativeAccessRight","userScope":{"id":`+user+`},"administrativeAccessRights":[`+
			`{"resourceType":"Event","accessLevel":"VIEW"}]}`)
	})
}
