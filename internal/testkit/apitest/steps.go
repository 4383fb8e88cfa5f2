package apitest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"portolan/internal/manager/history"
)

// User creates a user with a security privilege. It returns the id and the header with the user's credentials.
func (c *Client) User(name, privilege string) (id, header string) {
	c.T.Helper()
	const password = "a password of theirs"
	id = c.ID("/api/v2/users", `{"name":"`+name+`","email":"`+name+`@example.net","accessType":"API","securityPrivilege":"`+privilege+
		`","password":"`+password+`"}`)
	return id, "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password))
}

// Right creates an access right of a user or group at a resource, or for everything if resource is empty. more are further JSON members. It
// returns the id.
func (c *Client) Right(subject, resource, level, more string) string {
	c.T.Helper()
	at := ""
	if resource != "" {
		at = `,"resource":{"id":` + resource + `}`
	}
	return c.ID("/api/v2/accessRights", `{"userScope":{"id":`+subject+`}`+at+`,"defaultAccessLevel":"`+level+`"`+more+`}`)
}

// LastTransaction returns the id of the latest transaction.
func (c *Client) LastTransaction() string {
	c.T.Helper()
	return c.Want(200, "GET", "/api/v2/transactions?limit=1&orderBy=desc(id)&fields=id", "").Text("data.0.id")
}

// Undo undoes a transaction.
func (c *Client) Undo(transaction string, headers ...string) Reply {
	c.T.Helper()
	return c.Do("POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+transaction+`}`, headers...)
}

// Tree returns the blocks, networks and addresses of a configuration as sorted words, each with the range of its parent.
func (c *Client) Tree(configuration string) string {
	c.T.Helper()
	text := ""
	spans := map[string]string{}
	for _, list := range []struct{ name, field string }{{"blocks", "range"}, {"networks", "range"}, {"addresses", "address"}} {
		r := c.Want(200, "GET", "/api/v2/"+list.name+"?limit=1000&orderBy=asc("+list.field+")&filter=configuration.id:"+configuration, "")
		all, _ := r.Get("data").([]any)
		for i := range all {
			at := fmt.Sprintf("data.%d.", i)
			spans[r.Text(at+"id")] = r.Text(at + list.field)
		}
		for i := range all {
			at := fmt.Sprintf("data.%d.", i)
			if name := r.Text(at + "range"); name == "2000::/3" || name == "fc00::/7" { // every configuration starts with them
				continue
			}
			up := r.Text(at + "_links.up.href")
			text += spans[up[strings.LastIndex(up, "/")+1:]] + ">" + r.Text(at+list.field)
			if gateway := r.Text(at + "gateway"); gateway != "" {
				text += "~" + gateway
			}
			if state := r.Text(at + "state"); state != "" && state != "STATIC" {
				text += "!" + state[:1]
			}
			text += " "
		}
	}
	return Sorted(text)
}

// Undoable checks that the latest transaction can be undone and redone. before is the Tree from before the transaction.
func (c *Client) Undoable(configuration, before string) {
	c.T.Helper()
	c.Verify()
	after, done := c.Tree(configuration), c.LastTransaction()
	if r := c.Undo(done); r.StatusCode != http.StatusCreated {
		c.T.Fatalf("undoing: %d %s", r.StatusCode, r.Body)
	}
	if got := c.Tree(configuration); got != before {
		c.T.Errorf("undone it is\n%s\nnot\n%s", got, before)
	}
	c.Verify()
	if r := c.Undo(c.LastTransaction()); r.StatusCode != http.StatusCreated {
		c.T.Fatalf("undoing the undo: %d %s", r.StatusCode, r.Body)
	}
	if got := c.Tree(configuration); got != after {
		c.T.Errorf("done again it is\n%s\nnot\n%s", got, after)
	}
	c.Verify()
}

// Sorted returns the words of a text in sorted order.
func Sorted(text string) string {
	words := strings.Fields(text)
	slices.Sort(words)
	return strings.Join(words, " ")
}

// HasWords reports whether a text has all these words.
func HasWords(text, words string) bool {
	all := strings.Fields(text)
	for _, word := range strings.Fields(words) {
		if !slices.Contains(all, word) {
			return false
		}
	}
	return true
}

// ServerBody returns the body that creates a managed server.
func ServerBody(name, address string) string {
	return `{"type":"Server","name":"` + name + `","profile":"DNS_DHCP_SERVER_60","connected":true,"interfaces":[{"managementAddress":"` + address + `"}]}`
}

// PolicyBody is the body that creates a signing policy. Replace NAME by its name.
const PolicyBody = `{"name":"NAME","keyProvider":"ADDRESS_MANAGER","signatureDigestAlgorithm":"SHA256","signatureValidityPeriod":"P10D",` +
	`"signatureResigningPeriod":"P2D","zoneSigningKeyAlgorithm":"ECDSAP256SHA256","zoneSigningKeyLength":256,"zoneSigningKeyValidityPeriod":"P30D",` +
	`"zoneSigningKeyOverlapPeriod":"P5D","zoneSigningKeyRolloverMethod":"PRE_PUBLISH","zoneSigningKeySigningPeriod":"P3D",` +
	`"keySigningKeyAlgorithm":"ECDSAP256SHA256","keySigningKeyLength":256,"keySigningKeyValidityPeriod":"P365D","keySigningKeyOverlapPeriod":"P30D",` +
	`"keySigningKeyRolloverMethod":"DOUBLE_SIGNING"}`

// Forget prunes the complete history.
func (c *Client) Forget() {
	c.T.Helper()
	for deadline := time.Now().Add(Patience); ; time.Sleep(20 * time.Millisecond) {
		if _, err := c.Data.Store.PruneHistory(c.T.Context(), c.Data.Store.Update, time.Now().Add(time.Hour),
			history.SignStart(c.Data.Sealer)); err != nil {
			c.T.Fatal(err)
		}
		left := c.Want(200, "GET", "/api/v2/transactions?limit=1&total=true", "").Text("totalCount")
		if left == "0" {
			return
		}
		if time.Now().After(deadline) {
			c.T.Fatalf("%s transactions are left", left)
		}
	}
}

// Quoted returns a text as a JSON string.
func Quoted(text string) string {
	data, err := json.Marshal(text)
	if err != nil { // a text has a JSON form
		panic(err)
	}
	return string(data)
}
