package server

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/testkit/apitest"
)

// tried is a request that an approvals walk sends, and why.
type tried struct{ why, method, path, body string }

// approvalWalk are the requests that could change a protected resource without naming it. Its members are the world: one resource of each
// type that has any, by its type.
type approvalWalk struct {
	m   *manager
	ids map[string]string
	all []tried
}

func (w *approvalWalk) add(why, method, path, body string) {
	w.all = append(w.all, tried{why, method, path, body})
}

// of gives the id of a resource of the first of these types that there is one of.
func (w *approvalWalk) of(types ...string) string {
	for _, name := range types {
		if id := w.ids[name]; id != "" {
			return id
		}
	}
	return ""
}

// acts are the bodies of POSTs that reshape: by their types. None of them names what it is sent below.
func (w *approvalWalk) acts() map[string]string {
	return map[string]string{
		"IPMove":                  `{"type":"IPMove","address":"10.77.0.0"}`,
		"IPv4AddressMove":         `{"type":"IPv4AddressMove","destination":{"address":"10.0.0.77"}}`,
		"IPv6AddressMove":         `{"type":"IPv6AddressMove","destination":{"address":"2001:db8:1::77"}}`,
		"IPv4BlockMove":           `{"type":"IPv4BlockMove","destination":{"range":"10.64.0.0/16"}}`,
		"IPv6BlockMove":           `{"type":"IPv6BlockMove","destination":{"range":"2001:db9::/32"}}`,
		"IPv4NetworkMove":         `{"type":"IPv4NetworkMove","destination":{"range":"10.77.0.0/24"}}`,
		"IPv6NetworkMove":         `{"type":"IPv6NetworkMove","destination":{"range":"2001:db8:77::/64"}}`,
		"DNSMove":                 `{"type":"DNSMove","absoluteName":"moved.example"}`,
		"ZoneMove":                `{"type":"ZoneMove","absoluteName":"moved.example"}`,
		"DeploymentRoleMove":      `{"type":"DeploymentRoleMove","roleTypes":["DNSDeploymentRole"],"destination":{"id":` + w.of("NetworkInterface") + `}}`,
		"IPv4NetworkSplit":        `{"type":"IPv4NetworkSplit","network":{"id":` + w.of("IPv4Network") + `},"networkCount":2}`,
		"IPv4BlockSplit":          `{"type":"IPv4BlockSplit","block":{"id":` + w.of("IPv4Block") + `},"splitPointAddress":"10.0.1.0"}`,
		"IPv4NetworkMerge":        `{"type":"IPv4NetworkMerge","networks":[{"id":` + w.of("IPv4Network") + `}],"destination":{"id":` + w.of("IPv4Network") + `}}`,
		"IPv4BlockMerge":          `{"type":"IPv4BlockMerge","blocks":[{"id":` + w.of("IPv4Block") + `}],"destination":{"id":` + w.of("IPv4Block") + `}}`,
		"IPv4DHCPRangeMerge":      `{"type":"IPv4DHCPRangeMerge","ranges":[{"id":` + w.of("IPv4DHCPRange") + `}],"destination":{"id":` + w.of("IPv4DHCPRange") + `}}`,
		"IPv4TemplateApplication": `{"type":"IPv4TemplateApplication"}`,
		"ZoneTemplateApplication": `{"type":"ZoneTemplateApplication"}`,
		"FullDeployment":          `{"type":"FullDeployment","service":"DNS"}`,
		// Types that occupy space or a name.
		"IPv4Block":     `{"type":"IPv4Block","range":"10.0.0.0/16"}`,
		"IPv6Block":     `{"type":"IPv6Block","range":"2001:db8:1::/48"}`,
		"IPv4DHCPRange": `{"type":"IPv4DHCPRange","range":"10.0.0.8-10.0.0.12"}`,
		"IPv6DHCPRange": `{"type":"IPv6DHCPRange","range":"2001:db8:1::1-2001:db8:1::ff"}`,
		"IPv4Group":     `{"type":"IPv4Group","name":"g","range":"10.0.0.5-10.0.0.15"}`,
		"MACAddress":    `{"type":"MACAddress","address":"00-00-5E-00-53-77"}`,
	}
}

// other gives another value of a field, as JSON; "" where none is known.
func (w *approvalWalk) other(f *schema.Field, now any) []string {
	switch f.Kind {
	case schema.Text:
		if len(f.Enum) > 0 {
			return append(quotedAll(f.Enum), "null")
		}
		text, _ := now.(string)
		return []string{apitest.Quoted(text + "x"), "null"}
	case schema.Bool:
		return []string{"true", "false", "null"}
	case schema.Integer, schema.Float:
		return []string{"1", "2", "null"}
	case schema.Reference:
		values := []string{"null"}
		for _, name := range f.Refs {
			if id := w.ids[name]; id != "" {
				values = append(values, `{"id":`+id+`}`)
			}
		}
		return values
	case schema.References:
		values := []string{"[]"}
		for _, name := range f.Refs {
			if id := w.ids[name]; id != "" {
				values = append(values, `[{"id":`+id+`}]`)
			}
		}
		return values
	case schema.Span:
		return []string{`"10.0.0.0/9"`, `"10.0.0.0/15"`, `"10.0.0.0/25"`, `"10.0.0.10-10.0.0.30"`}
	case schema.Address:
		return []string{`"10.0.0.42"`, "null"}
	}
	return nil
}

func quotedAll(texts []string) (all []string) {
	for _, text := range texts {
		all = append(all, apitest.Quoted(text))
	}
	return all
}

// fill collects the requests. An unprotected resource is deleted, each of its fields gets other values, links to and from it are created
// and deleted, and the resources below it are reshaped. A protected resource is named in batches and documents.
func (w *approvalWalk) fill(protected map[string]bool) {
	m, acts := w.m, w.acts()
	used := map[string]bool{}
	for _, c := range m.Address.Collections() {
		for _, typ := range c.Types {
			id := w.ids[typ.Name]
			if id == "" || c.Inner || c.SignIn != nil || c.From != "resource" {
				continue
			}
			path := "/api/v2/" + c.Path() + "/" + id
			if protected[typ.Name] {
				change := func(method, body string) string {
					return `{"changes":[{"method":"` + method + `","path":"` + path + `"` + body + `}]}`
				}
				w.add("a batch", "POST", "/api/v2/batch", change("DELETE", ""))
				w.add("a batch", "POST", "/api/v2/batch", change("PATCH", `,"body":{"userDefinedFields":{}}`))
				w.add("a list", "DELETE", "/api/v2/"+c.Path()+"?"+filter("id:"+id), "")
			} else {
				w.add("a deletion", "DELETE", path, "")
				w.add("a list", "DELETE", "/api/v2/"+c.Path()+"?"+filter("id:"+id), "")
				now := m.Want(200, "GET", path, "")
				for _, f := range typ.Fields {
					if f.ReadOnly || f.CreateOnly || f.Name == "type" || f.Name == "userDefinedFields" {
						continue
					}
					for _, value := range w.other(f, now.Get(f.Name)) {
						w.add("a field", "PATCH", path, `{"`+f.Name+`":`+value+`}`)
					}
				}
			}
			w.below(path, typ, c, acts, used, protected)
		}
	}
	for name := range acts {
		if !used[name] {
			m.T.Errorf("%s is made below nothing", name)
		}
	}
}

// below makes the requests to the subcollections of a resource.
func (w *approvalWalk) below(path string, typ *schema.Type, c *resource.Collection, acts map[string]string,
	used, protected map[string]bool,
) {
	for i := range c.Subs {
		sub := &c.Subs[i]
		at := path + "/" + sub.Name
		switch {
		case sub.Relation == resource.Children && sub.Post:
			for _, name := range sub.Types {
				if body := acts[name]; body != "" {
					used[name] = true
					w.add("below", "POST", at, body)
				}
			}
		case sub.Relation == resource.Linked || sub.Relation == resource.Linking:
			for _, name := range sub.Types {
				// A link from a resource that is protected is a change of it, which may be asked for.
				if id := w.ids[name]; id != "" && sub.Post && (protected[name] || !protected[typ.Name]) {
					w.add("a link", "POST", at, `{"id":`+id+`}`)
				}
			}
			if !sub.Drop || protected[typ.Name] {
				continue
			}
			r := w.m.Do("GET", at+"?limit=5&fields=id", "")
			for i := range 5 {
				if id := r.Text(fmt.Sprintf("data.%d.id", i)); r.StatusCode == 200 && id != "" {
					w.add("a link", "DELETE", at+"/"+id, "")
				}
			}
		}
	}
}

// TestApprovalsCannotBeBypassed protects every type whose changes can require approval, and sends requests that could change its
// resources without one: to their references and referrers, their parents, links, reshaping, batches, documents, lists and undo. None may
// change a protected resource.
func TestApprovalsCannotBeBypassed(t *testing.T) {
	apitest.Slow(t)
	apitest.OnSQLite(t)
	m := startManager(t)
	m.oneOfEach()
	w, protected := &approvalWalk{m: m, ids: map[string]string{}}, map[string]bool{}
	for _, c := range m.Address.Collections() {
		for _, typ := range c.Types {
			if c.Inner || c.From != "resource" {
				continue
			}
			found := m.Want(200, "GET", "/api/v2/"+c.Path()+"?limit=1&orderBy=asc(id)&fields=id&"+filter("type:'"+typ.Name+"'"), "")
			if id := found.Text("data.0.id"); id != "" {
				w.ids[typ.Name] = id
				protected[typ.Name] = c.Workflow != nil && c.Workflow(typ.Name) != ""
			}
		}
	}
	configuration := m.Want(200, "GET", "/api/v2/networks/"+w.of("IPv4Network"), "").Text("configuration.id")
	w.fill(protected)
	for _, path := range []string{"addresses/" + w.of("IPv4Address"), "resourceRecords/" + w.of("HostRecord"),
		"networks/" + w.of("IPv4Network")} {
		of := m.Want(200, "GET", "/api/v2/"+path+"/transactions?limit=3", "")
		for i := range 3 {
			if n := of.Text(fmt.Sprintf("data.%d.id", i)); n != "" {
				w.add("an undo", "POST", "/api/v2/transactions", `{"type":"Transaction","transactionType":"UNDO","transactionId":`+n+`}`)
			}
		}
	}
	for kind, more := range map[string]string{"IPv4Network": `"range":"10.0.0.0/24","name":"by a document"`,
		"IPv4Address": `"address":"10.0.0.10","name":"by a document","state":"STATIC"`,
		"HostRecord":  `"absoluteName":"www.example.net","ttl":77`} {
		w.add("a document", "POST", "/api/v2/apply", `{"into":"configurations/main","resources":[{"type":"`+kind+`",`+more+`}]}`)
	}
	carol, asCarol := m.User("carol", "NO_ACCESS")
	m.Right(carol, configuration, "FULL", `,"workflowLevel":"RECOMMEND"`)
	types := []string{}
	for name, yes := range protected {
		if yes {
			types = append(types, name)
		}
	}
	slices.Sort(types)
	touched := map[int]string{}       // by requests, what they reach where nothing keeps them from it
	touches := func(r reply) string { // the first protected resource that a trial makes, changes or deletes
		for i := 0; r.Text(fmt.Sprintf("operations.%d.type", i)) != ""; i++ {
			op := fmt.Sprintf("operations.%d.", i)
			if name := r.Text(op + "resourceType"); protected[name] {
				return r.Text(op+"operationType") + " " + name + " " + r.Text(op+"fieldUpdates")
			}
		}
		return ""
	}
	for _, by := range []struct{ name, header string }{{"an administrator", ""}, {"carol, who recommends", asCarol},
		{"an administrator, with four eyes", ""}} {
		free := by.name == "an administrator" // whom nothing keeps from it: the walk has to reach protected resources at all
		if strings.Contains(by.name, "four eyes") {
			m.Want(200, "PATCH", "/api/v2/configurations/"+configuration, `{"fourEyesTypes":["`+strings.Join(types, `","`)+`"]}`)
		}
		done, reached, ways := 0, map[string]int{}, map[string]int{}
		for i, one := range w.all {
			if ways[one.why]++; ways[one.why] > 60 && !apitest.InSample(i, 3) {
				continue
			}
			headers := []string{"x-portolan-dry-run: true"}
			if by.header != "" {
				headers = append(headers, by.header)
			}
			if one.method == "PATCH" {
				headers = append(headers, apitest.MergePatch)
			}
			r := m.Do(one.method, one.path, one.body, headers...)
			if r.StatusCode >= 300 || r.Text("created")+r.Text("changed")+r.Text("deleted") == "000" { // refused, or nothing to do
				continue
			}
			done++
			what := touches(r) // which carol is not shown: what the administrator's trial reached hers would
			if free {
				touched[i] = what
			} else if what = cmp.Or(what, touched[i]); what != "" && r.Get("approval") == nil {
				t.Errorf("%s: %s: %s %s %s: %s", by.name, one.why, one.method, one.path, one.body, what)
			}
			if what != "" {
				reached[one.why]++
			}
		}
		t.Logf("%s: %d requests, %d done, protected resources reached by %v", by.name, len(w.all), done, reached)
		if done < 100 || free && len(reached) < 6 {
			t.Errorf("%s: %d of %d requests are done, and reach protected resources by %v", by.name, done, len(w.all), reached)
		}
	}
	// A file, whose rows are worked off later.
	made, log := m.Imported(`"name":"rows.csv","contentType":"text/csv"`, "type,id,name\r\nIPv4Network,"+w.of("IPv4Network")+",renamed\r\n")
	if made.Text("updated")+made.Text("refused") != "01" || !strings.Contains(log, "the configuration requires it") {
		t.Errorf("the import is %s\n%s", made.Body, log)
	}
	// Resources that are missing in such a file are kept.
	eyes := func(types string) {
		m.Want(200, "PATCH", "/api/v2/configurations/"+configuration, `{"fourEyesTypes":[`+types+`]}`)
	}
	eyes("")
	group := m.ID("/api/v2/tagGroups", `{"name":"pruned"}`)
	tag := m.ID("/api/v2/tagGroups/"+group+"/tags", `{"name":"pruned"}`)
	m.Want(201, "POST", "/api/v2/networks/"+w.of("IPv4Network")+"/tags", `{"id":`+tag+`}`)
	eyes(`"` + strings.Join(types, `","`) + `"`)
	for mode, want := range map[string]string{"ROW_BY_ROW": "01", "ALL_OR_NOTHING": "00"} {
		made, log = m.Imported(`"contentType":"text/csv","into":"configurations/`+configuration+`","tag":"tags/pruned","prune":true,"mode":"`+mode+`"`,
			"type,name\r\nMACPool,of a file\r\n")
		if made.Text("deleted")+made.Text("refused") != want || !strings.Contains(log+made.Text("message"), "the configuration requires it") {
			t.Errorf("%s: the import is %s\n%s", mode, made.Body, log)
		}
		m.Want(200, "GET", "/api/v2/networks/"+w.of("IPv4Network"), "")
	}
	m.Verify()
}
