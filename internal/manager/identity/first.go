package identity

import "portolan/internal/engine/resource"

// CreateAdmin creates the user admin of a new manager, who is an administrator.
func CreateAdmin(c *resource.Change, password string) error {
	x := &User{Email: "admin@localhost", SecurityPrivilege: "ADMINISTRATOR", HistoryPrivilege: "ADMINISTRATOR", AccessType: "GUI_AND_API",
		Password: password}
	x.Type, x.Name = "User", "admin"
	t, _ := c.API.Type("User")
	_, err := c.Create(t, x)
	return err
}
