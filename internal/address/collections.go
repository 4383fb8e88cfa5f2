package address

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"portolan/internal/identity"
	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/store"
)

// Base is the path of the API (spec.md section 9).
const Base = "/api/v2"

// unbuilt names subcollections that are published and not built yet; they are linked all the same.
func unbuilt(names ...string) []resource.Sub {
	subs := make([]resource.Sub, len(names))
	for i, name := range names {
		subs[i].Name = name
	}
	return subs
}

// subs puts subcollections together in the order of their names, as they are published.
func subs(built []resource.Sub, rest ...string) []resource.Sub {
	return slices.SortedFunc(slices.Values(slices.Concat(built, unbuilt(rest...))),
		func(a, b resource.Sub) int { return strings.Compare(a.Name, b.Name) })
}

func children(name string) resource.Sub {
	return resource.Sub{Name: name, Relation: resource.Children, Post: true}
}

// doing is a subcollection whose resources are what was done to the one above; none of the types:
// what was done there can only be looked at.
func doing(name string, types ...string) resource.Sub {
	return resource.Sub{Name: name, Relation: resource.Children, Post: len(types) > 0, Types: types}
}

// readable is a subcollection of children that are made elsewhere.
func readable(name string) resource.Sub {
	return resource.Sub{Name: name, Relation: resource.Children}
}

// usedBy are the addresses that refer to a client.
func usedBy(field string) resource.Sub {
	return resource.Sub{Name: "addresses", Relation: resource.Linking, Field: field, Post: field == "clientIdentifier", Item: field == "clientIdentifier", Drop: field == "clientIdentifier"}
}

// parts is what came of a split or merge.
func parts(name string) resource.Sub {
	return resource.Sub{Name: name, Relation: resource.Linked, Field: name, Item: true}
}

// policyParts are the parts of a naming policy, which are set with it.
func policyParts(field, items string) resource.Sub {
	return resource.Sub{Name: field, Relation: resource.Linked, Field: field, Items: []string{items}, Item: true}
}

func history() resource.Sub { return resource.Sub{Name: "transactions", Relation: resource.History} }

// links is a subcollection of the targets of a field, linked and unlinked through it.
func links(name, field string, items ...string) resource.Sub {
	return resource.Sub{Name: name, Relation: resource.Linked, Field: field, Items: items, Post: true, Item: true, Drop: true}
}

// linking is the same seen from the other side.
func linking(name, field string, items ...string) resource.Sub {
	s := links(name, field, items...)
	s.Relation = resource.Linking
	return s
}

func declare(samples ...resource.Object) []*resource.Type {
	types := make([]*resource.Type, len(samples))
	for i, sample := range samples {
		types[i] = resource.Declare(sample)
	}
	return types
}

// collections is the list of the collections of the API, in the order of its documentation.
func collections(users *identity.Service) []*resource.Collection {
	restricted := linking("restrictedRanges", "restrictedZones", "blocks", "networks")
	restricted.Types = []string{"IPv4Block", "IPv4Network"}
	dependent := resource.Sub{Name: "dependentRecords", Relation: resource.Linking, Field: "linkedRecord", Items: []string{"resourceRecords"}, Item: true}
	addressRecords := linking("resourceRecords", "addresses")
	addressRecords.Types = []string{"HostRecord"}
	networkAddresses := children("addresses")
	networkAddresses.Item, networkAddresses.Drop, networkAddresses.Narrow = true, true, assignsAlone
	networkAddresses.Vacant = vacant
	namingPolicies := links("namingPolicies", "namingPolicies")
	namingPolicies.Open, namingPolicies.Joined = true, applied
	named := linking("appliedResources", "namingPolicies", "views", "zones")
	named.Open = true
	templateItems := children("templateItems")
	templateItems.Types = []string{"IPv4DHCPRangeTemplateItem", "IPv4GroupTemplateItem", "IPv4ReservedRangeTemplateItem"}
	templateRecords := children("resourceRecords")
	templateRecords.Types = []string{"AliasRecord", "GenericRecord", "HINFORecord", "MXRecord", "NAPTRRecord", "SRVRecord", "TXTRecord"}
	sessions := resource.Sub{Name: "sessions", Relation: resource.Children, Item: true}
	return []*resource.Collection{
		{Name: "configurations", Types: declare(&Configuration{}), Parents: []string{"configurations"}, Post: true,
			Subs: subs([]resource.Sub{children("blocks"), children("views"), history(), doing("merges", "IPv4BlockMerge"), doing("splits", "IPv4BlockSplit"), children("macAddresses"), readable("clientIdentifiers"), children("responsePolicies"), children("templates"), tags()},
				"accessControlLists", "accessRights", "clientClasses", "deploymentOptionDefinitions", "deploymentOptions",
				"devices", "macPools", "realms", "reconciliationPolicies", "serverGroups",
				"servers", "signingKeys", "tftpGroups", "workflowRequests", "zoneGroups")},
		{Name: "views", Types: declare(&View{}), Parents: []string{"configurations"},
			Subs: subs([]resource.Sub{restricted, history(), children("zones"), children("templates"), namingPolicies, tags()},
				"accessRights", "deploymentOptions", "deploymentRoles", "userDefinedLinks")},
		{Name: "zones", Types: declare(&ENUMNumberZone{}, &ENUMZone{}, &ExternalHostsZone{}, &InternalRootZone{}, &ResponsePolicyZone{}, &Zone{}), Parents: []string{"views", "zones"},
			Subs: subs([]resource.Sub{children("resourceRecords"), restricted, history(), children("zones"), doing("moves", "DNSMove"), doing("templateApplications", "ZoneTemplateApplication"), namingPolicies, tags()},
				"accessRights", "deploymentOptions", "deploymentRoles", "deployments", "signingKeys",
				"userDefinedLinks", "workflowRequests")},
		{Name: "resourceRecords", Types: declare(&AliasRecord{}, &ExternalHostRecord{}, &GenericRecord{}, &HINFORecord{}, &HostRecord{},
			&MXRecord{}, &NAPTRRecord{}, &SRVRecord{}, &TXTRecord{}), Parents: []string{"templates", "zones"},
			Subs: subs([]resource.Sub{links("addresses", "addresses"), dependent, history(), doing("moves", "DNSMove"), tags()},
				"accessRights", "workflowRequests")},
		{Name: "blocks", Types: declare(&IPv4Block{}, &IPv6Block{}), Parents: []string{"configurations", "blocks"},
			Subs: subs([]resource.Sub{children("blocks"), links("defaultZones", "defaultZones", "zones"), children("networks"),
				links("restrictedZones", "restrictedZones", "views", "zones"), history(), doing("merges", "IPv4BlockMerge", "IPv4NetworkMerge"),
				doing("moves", "IPMove"), doing("splits", "IPv4BlockSplit", "IPv4NetworkSplit"), tags()},
				"accessRights", "deploymentOptions", "deploymentRoles", "leases", "reconciliationPolicies",
				"signingKeys", "userDefinedLinks")},
		{Name: "networks", Types: declare(&IPv4Network{}, &IPv6Network{}), Parents: []string{"blocks"},
			Subs: subs([]resource.Sub{networkAddresses, links("defaultZones", "defaultZones", "zones"),
				links("restrictedZones", "restrictedZones", "views", "zones"), history(), doing("merges", "IPv4DHCPRangeMerge", "IPv4NetworkMerge"), doing("moves", "IPMove"), tags(),
				children("ipGroups"), children("ranges"), doing("templateApplications", "IPv4TemplateApplication")},
				"accessRights", "deploymentOptions", "deploymentRoles", "leases",
				"reconciliationPolicies", "signingKeys", "userDefinedLinks", "workflowRequests")},
		{Name: "addresses", Types: declare(&IPv4Address{}, &IPv6Address{}), Parents: []string{"networks"},
			Subs: subs([]resource.Sub{addressRecords, history(), doing("moves", "IPMove"), tags()},
				"accessRights", "deploymentOptions", "leases", "userDefinedLinks", "workflowRequests")},
		{Name: "locations", Types: declare(&Location{}), Parents: []string{"locations"},
			Subs: subs([]resource.Sub{linking("annotatedResources", "location", "*"), children("locations"), history(), tags()},
				"accessRights")},
		{Name: "clientIdentifiers", Types: declare(&DHCPClientIdentifier{}, &DHCPUniqueIdentifier{}), Parents: []string{"configurations"}, ReadOnly: true,
			Subs: subs([]resource.Sub{usedBy("clientIdentifier"), history(), tags()}, "accessRights")},
		{Name: "macAddresses", Types: declare(&MACAddress{}), Parents: []string{"configurations"},
			Subs: subs([]resource.Sub{usedBy("macAddress"), history(), tags()}, "accessRights", "deploymentOptions", "userDefinedLinks")},
		{Name: "merges", Types: declare(&IPv4BlockMerge{}, &IPv4DHCPRangeMerge{}, &IPv4NetworkMerge{}), Parents: []string{"configurations", "blocks", "networks"}, ReadOnly: true,
			Subs: subs([]resource.Sub{parts("blocks"), parts("networks"), parts("ranges")})},
		{Name: "moves", Types: declare(&DNSMove{}, &IPMove{}), Parents: []string{"addresses", "blocks", "networks", "resourceRecords", "zones"}, ReadOnly: true},
		{Name: "ipGroups", Types: declare(&IPv4Group{}), Parents: []string{"networks"},
			Subs: subs([]resource.Sub{history(), tags()}, "accessRights", "userDefinedLinks")},
		{Name: "ranges", Types: declare(&IPv4DHCPRange{}, &IPv6DHCPRange{}), Parents: []string{"networks"},
			Subs: subs([]resource.Sub{history(), tags()}, "accessRights", "deploymentOptions", "leases", "userDefinedLinks")},
		{Name: "splits", Types: declare(&IPv4BlockSplit{}, &IPv4NetworkSplit{}), Parents: []string{"configurations", "blocks"}, ReadOnly: true,
			Subs: subs([]resource.Sub{parts("blocks"), parts("networks")})},
		{Name: "tagGroups", Types: declare(&TagGroup{}), Parents: []string{"tagGroups"}, Post: true,
			Subs: subs([]resource.Sub{children("tags"), history()}, "accessRights")},
		{Name: "tags", Types: declare(&Tag{}), Parents: []string{"tagGroups", "tags"},
			Subs: subs([]resource.Sub{sharedNetworks(), tagged(), children("tags"), history()}, "accessRights")},
		{Name: "templates", Types: declare(&IPv4Template{}, &ZoneTemplate{}), Parents: []string{"configurations", "views"},
			Subs: subs([]resource.Sub{linking("appliedResources", "template", "*"), templateItems, templateRecords, linking("zones", "template"),
				{Name: "conflictingResources", Relation: resource.Computed, Items: []string{"*"}, Item: true, Find: conflicting},
				doing("templateApplications", "IPv4TemplateApplication", "ZoneTemplateApplication"), history(), tags()},
				"accessRights", "deploymentOptions")},
		{Name: "templateItems", Types: declare(&IPv4DHCPRangeTemplateItem{}, &IPv4GatewayTemplateItem{}, &IPv4GroupTemplateItem{}, &IPv4ReservedRangeTemplateItem{}),
			Parents: []string{"templates"}, Subs: subs([]resource.Sub{history()})},
		{Name: "templateApplications", Types: declare(&IPv4TemplateApplication{}, &ZoneTemplateApplication{}),
			Parents: []string{"networks", "templates", "zones"}, ReadOnly: true},
		{Name: "namingPolicies", Types: declare(&NamingPolicy{}), Parents: []string{"namingPolicies"}, Post: true,
			Subs: subs([]resource.Sub{named, policyParts("policyValues", "namingPolicyValues"), policyParts("policyRestrictions", "namingPolicyRestrictions"), history(), tags()})},
		{Name: "namingPolicyRestrictions", Types: declare(&NamingPolicyRestriction{}), Parents: []string{"namingPolicyRestrictions"}, Post: true,
			Subs: subs([]resource.Sub{history(), tags()})},
		{Name: "namingPolicyValues", Types: declare(&NamingPolicyConnectorValue{}, &NamingPolicyIncrementalValue{}, &NamingPolicyIntegerValue{}, &NamingPolicyRequiredValue{},
			&NamingPolicyTextValue{}), Parents: []string{"namingPolicyValues"}, Post: true, Subs: subs([]resource.Sub{history(), tags()})},
		{Name: "responsePolicies", Types: declare(&ResponsePolicy{}), Parents: []string{"configurations"},
			Subs: subs([]resource.Sub{children("policyItems"), linking("zones", "responsePolicy"), history(), tags()}, "accessRights", "imports")},
		{Name: "policyItems", Types: declare(&ResponsePolicyItem{}), Parents: []string{"responsePolicies"}},
		{Name: "users", Types: declare(&User{}), Parents: []string{""}, Post: true, Secret: true, OpenWrites: true, OwnPassword: true, Visible: seenUsers, Beforehand: hashPassword(users),
			Subs: subs([]resource.Sub{sessions, history(), tags()}, "accessRights", "favorites", "groups", "tasks")},
		{Name: "sessions", Types: declare(&UserSession{}), Parents: []string{""}, Post: true, NoPut: true, NoDelete: true,
			OpenWrites: true, Hidden: true, NoUp: true, Visible: ownSessions, Prepare: login(users),
			Aliases: map[string]func(resource.Caller) (int64, error){"current": currentSession}},
		{Name: "transactions", Types: declare(&Transaction{}), Post: true, Act: undo, ReadOnly: true, From: store.Transactions, Closed: noHistory,
			Subs: []resource.Sub{{Name: "operations", Relation: resource.Children, Item: true}}},
		{Name: "operations", Types: declare(&Operation{}), Parents: []string{"transactions"}, ReadOnly: true, From: store.Operations, Inner: true, Hidden: true, Closed: noImages},
		{Name: "events", Types: declare(&Event{}), ReadOnly: true, From: store.Events, Hidden: true},
	}
}

//go:embed published.tsv
var published string

// isPublished tells whether a method and path below Base are in the published API.
func isPublished() func(method string, path []string) bool {
	type operation struct {
		path        []string
		collections []string
	}
	all := map[string][]operation{}
	for line := range strings.SplitSeq(strings.TrimSpace(published), "\n") {
		cells := strings.Split(line, "\t")
		o := operation{path: strings.Split(strings.TrimPrefix(cells[1], Base+"/"), "/")}
		if len(cells) > 3 && cells[3] != "" {
			o.collections = strings.Split(cells[3], ",")
		}
		all[cells[0]] = append(all[cells[0]], o)
	}
	matches := func(o operation, path []string) bool {
		if len(o.path) != len(path) {
			return false
		}
		for i, part := range o.path {
			switch {
			case part == "{collection}":
				if !containsText(o.collections, path[i]) {
					return false
				}
			case strings.HasPrefix(part, "{"):
				if strings.Trim(path[i], "0123456789") != "" {
					return false
				}
			case part != path[i]:
				return false
			}
		}
		return true
	}
	return func(method string, path []string) bool {
		for m, operations := range all {
			// Any published method of a path makes the path known; the methods beyond are ours.
			for _, o := range operations {
				if (m == method || method == http.MethodHead || method == http.MethodOptions || method == http.MethodPatch) && matches(o, path) {
					return true
				}
			}
		}
		return false
	}
}

// New makes the address API over a store. maxLimit is the largest page (spec.md section 8).
func New(s *store.Store, users *identity.Service, maxLimit int64, version string) *resource.API {
	a := resource.NewAPI(s, Base, maxLimit, collections(users))
	a.Published = isPublished()
	a.Version = version
	a.Descriptions = descriptions
	a.Respan = respan
	a.Headers = headers()
	p := newPolicies(s)
	a.Rules = p
	for name, complete := range map[string]func(*store.Tx, []*store.Resource) error{"blocks": p.completeSpace, "networks": p.completeSpace,
		"ranges": p.completeRanges, "addresses": p.completeAddresses, "operations": completeOperations} {
		a.Collection(name).Complete, a.Collection(name).Counted = complete, name == "blocks" || name == "networks"
	}
	if s != nil {
		m := &marks{policies: p}
		s.Counted = m.counted
	}
	if name, err := os.Hostname(); err == nil {
		a.Hostname = name
	}
	return a
}

// login checks the credentials of a new session: in the body, or as Basic credentials.
func login(users *identity.Service) func(*http.Request, map[string]json.RawMessage, resource.Caller) (resource.Caller, error) {
	return func(r *http.Request, members map[string]json.RawMessage, _ resource.Caller) (resource.Caller, error) {
		var name, password string
		var missing []string
		for field, value := range map[string]*string{"username": &name, "password": &password} {
			if raw, ok := members[field]; ok {
				if json.Unmarshal(raw, value) != nil {
					return resource.Caller{}, problem.Invalid(field, "must be a string")
				}
			}
		}
		if name == "" && password == "" {
			if n, p, ok := identity.BasicOf(r); ok {
				name, password = n, p
				members["username"], members["password"] = json.RawMessage(`""`), json.RawMessage(`""`)
			}
		}
		if name == "" {
			missing = append(missing, "username")
		}
		if password == "" {
			missing = append(missing, "password")
		}
		if len(missing) > 0 {
			p := problem.New(http.StatusBadRequest, "MissingRequiredField", "required and missing: %s", strings.Join(missing, ", "))
			p.Fields = missing
			return resource.Caller{}, p
		}
		p, err := users.Login(r.Context(), name, password, identity.Remote(r))
		return CallerOf(p), err
	}
}

// CallerOf words a principal for the resource engine.
func CallerOf(p identity.Principal) resource.Caller {
	return resource.Caller{User: p.User, Name: p.Name, Administrator: p.Role == identity.Administrator, ReadOnly: p.ReadOnly, Session: p.Session,
		Token: p.Token, History: p.History, Security: p.Security, MustReset: p.MustReset}
}

// Setup makes what a new manager starts with: the user admin and the countries. It does nothing
// where there is a user already, and tells whether it did something.
func Setup(ctx context.Context, a *resource.API, password string) (made bool, err error) {
	if err := identity.CheckPassword(password); err != nil {
		return false, fmt.Errorf("the password of admin: %w", err)
	}
	err = a.Store.Update(ctx, store.Author{Comment: "set-up"}, func(tx *store.Tx) error {
		admins, err := tx.ByName("users", 0, "admin")
		if err != nil || len(admins) > 0 {
			return err
		}
		made = true
		c := &resource.Change{Tx: tx, API: a, Extra: map[string]string{}, Given: map[string]bool{"password": true}}
		x := &User{Email: "admin@localhost", SecurityPrivilege: "ADMINISTRATOR", HistoryPrivilege: "ADMINISTRATOR", AccessType: "GUI_AND_API", Password: password}
		x.Type, x.Name = "User", "admin"
		t, _ := a.Type("User")
		if _, err := c.Create(t, x); err != nil {
			return err
		}
		return seedLocations(&resource.Change{Tx: tx, API: a, Extra: map[string]string{}})
	})
	return made, err
}
