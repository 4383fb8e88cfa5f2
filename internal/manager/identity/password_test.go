package identity

import (
	"testing"

	"portolan/internal/manager/authz"
)

func TestPasswords(t *testing.T) {
	hash := HashPassword("a password", 1)
	if !verifyPassword(hash, "a password") || verifyPassword(hash, "another one") {
		t.Error("a password and its hash do not go together")
	}
	if HashPassword("a password", 1) == hash {
		t.Error("two hashes with one salt")
	}
	for _, bad := range []string{"", "x", "$argon2id$v=19$m=1$x$y", "$argon2id$v=19$m=19456,t=2,p=1$!!$!!",
		"$bcrypt$v=19$m=19456,t=2,p=1$AAAA$AAAA"} {
		if verifyPassword(bad, "") {
			t.Errorf("the hash %q accepts a password", bad)
		}
	}
	for password, ok := range map[string]bool{"": false, "seven77": false, "eight888": true, string(make([]byte, 257)): false} {
		if err := CheckPassword(password); (err == nil) != ok {
			t.Errorf("a password of %d bytes: %v", len(password), err)
		}
	}
}

func TestUserState(t *testing.T) {
	for _, c := range []struct {
		user   User
		usable bool
		role   string
	}{
		{User{SecurityPrivilege: "ADMINISTRATOR", AccessType: "API"}, true, authz.Administrator},
		{User{SecurityPrivilege: "ADMINISTRATOR", AccessType: "GUI"}, false, authz.Administrator},
		{User{SecurityPrivilege: "NO_ACCESS", AccessType: "GUI_AND_API"}, true, authz.Analyst},
		{User{SecurityPrivilege: "ADMINISTRATOR", AccessType: "API", AccountLocked: true}, false, authz.Administrator},
	} {
		if c.user.usable(authz.APIInterface) != c.usable || c.user.role() != c.role {
			t.Errorf("%+v: usable %v, role %s", &c.user, c.user.usable(authz.APIInterface), c.user.role())
		}
	}
}
