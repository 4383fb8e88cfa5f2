package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sort"
	"strings"
	"testing"

	"portolan/internal/engine/published"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/rest"
	"portolan/internal/engine/schema"
	"portolan/internal/manager/model"
)

func declared(t *testing.T) *rest.Server {
	t.Helper()
	return Serve(model.NewAPI(nil), 100000, "test")
}

// served gives the methods of every path of the OpenAPI document, with braces emptied.
func served(t *testing.T, a *rest.Server) map[string][]string {
	t.Helper()
	text, err := a.OpenAPI("test", "test", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	paths := map[string][]string{}
	for path, item := range document.Paths {
		for method := range item {
			if method != "parameters" {
				paths[plain(path)] = append(paths[plain(path)], strings.ToUpper(method))
			}
		}
	}
	return paths
}

func plain(path string) string {
	return strings.NewReplacer("{collectionId}", "{}", "{id}", "{}").Replace(path)
}

// TestPublishedOperationsAreServed checks that every published operation of the built types is served, at every path. It counts the missing
// ones.
func TestPublishedOperationsAreServed(t *testing.T) {
	a := declared(t)
	paths := served(t, a)
	built := map[string]bool{}
	for _, c := range a.Collections() {
		built[c.Name] = true
	}
	total, missing := 0, 0
	for _, o := range published.Operations() {
		total++
		for _, c := range append(o.Collections, "")[:max(1, len(o.Collections))] {
			path := plain(strings.Replace(o.Path, "{collection}", c, 1))
			if slices.Contains(paths[path], o.Method) || slices.Contains(contradicted[o.ID], c) {
				continue
			}
			missing++
			parts := strings.Split(strings.TrimPrefix(path, Base+"/"), "/")
			allBuilt := len(o.Types) > 0 && built[parts[0]]
			for _, name := range o.Types {
				if _, ok := a.Type(name); !ok {
					allBuilt = false
				}
			}
			if allBuilt {
				t.Errorf("%s %s is published for types that are built and is not served", o.Method, path)
			}
			break
		}
	}
	t.Logf("release 9.5: %d of %d operations", total-missing, total)
	text, err := os.ReadFile("../../../docs/status.md")
	says := fmt.Sprintf("%d operations are served at every published path, %d answer 501", total-missing, missing)
	if err != nil || !strings.Contains(strings.Join(strings.Fields(string(text)), " "), says) {
		t.Errorf("of %d published operations %s, and docs/status.md differs (%v)", total, says, err)
	}
}

// contradicted are the collections of operations that are published there, and that the rest of what is published says are not for them;
// they answer 405.
var contradicted = map[string][]string{
	"postCollectionSigningKey":     {"blocks", "networks", "zones"}, // keys of zones are made by policies
	"postCollectionDeploymentRole": {"servers"},
	"postCollectionServer":         {"servers"}, // pairs are made of two servers by POST configurations/{}/servers
	"deleteCollectionServer":       {"servers"},
}

// TestPublishedLinks checks that every resource links to exactly the published subcollections of its collection.
func TestPublishedLinks(t *testing.T) {
	for _, c := range declared(t).Collections() {
		var names []string
		for _, s := range c.Subs {
			if s.Ours || s.Later {
				continue
			}
			names = append(names, s.Name)
		}
		if want := published.Subcollections()[c.Name]; !slices.Equal(names, want) {
			t.Errorf("%s links to\n %v, published are\n %v", c.Name, names, want)
		}
	}
}

// TestPublishedFields checks that every built type has every published field, with the published type.
func TestPublishedFields(t *testing.T) {
	a := declared(t)
	types, fields, there := 0, 0, 0
	defer func() { t.Logf("release 9.5: %d types, %d of %d fields", types, there, fields) }()
	for name, facts := range published.Types() {
		fields += len(facts.Fields)
		typ, ok := a.Type(name)
		if !ok && name == a.RootType || name == "Resource" { // the root with the id 1, and the base of all types
			root := startAlone(t).Want(200, "GET", Base+"/1", "")
			for field := range facts.Fields {
				if !strings.Contains(string(root.Body), `"`+field+`":`) {
					t.Errorf("%s has no field %s", name, field)
				}
				there++
			}
			types++
			continue
		}
		if !ok {
			t.Errorf("the type %s does not exist", name)
			continue
		}
		types++
		for field, want := range facts.Fields {
			f, ok := typ.Field(field)
			if ok {
				there++
			}
			if !ok && name+"."+field == "Transaction.transactionId" { // names what POST /transactions undoes
				continue
			}
			content := slices.Contains(a.CollectionOf(typ).Content.Types, name) && strings.HasSuffix(name, "Import")
			if !ok && content && (field == "fileInfo" || field == "fileData") { // parts of the body, not fields
				continue
			}
			if !ok {
				t.Errorf("%s has no field %s", name, field)
				continue
			}
			if f.ReadOnly != want.ReadOnly && want.ReadOnly && field != "id" && field != "type" && name+"."+field != "DHCPVendorOption.code" &&
				!(content && f.CreateOnly) { // which fileInfo says
				t.Errorf("%s.%s can be written and is published as read-only", name, field)
			}
			if f.WriteOnly != want.WriteOnly && want.WriteOnly {
				t.Errorf("%s.%s shows and is published as write-only", name, field)
			}
			if field != "type" && want.Enum != nil && !slices.Equal(without(f.Enum, beyond[name+"."+field]), want.Enum) && name != "Transaction" {
				t.Errorf("%s.%s takes %v, published are %v", name, field, f.Enum, want.Enum)
			}
			if want.Nullable != nil && !*want.Nullable && f.Nullable && field != "type" && !(name == "User" && field == "authenticator") &&
				!(name == "ExternalHostRecord" && field == "name") && name != "Transaction" {
				t.Errorf("%s.%s can be null and is published as never null", name, field)
			}
			// A published type without resources represents several types.
			if len(want.Ref) == 1 && f.Kind == schema.Reference && !slices.Equal(f.Refs, want.Ref) &&
				len(published.Types()[want.Ref[0]].Collections) > 0 &&
				name+"."+field != "TFTPDeploymentRole.server" {
				t.Errorf("%s.%s refers to %v, published is %v", name, field, f.Refs, want.Ref)
			}
		}
	}
}

// nullable are the fields that release 9.6 publishes as never null and that an answer may show as null, each with the reason that
// docs/decisions.md gives.
var nullable = map[string]string{
	"AddressManagerAuthenticator.hostname": unset, "AddressManagerDatabase.backupEnabled": "backups are not configured",
	"DHCPAlertSettings.highWaterMark": unset, "DHCPAlertSettings.lowWaterMark": unset, "DHCPAlertSettings.pollingInterval": unset,
	"DHCPForwardZone.zone": gone, "DHCPReverseZone.prefix": gone,
	"HTTPSRecord.linkedRecord": "the target is the name itself (RFC 9460 section 2.5.2)", "SVCBRecord.linkedRecord": "as HTTPSRecord",
	"LDAPAuthenticator.adminPassword": secret, "RADIUSAuthenticator.sharedSecret": secret, "TACACSPlusAuthenticator.sharedSecret": secret,
	"KerberosServicePrincipal.password": secret, "LicenseService.key": secret, "WebAccessSettings.privateKey": secret,
	"LDAPAuthenticator.emailPrefix": unset, "LDAPAuthenticator.groupObjectClass": unset, "LDAPAuthenticator.memberOfPrefix": unset,
	"LDAPAuthenticator.userObjectClass": unset, "LDAPAuthenticator.userPrefix": unset, "LicenseService.clientId": unset,
	"SAMLIdentityProvider.emailAttribute": unset, "SAMLIdentityProvider.groupAttribute": unset,
	"SAMLServiceProviderSettings.organizationName": unset, "SAMLServiceProviderSettings.organizationUrl": unset,
	"SNMPService.contactEmail": unset, "SNMPService.contactName": unset, "SNMPService.description": unset, "SNMPService.location": unset,
	"SNMPService.pollingInterval": unset, "WebAccessSettings.caCertificates": unset, "WebAccessSettings.certificate": unset,
	"Location.name": "release 9.5 takes null; the code is the name then", "NamingPolicy.name": "release 9.5 takes null",
	"Transaction.transactionType": "of a transaction that is not an undo", "User.authenticator": "of a user whose password the manager has",
}

const (
	unset  = "it is not set, and has no default"
	gone   = "what it refers to was deleted"
	secret = "secrets are shown as null"
)

// TestPublishedNulls checks that values that release 9.6 publishes as never null are declared as never null, except for those listed above.
// TestEveryTypeRoundTrips checks resources for the same, including the names and values of options.
func TestPublishedNulls(t *testing.T) {
	a, found := declared(t), map[string]bool{}
	for name, facts := range published.LaterTypes() {
		typ, ok := a.Type(name)
		if !ok {
			continue
		}
		for field, want := range facts.Fields {
			f, ok := typ.Field(field)
			if !ok || want.Nullable == nil || *want.Nullable || !f.Nullable || f.WriteOnly || f.Name == "type" || f.Blank || f.Any ||
				f.Name == "name" && name != "NamingPolicy" && name != "Location" || strings.HasSuffix(name, "Option") && field == "value" {
				continue
			}
			found[name+"."+field] = true
			if nullable[name+"."+field] == "" {
				t.Errorf("%s.%s can be null and release 9.6 publishes it as never null", name, field)
			}
		}
	}
	for field, why := range nullable {
		if !found[field] && why != secret { // a secret is shown as null, however it is declared
			t.Errorf("%s is never null: take it off the list", field)
		}
	}
}

// TestCollectionsWithoutResources checks collections that are published only through the subcollections of a resource.
func TestCollectionsWithoutResources(t *testing.T) {
	m := startAlone(t)
	for _, name := range []string{"dns64", "hsmConfigurations", "hsmServers", "reports"} {
		for _, below := range []string{"accessRights", "tags", "transactions"} {
			m.Refused(404, "ResourceNotFound", "", "GET", Base+"/"+name+"/7/"+below, "")
		}
		m.Refused(404, "ResourceNotFound", "", "POST", Base+"/"+name+"/7/tags", `{"id":1}`)
		m.Refused(404, "ResourceNotFound", "", "GET", Base+"/"+name, "")
	}
	user := m.Want(200, "GET", Base+"/users?limit=1", "").Text("data.0.id")
	task := m.ID(Base+"/users/"+user+"/tasks", `{"name":"t","priority":"LOW","state":"NOT_STARTED","percentComplete":0}`)
	if r := m.Want(200, "GET", Base+"/tasks/"+task+"/transactions", ""); r.Text("data.0.operation") != "ADD_TASK" {
		t.Errorf("the history of a task is %s", r.Body)
	}
}

// beyond are values that we take besides the published ones.
var beyond = map[string][]string{"GenericRecord.recordType": strings.Split("DNSKEY|HTTPS|MX|NAPTR|SRV|SVCB|URI|AMTRELAY|ATMA|AVC|CDNSKEY|"+
	"CDS|CSYNC|DLV|DOA|EID|EUI48|"+
	"EUI64|GPOS|HIP|L32|L64|LP|MD|MF|NID|NIMLOC|NINFO|NSAP-PTR|OPENPGPKEY|RKEY|SMIMEA|TA|TALINK|ZONEMD", "|"),
	"Server.profile": {"PORTOLAN_SERVICE_POINT"}, "HAServer.profile": {"PORTOLAN_SERVICE_POINT"},
	"Server.state": {"DISABLE"}, "HAServer.state": {"DISABLE"}, "WorkflowRequest.state": {"PENDING"},
	"UserDefinedFieldDefinition.resourceType": {"HTTPSRecord", "SVCBRecord", "URIRecord"}} // which release 9.6 adds

func without(list, out []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(text string) bool { return slices.Contains(out, text) })
}

// TestPublishedRequired checks that exactly the fields that are published as required are required.
func TestPublishedRequired(t *testing.T) {
	a := declared(t)
	for _, o := range published.Operations() {
		for name, body := range published.Bodies()[o.ID] {
			if typ, ok := a.Type(name); ok && !slices.Equal(body.Required, []string{"id"}) { // a link, which the engine reads
				checkRequired(t, o, typ, body.Required)
			}
		}
	}
}

func checkRequired(t *testing.T, o published.Operation, typ *schema.Type, want []string) {
	t.Helper()
	if typ.Name == "Zone" && o.Method == http.MethodPost || typ.Name == "UserSession" {
		return // a name or an absolute name; a login may come as Basic credentials
	}
	var got []string
	for _, f := range typ.Fields {
		if o.Method == http.MethodPost && f.OnPost || o.Method == http.MethodPut && f.OnPut {
			got = append(got, f.Name)
		}
	}
	want = slices.DeleteFunc(slices.Clone(want), func(name string) bool {
		return name == "type" || name == "authenticator" || name == "id" && typ.Name == "UserDefinedLinkedResource" // the resource that is linked
	})
	sort.Strings(got)
	if !slices.Equal(got, want) {
		t.Errorf("%s %s requires %v of a %s, published is %v", o.Method, o.Path, got, typ.Name, want)
	}
}

// TestOpenAPIReferencesResolve checks that every reference in the document resolves.
func TestOpenAPIReferencesResolve(t *testing.T) {
	text, err := declared(t).OpenAPI("test", "test", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var document any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch x := v.(type) {
		case []any:
			for _, inner := range x {
				walk(inner)
			}
		case map[string]any:
			if ref, ok := x["$ref"].(string); ok {
				at := document
				for step := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
					inner, ok := at.(map[string]any)
					if !ok || inner[step] == nil {
						t.Errorf("%s leads nowhere", ref)
						break
					}
					at = inner[step]
				}
			}
			if id, ok := x["operationId"].(string); ok {
				if ids[id] {
					t.Errorf("two operations are called %s", id)
				}
				ids[id] = true
			}
			for _, inner := range x {
				walk(inner)
			}
		}
	}
	walk(document)
	if len(ids) < 50 {
		t.Error(fmt.Sprint("only ", len(ids), " operations"))
	}
}

// TestOperationsArePublished names what changes of every published type are called by words of the published enumeration: clients with an
// enumeration refuse a list that has another one.
func TestOperationsArePublished(t *testing.T) {
	m := startAlone(t)
	known := map[string]bool{}
	for _, types := range []map[string]published.Type{published.Types(), published.LaterTypes()} {
		for _, name := range types["Transaction"].Fields["operation"].Enum {
			known[name] = true
		}
	}
	if len(known) < 500 {
		t.Fatalf("there are %d operations", len(known))
	}
	for _, one := range m.Address.AllTypes() {
		_, earlier := published.Types()[one.Name]
		_, later := published.LaterTypes()[one.Name]
		if !earlier && !later {
			continue
		}
		for _, operation := range resource.OperationsOf(one) {
			if !known[operation] {
				t.Errorf("%s is not a published operation of %s", operation, one.Name)
			}
		}
	}
}
