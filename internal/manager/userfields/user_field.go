package userfields

import (
	"fmt"
	"net/mail"
	"net/url"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerUserFields declares the collection of user-defined field definitions, and registers their checks for every resource.
func registerUserFields(r *resource.Registry) {
	fields := &userFields{}
	r.Collection(resource.Collection{Name: "userDefinedFieldDefinitions", Parents: []string{""}, Guard: resource.Common, NoSearch: true,
		Complete: fields.complete}, &UserDefinedFieldDefinition{})
	r.UserFields(fields)
}

// UserDefinedFieldDefinition defines a user-defined field of the resources of a type.
type UserDefinedFieldDefinition struct {
	schema.Head `head:"post,nonblank"`
	// DisplayName is the name of the field for people.
	DisplayName string `api:"displayName,required,nonblank"`
	// ResourceType is the type that has the field, or an abstract type that includes several types.
	ResourceType string `api:"resourceType,required,createOnly" enum:"ACL|AbstractKeySigningKey|AbstractNetworkInterface|AbstractServer|AbstractZoneSigningKey|AddressManagerAuthenticator|AliasRecord|Authenticator|Configuration|DHCPClientOption|DHCPDeploymentRole|DHCPForwardZone|DHCPReverseZone|DHCPServiceOption|DHCPUniqueIdentifier|DHCPVendorOption|DHCPVendorOptionDefinition|DHCPZone|DHCPZoneGroup|DHCPv4ClientClass|DHCPv4ClientOption|DHCPv4CustomClientOptionDefinition|DHCPv4RawOption|DHCPv4ServiceOption|DHCPv4Subclass|DHCPv6ClientOption|DHCPv6RawOption|DHCPv6ServiceOption|DNS64|DNSDeploymentRole|DNSOption|DNSRawOption|DNSSECSigningPolicy|DefaultClientOption|DefaultDHCPOption|DefaultDHCPServiceOption|DefaultDNSOption|DeploymentRole|DeploymentSchedule|Device|DeviceSubtype|DeviceType|ENUMNumberZone|ENUMZone|EntrustKeySigningKey|EntrustZoneSigningKey|ExternalHostRecord|GenericRecord|HAServer|HINFORecord|HTTPSRecord|HSMConfiguration|HSMKeySigningKey|HSMServer|HSMZoneSigningKey|HostRecord|IPServerInterface|IPv4Address|IPv4Block|IPv4DHCPRange|IPv4Group|IPv4Network|IPv4Prefix|IPv4Range|IPv4ReconciliationPolicy|IPv4Template|IPv6Address|IPv6Block|IPv6DHCPRange|IPv6Network|IPv6Prefix|IPv6ReconciliationPolicy|InternalRootZone|KerberosAuthenticator|KerberosRealm|KerberosServicePrincipal|KeyDistributionCenter|KeySigningKey|LDAPAuthenticator|Location|LoginPolicySettings|MACAddress|MACPool|MXRecord|NAPTRRecord|NamingPolicy|NamingPolicyRestriction|NetworkInterface|NotificationGroup|OAuthAuthorizationServer|PasswordPolicySettings|PublishedInterface|RADIUSAuthenticator|RawOption|Report|ReportSchedule|ResourceRecord|ResponsePolicy|ResponsePolicyZone|SAMLIdentityProvider|SAMLServiceProviderSettings|SRVRecord|SVCBRecord|Server|ServerGroup|ServerInterface|ServiceOption|SigningKey|StartOfAuthority|TACACSPlusAuthenticator|TFTPDeploymentRole|TFTPFile|TFTPFolder|TFTPGroup|TFTPNode|TSIGKey|TXTRecord|URIRecord|Tag|TagGroup|Task|User|UserGroup|VendorProfile|View|VirtualInterface|X509Authenticator|Zone|ZoneSigningKey|ZoneTemplate"`
	// ResourceTypes are the types that have the field: resourceType itself, or the types that it includes. A Portolan extension.
	ResourceTypes []string `api:"resourceTypes,computed"`
	// DataType is the type of the values.
	DataType string `api:"dataType,post,createOnly" enum:"BOOLEAN|DATE|EMAIL|INTEGER|LONG|TEXT|URL|WORKFLOW"`
	// DefaultValue is the value that resources show if they do not set the field.
	DefaultValue string `api:"defaultValue"`
	// Required controls whether new resources must set the field.
	Required *bool `api:"required"`
	// PredefinedValues are the only values allowed; empty for any value.
	PredefinedValues []string `api:"predefinedValues"`
	// Indexed controls whether the field has an index, which speeds up filters on it with eq, in and startsWith. The index is built in the
	// background. Filters use it once it is complete.
	Indexed *bool `api:"indexed"`
	// ValidationProperties are the bounds of the values.
	ValidationProperties *Validation `api:"validationProperties"`
}

// Validation sets the bounds of the values of a field.
type Validation struct {
	// Min is the minimum of a number.
	Min *int64 `api:"min"`
	// Max is the maximum of a number.
	Max *int64 `api:"max"`
	// MinLength is the minimum length of a text, in characters.
	MinLength *int64 `api:"minLength" min:"0"`
	// MaxLength is the maximum length of a text, in characters.
	MaxLength *int64 `api:"maxLength" min:"0"`
	// Pattern is a pattern that a text must match: * matches any text, ? matches one character.
	Pattern string `api:"pattern"`
}

// Check returns an error for bounds that no value satisfies.
func (x *Validation) Check() error {
	switch {
	case x.Min != nil && x.Max != nil && *x.Min > *x.Max:
		return schema.MemberError("max", "is below min")
	case x.MinLength != nil && x.MaxLength != nil && *x.MinLength > *x.MaxLength:
		return schema.MemberError("maxLength", "is below minLength")
	}
	return nil
}

// Validate rejects a second definition of a field for a type, and values or bounds that do not fit the data type.
func (x *UserDefinedFieldDefinition) Validate(c *resource.Change) error {
	if strings.ContainsAny(x.Name, " \t.$") {
		return problem.Invalid("name", "%q must not contain a blank, a dot or a $", x.Name)
	}
	if c.IsCreation() && strings.ContainsAny(x.Name, ",:'\"()/\\") { // a filter could not name such a field
		return problem.Invalid("name", "%q must not contain a comma, a colon, a quote, a parenthesis or a slash", x.Name)
	}
	if old, ok := c.Old.(*UserDefinedFieldDefinition); ok && old.Name != x.Name {
		return problem.FieldForbidden("FieldUpdateNotAllowed", "name", "is %s and cannot be changed", old.Name)
	}
	if len(concreteTypes(c.API, x.ResourceType)) == 0 {
		return problem.Field("UnsupportedResourceType", "resourceType", "resources of the type %s do not exist", x.ResourceType)
	}
	if x.DataType == "WORKFLOW" {
		return problem.NotYet("dataType: fields of the type WORKFLOW are not supported")
	}
	if err := x.checkBounds(); err != nil {
		return err
	}
	if err := x.checkIndex(c); err != nil {
		return err
	}
	if err := x.checkValues(); err != nil {
		return err
	}
	return c.Tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("userDefinedFieldDefinitions"),
		store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"name"}}, Op: "eq", Value: x.Name}}},
		func(r *store.Resource) error {
			o, err := c.API.Object(r)
			if err != nil || r.ID == x.ID {
				return err
			}
			other, _ := o.(*UserDefinedFieldDefinition)
			theirs := concreteTypes(c.API, other.ResourceType)
			for _, name := range concreteTypes(c.API, x.ResourceType) {
				if slices.Contains(theirs, name) {
					return problem.Conflict("ResourceAlreadyExists", "name: %q already exists as a field of %s (definition %d)", x.Name, name, r.ID)
				}
			}
			return nil
		})
}

// checkBounds rejects bounds that do not apply to the data type.
func (x *UserDefinedFieldDefinition) checkBounds() error {
	v := x.ValidationProperties
	if v == nil {
		return nil
	}
	number := x.DataType == "INTEGER" || x.DataType == "LONG"
	text := x.DataType == "TEXT" || x.DataType == "EMAIL" || x.DataType == "URL"
	switch {
	case (v.Min != nil || v.Max != nil) && !number:
		return problem.Field("InvalidUdfValidationProperties", "validationProperties",
			"min and max are only supported for INTEGER and LONG; the field is %s", x.DataType)
	case (v.MinLength != nil || v.MaxLength != nil || v.Pattern != "") && !text:
		return problem.Field("InvalidUdfValidationProperties", "validationProperties",
			"minLength, maxLength and pattern are only supported for TEXT, EMAIL and URL; the field is %s", x.DataType)
	}
	return nil
}

// checkValues rejects a default or predefined values that are not of the data type.
func (x *UserDefinedFieldDefinition) checkValues() error {
	if x.DataType == "BOOLEAN" && (x.DefaultValue != "" || len(x.PredefinedValues) > 0) {
		return problem.Field("InvalidUdfDefaultValue", "defaultValue", "a BOOLEAN cannot have a default or predefined values")
	}
	for i, value := range x.PredefinedValues {
		read, err := x.parse(value)
		if err != nil {
			return problem.Field("InvalidUdfPredefinedValues", "predefinedValues", "entry %d: %v", i, messageOf(err))
		}
		if x.PredefinedValues[i] = read; slices.Contains(x.PredefinedValues[:i], read) {
			return problem.Field("InvalidUdfPredefinedValues", "predefinedValues", "entry %d, %q, is listed twice", i, read)
		}
	}
	if x.DefaultValue == "" {
		return nil
	}
	read, err := x.parseValue(x.DefaultValue)
	if err != nil {
		return problem.Field("InvalidUdfDefaultValue", "defaultValue", "%v", messageOf(err))
	}
	x.DefaultValue = read
	return nil
}

// messageOf returns the message of an error without the field name in front.
func messageOf(err error) string {
	p, ok := problem.As(err)
	if !ok {
		return err.Error()
	}
	_, text, _ := strings.Cut(p.Message, ": ")
	return text
}

// parseValue checks a value of the field against type, bounds and predefined values, and returns it in the form to store.
func (x *UserDefinedFieldDefinition) parseValue(text string) (string, error) {
	read, err := x.parse(text)
	if err == nil && len(x.PredefinedValues) > 0 && !slices.Contains(x.PredefinedValues, read) {
		err = x.valueError("InvalidUdfPredefinedValue", "must be one of %s, not %q", strings.Join(x.PredefinedValues, ", "), text)
	}
	return read, err
}

// valueError returns an error about a value of the field.
func (x *UserDefinedFieldDefinition) valueError(code, format string, args ...any) error {
	return problem.Field(code, "userDefinedFields."+x.Name, format, args...)
}

// parse checks a value against the data type and the bounds, and returns it in the form to store.
func (x *UserDefinedFieldDefinition) parse(text string) (string, error) {
	switch x.DataType {
	case "BOOLEAN":
		if b := strings.ToLower(text); b == "true" || b == "false" {
			return b, nil
		}
		return "", x.valueError("InvalidUdfValue", "must be true or false, not %q", text)
	case "INTEGER", "LONG":
		return x.readNumber(text)
	case "DATE":
		for _, form := range []string{time.DateOnly, "02-Jan-2006", "2-Jan-2006", time.RFC3339} {
			if at, err := time.Parse(form, text); err == nil {
				return at.Format(time.DateOnly), nil
			}
		}
		return "", x.valueError("InvalidUdfDateValue", "%q is not a date such as 2026-01-31 or 31-Jan-2026", text)
	case "EMAIL":
		if a, err := mail.ParseAddress(text); err != nil || a.Address != text {
			return "", x.valueError("InvalidUdfEmailValue", "%q is not a mail address", text)
		}
	case "URL":
		if u, err := url.Parse(text); err != nil || u.Scheme == "" || u.Host == "" {
			return "", x.valueError("InvalidUdfUrlValue", "%q is not a URL", text)
		}
	}
	return text, x.checkText(text)
}

// readNumber parses an integer and checks its bounds.
func (x *UserDefinedFieldDefinition) readNumber(text string) (string, error) {
	bits := 64
	if x.DataType == "INTEGER" {
		bits = 32
	}
	n, err := strconv.ParseInt(text, 10, bits)
	if err != nil {
		return "", x.valueError("InvalidUdfNumberValue", "%q is not a whole number of %d bits", text, bits)
	}
	v := x.ValidationProperties
	switch {
	case v == nil:
	case v.Min != nil && n < *v.Min:
		return "", x.valueError("UdfValueLessThanMinimum", "%d is below %d", n, *v.Min)
	case v.Max != nil && n > *v.Max:
		return "", x.valueError("UdfValueOutsideRange", "%d is above %d", n, *v.Max)
	}
	return strconv.FormatInt(n, 10), nil
}

// checkText returns an error for a text outside of its bounds.
func (x *UserDefinedFieldDefinition) checkText(text string) error {
	v, n := x.ValidationProperties, int64(len([]rune(text)))
	if v == nil {
		return nil
	}
	switch {
	case v.MinLength != nil && n < *v.MinLength:
		return x.valueError("UdfValueLessThanMinimumLength", "has %d characters, fewer than %d", n, *v.MinLength)
	case v.MaxLength != nil && n > *v.MaxLength:
		return x.valueError("UdfValueExceedsMaximumLength", "has %d characters, more than %d", n, *v.MaxLength)
	}
	if v.Pattern != "" {
		pattern := strings.NewReplacer(`\`, `\\`, "[", `\[`).Replace(v.Pattern) // only * and ? are wildcards
		if fits, err := path.Match(pattern, strings.ReplaceAll(text, "/", "\x01")); err != nil || !fits {
			return x.valueError("InvalidUdfValue", "%q does not match the pattern %s", text, v.Pattern)
		}
	}
	return nil
}

// abstractTypes are the abstract types, each with a function that reports whether it includes a type.
var abstractTypes = map[string]func(name string) bool{
	"AbstractKeySigningKey":    isOneOf("KeySigningKey"),
	"AbstractZoneSigningKey":   isOneOf("ZoneSigningKey"),
	"AbstractNetworkInterface": isOneOf("NetworkInterface"),
	"AbstractServer":           isOneOf("Server", "HAServer"),
	"Authenticator":            hasSuffixOr("Authenticator", "SAMLIdentityProvider", "OAuthAuthorizationServer"),
	"DHCPClientOption":         isOneOf("DHCPv4ClientOption", "DHCPv6ClientOption"),
	"DHCPServiceOption":        isOneOf("DHCPv4ServiceOption", "DHCPv6ServiceOption"),
	"ServiceOption":            isOneOf("DHCPv4ServiceOption", "DHCPv6ServiceOption"),
	"DHCPZone":                 isOneOf("DHCPForwardZone", "DHCPReverseZone"),
	"DeploymentRole":           hasSuffixOr("DeploymentRole"),
	"IPServerInterface":        isOneOf("NetworkInterface", "PublishedInterface"),
	"ServerInterface":          isOneOf("NetworkInterface", "PublishedInterface"),
	"IPv4Prefix":               isOneOf("IPv4Block", "IPv4Network"),
	"IPv6Prefix":               isOneOf("IPv6Block", "IPv6Network"),
	"IPv4Range":                isOneOf("IPv4DHCPRange", "IPv4Group"),
	"RawOption":                hasSuffixOr("RawOption"),
	"ResourceRecord":           hasSuffixOr("Record"),
	"SigningKey":               isOneOf("TSIGKey", "KeySigningKey", "ZoneSigningKey"),
	"TFTPNode":                 isOneOf("TFTPFile", "TFTPFolder"),
}

func isOneOf(names ...string) func(string) bool {
	return func(name string) bool { return slices.Contains(names, name) }
}

func hasSuffixOr(suffix string, more ...string) func(string) bool {
	return func(name string) bool { return strings.HasSuffix(name, suffix) || slices.Contains(more, name) }
}

// concreteTypes returns the types that have the field of a definition: the named type, or the types that the abstract type includes.
func concreteTypes(a *resource.API, name string) (names []string) {
	if a.TypeNamed(name) != nil {
		return []string{name}
	}
	holds := abstractTypes[name]
	if holds == nil {
		return nil
	}
	for _, t := range a.AllTypes() {
		if holds(t.Name) {
			names = append(names, t.Name)
		}
	}
	return names
}

// AfterWrite rejects a new index or changed bounds that existing values do not satisfy.
func (x *UserDefinedFieldDefinition) AfterWrite(c *resource.Change) error {
	old, ok := c.Old.(*UserDefinedFieldDefinition)
	if x.Indexed != nil && *x.Indexed && (!ok || old.Indexed == nil || !*old.Indexed) {
		if err := x.checkIndexedValues(c); err != nil {
			return err
		}
	}
	if ok && reflect.DeepEqual(old.ValidationProperties, x.ValidationProperties) && slices.Equal(old.PredefinedValues, x.PredefinedValues) {
		return nil
	}
	return x.checkExistingValues(c)
}

// checkExistingValues rejects changed bounds or predefined values that the value of a resource does not satisfy.
func (x *UserDefinedFieldDefinition) checkExistingValues(c *resource.Change) error {
	return x.eachValue(c, func(r *store.Resource, value string) error {
		if _, err := x.parseValue(value); err != nil {
			code, field := "UdfValidationPropertiesInUse", "validationProperties"
			switch {
			case problem.Is(err, "InvalidUdfPredefinedValue"):
				code, field = "UdfPredefinedValueInUse", "predefinedValues"
			case x.ValidationProperties == nil:
				field = "dataType"
			}
			return problem.Field(code, field, "%s %d has the value %q: %v", r.Type, r.ID, value, messageOf(err))
		}
		return nil
	})
}

// eachValue calls fn for the resources that set the field.
func (x *UserDefinedFieldDefinition) eachValue(c *resource.Change, fn func(r *store.Resource, value string) error) error {
	at := store.Field{Kind: store.Text, Path: []string{"userDefinedFields", x.Name}}
	for _, name := range concreteTypes(c.API, x.ResourceType) {
		t := c.API.TypeNamed(name)
		if err := c.Tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection(t.Collection),
			store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"type"}}, Op: "eq", Value: name},
			store.Compare{Field: at, Op: "ne", Value: ""}}}, func(r *store.Resource) error {
			o, err := t.Object(r)
			if err != nil {
				return err
			}
			if value, ok := schema.HeadOf(o).UserDefinedFields[x.Name]; ok {
				return fn(r, value)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// BeforeDelete deletes the values together with their definition.
func (x *UserDefinedFieldDefinition) BeforeDelete(c *resource.Change) error {
	var rows []*store.Resource
	if err := x.eachValue(c, func(r *store.Resource, _ string) error {
		rows = append(rows, r.Clone())
		return nil
	}); err != nil {
		return err
	}
	for _, r := range rows {
		if _, err := c.Following().Change(r, func(o schema.Object) { delete(schema.HeadOf(o).UserDefinedFields, x.Name) }); err != nil {
			return fmt.Errorf("delete the value of %s of resource %d: %w", x.Name, r.ID, err)
		}
	}
	return nil
}
