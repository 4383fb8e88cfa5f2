package dns

import (
	"encoding/json"
	"strings"

	"portolan/internal/ipam"
	"portolan/internal/naming"
	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/schema"
	"portolan/internal/store"
)

// registerRecords declares the collection of resource records.
func registerRecords(r *resource.Registry) {
	records := []string{"HostRecord", "AliasRecord", "MXRecord", "SRVRecord", "TXTRecord", "NAPTRRecord", "HINFORecord", "GenericRecord"}
	r.Collection(resource.Collection{Name: "resourceRecords", Parents: []string{"templates", "zones"}, Options: []resource.RequestHeader{
		autoCreateNetwork.For(resource.Writing, "HostRecord"), ipam.AllowAddressOverlap.For(resource.Writing, "HostRecord"),
		sameAsZone.For(resource.Creating, records...),
		linkToExternalHost.For(resource.Writing, "AliasRecord", "MXRecord", "SRVRecord"),
		overrideNamingPolicy.For(resource.Writing, records...)}},
		&AliasRecord{}, &ExternalHostRecord{}, &GenericRecord{}, &HINFORecord{}, &HostRecord{}, &MXRecord{}, &NAPTRRecord{}, &SRVRecord{},
		&TXTRecord{})
}

// Options of records.
var (
	autoCreateNetwork  = resource.Flag("x-bcn-auto-create-network", "Make the network that an address of the host lacks.")
	sameAsZone         = resource.Flag("x-bcn-same-as-zone", "Give the record the zone's own name.")
	linkToExternalHost = resource.Flag("x-bcn-link-to-external-host", "Link to an external host where no record has the name.")
)

// RecordHead is what every resource record has.
type RecordHead struct {
	schema.Head `head:"required,nullable,nonblank" unless:"absoluteName"`
	// Configuration is the configuration the record lies in.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// TTL is the record's time to live in seconds (RFC 2181 section 8); null takes the zone's.
	TTL *int64 `api:"ttl" min:"0" max:"2147483647"`
	// AbsoluteName is the record's whole name; it follows the name and the zone.
	AbsoluteName string `api:"absoluteName,createOnly,dns,inline" length:"1020"`
	// Comment is a remark.
	Comment string `api:"comment" length:"4000"`
	// Dynamic says whether the record came by a dynamic update.
	Dynamic bool `api:"dynamic,readOnly"`
}

// Key is the record's absolute name as names compare.
func (x *RecordHead) Key() string { return naming.Key(x.AbsoluteName) }

// String is the record's absolute name.
func (x *RecordHead) String() string { return x.AbsoluteName }

// checkName derives the absolute name. A name of null is the zone's apex; so is any name of a new
// record sent with x-bcn-same-as-zone.
func (x *RecordHead) checkName(c *resource.Change, rule naming.Rule) error {
	holder, err := c.Tx.Get(x.Parent)
	if err != nil {
		return err
	}
	switch holder.Type {
	case "ExternalHostsZone":
		return problem.Invalid("type", "%s %d holds nothing but ExternalHostRecords", holder.Type, holder.ID)
	case "ResponsePolicyZone":
		return problem.Invalid("type", "%s %d holds what its responsePolicy says, and no records", holder.Type, holder.ID)
	}
	_, zone, err := above(c.Tx, x.Parent)
	if err != nil {
		return err
	}
	if c.Creates() && sameAsZone.Of(c.Options) {
		x.Name = ""
	} else if c.Creates() && x.Name == "" && c.Given["absoluteName"] && !c.Given["name"] {
		relative, ok := naming.Relative(naming.Clean(x.AbsoluteName), zone)
		if !ok {
			return problem.Invalid("absoluteName", "%q does not lie in the zone %q", x.AbsoluteName, zone)
		}
		x.Name = relative
	}
	if c.Creates() || c.Given["name"] {
		if x.Name, err = relativeName(x.Name, zone); err != nil {
			return err
		}
	}
	x.Name = naming.Clean(x.Name)
	if x.Name != "" {
		if err := naming.Check(x.Name, rule); err != nil {
			return problem.Invalid("name", "%v", err)
		}
	}
	if err := checkNaming(c, x.Parent, x.Name); err != nil {
		return err
	}
	x.AbsoluteName = naming.Join(x.Name, zone)
	// the apex of the zones to come, or the root
	if x.AbsoluteName == "" && (holder.Collection == "templates" || holder.Type == "InternalRootZone") {
		return nil
	}
	if err := naming.Check(x.AbsoluteName, naming.AnyName); err != nil {
		return problem.Invalid("name", "with its zone, %v", err)
	}
	return nil
}

// relativeName gives a record's name within its zone: "@", and the zone's own name, are its apex, and a name with
// a dot behind it is absolute (RFC 1035 section 5.1).
func relativeName(name, zone string) (string, error) {
	name = strings.TrimSpace(name)
	switch {
	case name == "@" || name != "" && zone != "" && naming.Key(naming.Clean(name)) == naming.Key(zone):
		return "", nil
	case !strings.HasSuffix(name, ".") || name == ".":
		return name, nil
	}
	relative, ok := naming.Relative(naming.Clean(name), zone)
	if !ok {
		return "", problem.Invalid("name", "%q is absolute, and does not lie in the zone %q", name, zone)
	}
	return relative, nil
}

// wildcard reports whether a name stands for others (RFC 4592).
func wildcard(name string) bool { return name == "*" || strings.HasPrefix(name, "*.") }

// HostRecord names the addresses of a host: A and AAAA records, and PTR records with ReverseRecord.
type HostRecord struct {
	RecordHead `parents:"zones"`
	// Addresses are the host's addresses, by id or by address; missing ones are assigned.
	Addresses schema.RefList `api:"addresses,post" ref:"IPv4Address|IPv6Address" min:"1" back:"resourceRecords" onDelete:"cascade"`
	// ReverseRecord says whether the addresses lead back to the name.
	ReverseRecord bool `api:"reverseRecord,put" default:"true"`
	// Views are further views the record shows in.
	Views schema.RefList `api:"views" ref:"View"`
}

// BeforeWrite derives the name and finds or assigns the addresses.
func (x *HostRecord) BeforeWrite(c *resource.Change) error {
	if err := x.checkName(c, naming.HostName); err != nil {
		return err
	}
	if wildcard(x.Name) { // no address leads back to a name that nobody has
		x.ReverseRecord = false
	}
	seen := map[int64]bool{}
	for i := range x.Addresses.Items {
		item := &x.Addresses.Items[i]
		if item.ID == 0 {
			id, err := ipam.AddressNamed(c, x.Config, item, autoCreateNetwork.Of(c.Options))
			if err != nil {
				return err
			}
			item.ID = id
		}
		if seen[item.ID] {
			return problem.Invalid("addresses", "address %d is listed twice", item.ID)
		}
		seen[item.ID] = true
	}
	return x.checkNetworks(c)
}

// checkNetworks refuses what the networks of the host's addresses do not take.
func (x *HostRecord) checkNetworks(c *resource.Change) error {
	var ids []int64
	for _, item := range x.Addresses.Items {
		ids = append(ids, item.ID)
	}
	if !x.Addresses.Given {
		if c.Creates() || c.Row.Parent == x.Parent {
			return nil
		}
		var err error
		if ids, err = c.Tx.Links(x.ID, "addresses"); err != nil {
			return err
		}
	}
	return checkHost(c, x.AbsoluteName, x.Parent, ids)
}

// AliasRecord is another name for a record: a CNAME.
type AliasRecord struct {
	RecordHead
	// LinkedRecord is the record the alias stands for, by id or by absoluteName.
	LinkedRecord schema.Ref `api:"linkedRecord,required" identify:"absoluteName" ref:"HostRecord|AliasRecord|MXRecord|TXTRecord|GenericRecord|SRVRecord|NAPTRRecord|HINFORecord|ExternalHostRecord" back:"dependentRecords" onDelete:"cascade"`
}

// BeforeWrite derives the name and finds the record that is linked.
func (x *AliasRecord) BeforeWrite(c *resource.Change) error {
	if err := x.checkName(c, naming.AnyName); err != nil {
		return err
	}
	if err := linkRecord(c, x.Parent, x.Config, &x.LinkedRecord); err != nil {
		return err
	}
	if x.LinkedRecord.ID == x.ID && x.ID != 0 {
		return problem.Invalid("linkedRecord", "an alias cannot stand for itself")
	}
	return nil
}

// MXRecord names a mail exchange of a name (RFC 5321).
type MXRecord struct {
	RecordHead
	// LinkedRecord is the host that takes the mail, by id or by absoluteName.
	LinkedRecord schema.Ref `api:"linkedRecord,required" identify:"absoluteName" ref:"HostRecord|AliasRecord|GenericRecord|ExternalHostRecord" back:"dependentRecords" onDelete:"cascade"`
	// Priority is the preference: the lowest is tried first.
	Priority int64 `api:"priority,put" min:"0" max:"65535" default:"10"`
}

// BeforeWrite derives the name and finds the mail host.
func (x *MXRecord) BeforeWrite(c *resource.Change) error {
	if err := x.checkName(c, naming.AnyName); err != nil {
		return err
	}
	return linkRecord(c, x.Parent, x.Config, &x.LinkedRecord)
}

// linkRecord finds a record that a request names by its absolute name, in the view of the zone.
func linkRecord(c *resource.Change, zone, configuration int64, ref *schema.Ref) error {
	if ref.ID != 0 || ref.By == "" {
		return nil
	}
	view, _, err := above(c.Tx, zone)
	if err != nil {
		return err
	}
	same, err := sameName(c.Tx, configuration, view, "resourceRecords", ref.By)
	if err != nil {
		return err
	}
	for _, r := range same {
		if r.Type == "HostRecord" || len(same) == 1 {
			*ref = schema.Ref{ID: r.ID}
			return nil
		}
	}
	if len(same) > 0 {
		*ref = schema.Ref{ID: same[0].ID}
		return nil
	}
	if linkToExternalHost.Of(c.Options) {
		row, err := c.Tx.Get(view)
		if err != nil {
			return err
		}
		*ref, err = externalHost(c, row, naming.Clean(ref.By))
		return err
	}
	return resource.NotFoundInlined("linkedRecord", "there is no record %q in the view", ref.By)
}

// TXTRecord holds text (RFC 1035 section 3.3.14).
type TXTRecord struct {
	RecordHead
	// Text is the text; it is served in strings of 255 bytes.
	Text string `api:"text,nonblank" length:"65000"`
}

// BeforeWrite derives the name, and refuses a record without text.
func (x *TXTRecord) BeforeWrite(c *resource.Change) error {
	if err := x.checkName(c, naming.AnyName); err != nil {
		return err
	}
	if x.Text == "" && (c.Creates() || c.Given["text"]) {
		p := problem.BadRequest("MissingRequiredField", "required and missing: text")
		p.Fields = []string{"text"}
		return p
	}
	return nil
}

// GenericRecord is a record of any other type, its data in zone-file syntax.
type GenericRecord struct {
	RecordHead
	// RecordType is the record's DNS type.
	RecordType string `api:"recordType,post" enum:"A|A6|AAAA|AFSDB|APL|CAA|CERT|DHCID|DNAME|DNSKEY|DS|HTTPS|IPSECKEY|ISDN|KEY|KX|LOC|MB|MG|MINFO|MR|NAPTR|NS|NSAP|PTR|PX|RP|RT|SINK|SPF|SSHFP|SVCB|TLSA|TXT|URI|WKS|X25"`
	// Rdata is the record's data in zone-file syntax (RFC 1035 section 5).
	Rdata string `api:"rdata,required,nonblank" length:"65000"`
}

// BeforeWrite derives the name and reads the data.
func (x *GenericRecord) BeforeWrite(c *resource.Change) error {
	if err := x.checkName(c, naming.AnyName); err != nil {
		return err
	}
	if err := naming.CheckData(x.RecordType, x.Rdata); err != nil {
		return problem.Invalid("rdata", "%v", err)
	}
	return nil
}

// parentName gives a name without its first label.
func parentName(name string) string {
	_, rest, _ := strings.Cut(name, ".")
	return rest
}

// absoluteName gives a stored zone's or record's absolute name as it was typed.
func absoluteName(r *store.Resource) string {
	var body struct {
		AbsoluteName string `json:"absoluteName"`
	}
	if json.Unmarshal(r.Body, &body) != nil || body.AbsoluteName == "" {
		return r.Key
	}
	return body.AbsoluteName
}
