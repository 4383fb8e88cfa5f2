package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
)

// The number of rights of the user in (C), the number of networks in the block of each right, and the depth of the chain of blocks above
// one network.
const (
	rightsOfUser     = 200
	networksPerRight = 10
	chainOfBlocks    = 8
)

// rights measures (C): lists as a user with access rights, compared with an administrator. It also compares the effective rights on a
// network ten levels deep with a GET of it.
func (b *bench) rights() error {
	return b.rightsOn("(C)", filepath.Join(b.dir, "rights"))
}

// sharedRights measures (D): the same on PostgreSQL.
func (b *bench) sharedRights() error {
	url, err := b.newSharedDatabase("rights")
	if err != nil {
		return err
	}
	return b.rightsOn("(D) PostgreSQL,", url)
}

func (b *bench) rightsOn(what, data string) error {
	m, err := spawn("manager", data, "")
	if err != nil {
		return err
	}
	defer m.stop()
	o, err := createBlocks(m)
	if err != nil {
		return err
	}
	if err := analyze(data); err != nil {
		return err
	}
	as := func(path, credentials string) []byte {
		return bytes.Replace(request("GET", "/api/v2/"+path, "x", ""), []byte("Bearer x"), []byte(credentials), 1)
	}
	admin := "Bearer " + m.token
	for _, c := range []struct {
		what, path, other, by string
		maxRatio              float64
	}{
		{"1,000 networks as a user with 200 rights, against an administrator", "networks?limit=1000", "networks?limit=1000", admin, 1.3},
		{"1,000 networks as a user who sees all of them but one, against an administrator", "networks?limit=1000&offset=1",
			"networks?limit=1000&offset=1",
			admin, 1.3},
		{"1,000 addresses as a user with 200 rights, against an administrator", "addresses?limit=1000", "addresses?limit=1000", admin, 1.3},
		{"effective rights of a network ten deep, against GET of it", "networks/" + o.deep + "/effectiveRights", "networks/" + o.deep, "", 2},
	} {
		credentials := o.user
		if strings.Contains(c.what, "but one") {
			credentials = o.other
		}
		by := c.by
		if by == "" {
			by = credentials
		}
		ours, theirs, err := b.medians(m.addr, as(c.path, credentials), as(c.other, by))
		if err != nil {
			return fmt.Errorf("%s: %w", c.path, err)
		}
		ratio := float64(ours) / float64(theirs)
		b.add(what+" "+c.what, ours.String(), theirs.String(), ratio, fmt.Sprintf("at most %.1f", c.maxRatio), ratio <= c.maxRatio)
	}
	return nil
}

// organised is the result of organise: the ID of the network at the end of the chain, and the credentials of two users.
type organised struct{ deep, user, other string }

// createBlocks creates blocks with networks, and two users: one with a right on each block, and one who may view everything except one
// network.
func createBlocks(m *child) (o organised, err error) {
	c, err := dial(m.addr, nil)
	if err != nil {
		return o, err
	}
	defer func() { _ = c.conn.Close() }()
	post := func(path, body string) map[string]any {
		var answer map[string]any
		if err != nil {
			return answer
		}
		status, text, e := c.do(request("POST", "/api/v2/"+path, m.token, body), true)
		if err = e; err == nil && status != 201 {
			err = fmt.Errorf("POST %s: %d %s", path, status, text)
		}
		if err == nil {
			err = json.Unmarshal(text, &answer)
		}
		return answer
	}
	id := func(path, body string) string {
		n, _ := post(path, body)["id"].(float64)
		return fmt.Sprintf("%.0f", n)
	}
	right := func(user, at, level string) {
		id("accessRights", `{"userScope":{"id":`+user+`}`+at+`,"defaultAccessLevel":"`+level+`"}`)
	}
	const secret = "a long password"
	configuration := id("configurations", `{"name":"main"}`)
	one := id("users", `{"name":"one","email":"a@example.net","accessType":"API","securityPrivilege":"NO_ACCESS","password":"`+secret+`"}`)
	two := id("users", `{"name":"two","email":"a@example.net","accessType":"API","securityPrivilege":"NO_ACCESS","password":"`+secret+`"}`)
	first := ""
	for i := range rightsOfUser {
		block := id("configurations/"+configuration+"/blocks", fmt.Sprintf(`{"type":"IPv4Block","range":"10.%d.0.0/16"}`, i))
		right(one, `,"resource":{"id":`+block+`}`, "VIEW")
		if i == 0 {
			for depth := range chainOfBlocks - 1 {
				block = id("blocks/"+block+"/blocks", fmt.Sprintf(`{"type":"IPv4Block","range":"10.0.0.0/%d"}`, 17+depth))
			}
		}
		for n := range networksPerRight {
			if i == 0 && n > 0 {
				break
			}
			network := id("blocks/"+block+"/networks", fmt.Sprintf(`{"type":"IPv4Network","range":"10.%d.%d.0/28"}`, i, n))
			if first == "" {
				first, o.deep = network, network
			}
		}
	}
	right(two, "", "VIEW")
	right(two, `,"resource":{"id":`+first+`}`, "HIDE")
	sign := func(name string) string {
		text, _ := post("sessions", `{"username":"`+name+`","password":"`+secret+`"}`)["basicAuthenticationCredentials"].(string)
		return "Basic " + text
	}
	o.user, o.other = sign("one"), sign("two")
	return o, err
}
