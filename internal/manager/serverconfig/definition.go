package serverconfig

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"portolan/internal/base/dhcpoption"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerDefinitions declares the collections of option definitions and vendor profiles, and seeds the built-in definitions.
func registerDefinitions(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "vendorProfiles", Parents: []string{""}}, &VendorProfile{})
	r.Collection(resource.Collection{Name: "deploymentOptionDefinitions", NoSearch: true}, &DHCPv4ClientOptionDefinition{},
		&DHCPv4ServiceOptionDefinition{}, &DHCPv6ClientOptionDefinition{}, &DHCPv6ServiceOptionDefinition{}, &DNSOptionDefinition{},
		&StartOfAuthorityDefinition{}, &DHCPv4CustomClientOptionDefinition{}, &DHCPVendorOptionDefinition{})
	r.Seed(seedDefinitions)
}

// VendorProfile is a vendor of DHCP clients: the identifier that its clients send in option 60, and its options.
type VendorProfile struct {
	schema.Head `head:"required,nonblank" unique:"all"`
	// Identifier is the vendor class identifier that the clients send (RFC 2132 section 9.13).
	Identifier string `api:"identifier,required,nonblank,index"`
	// Description is a free text about the profile.
	Description string `api:"description,required,nonblank" length:"4000"`
}

// Definition are the fields of every option definition.
type Definition struct {
	// AssignableTypes are the resource types that the option can be set on.
	AssignableTypes []string `api:"assignableTypes,readOnly"`
	// Code is the number of the option; null where it has none.
	Code *int64 `api:"code,readOnly"`
	// DisplayName is the name of the option for people.
	DisplayName string `api:"displayName,readOnly"`
	// Description is the purpose of the option.
	Description string `api:"description,readOnly"`
	// ValueFormat is the format of the option's values, with a <type> in the place of each value.
	ValueFormat json.RawMessage `api:"valueFormat,readOnly,any"`
	// OtherNames are further names that a request may use for the option.
	OtherNames []string `api:"otherNames,readOnly"`
}

// DHCPv4ClientOptionDefinition defines an option that a DHCPv4 server sends to clients.
type DHCPv4ClientOptionDefinition struct {
	schema.Head `head:"nonblank" parents:"" post:"no"`
	Definition
}

// DHCPv4ServiceOptionDefinition defines a setting of a DHCPv4 server.
type DHCPv4ServiceOptionDefinition struct {
	schema.Head `head:"nonblank" parents:"" post:"no"`
	Definition
}

// DHCPv6ClientOptionDefinition defines an option that a DHCPv6 server sends to clients.
type DHCPv6ClientOptionDefinition struct {
	schema.Head `head:"nonblank" parents:"" post:"no"`
	Definition
}

// DHCPv6ServiceOptionDefinition defines a setting of a DHCPv6 server.
type DHCPv6ServiceOptionDefinition struct {
	schema.Head `head:"nonblank" parents:"" post:"no"`
	Definition
}

// DNSOptionDefinition defines a setting of a name server.
type DNSOptionDefinition struct {
	schema.Head `head:"nonblank" parents:"" post:"no"`
	Definition
}

// StartOfAuthorityDefinition defines the start of authority of zones.
type StartOfAuthorityDefinition struct {
	schema.Head `head:"nonblank" parents:"" post:"no"`
	Definition
}

// DHCPv4CustomClientOptionDefinition defines a custom option that a DHCPv4 server sends to clients.
type DHCPv4CustomClientOptionDefinition struct {
	schema.Head `head:"required,nonblank" parents:"configurations" unique:"siblings"`
	// AssignableTypes are the resource types that the option can be set on.
	AssignableTypes []string `api:"assignableTypes,readOnly"`
	// Code is the number of the option.
	Code int64 `api:"code,post,createOnly" min:"2" max:"255"`
	// DisplayName is the name of the option for people.
	DisplayName string `api:"displayName,required,nonblank"`
	// Description is the purpose of the option.
	Description string `api:"description,required,nonblank" length:"4000"`
	// ValueFormat is the format of the option's values, with a <type> in the place of each value.
	ValueFormat json.RawMessage `api:"valueFormat,post,createOnly,any"`
}

// DHCPVendorOptionDefinition defines an option of a vendor, which is a part of option 43.
type DHCPVendorOptionDefinition struct {
	schema.Head `head:"required,nonblank" parents:"vendorProfiles" unique:"siblings"`
	// AssignableTypes are the resource types that the option can be set on.
	AssignableTypes []string `api:"assignableTypes,readOnly"`
	// Code is the number of the option within option 43.
	Code int64 `api:"code,post,createOnly" min:"1" max:"254"`
	// DisplayName is the name of the option for people.
	DisplayName string `api:"displayName,required,nonblank"`
	// Description is the purpose of the option.
	Description string `api:"description,required,nonblank" length:"4000"`
	// ValueFormat is the format of the option's values, with a <type> in the place of each value.
	ValueFormat json.RawMessage `api:"valueFormat,post,createOnly,any"`
}

// definer is implemented by all types of definitions.
type definer interface{ asDefinition() Definition }

func (x *Definition) asDefinition() Definition { return *x }

func (x *DHCPv4CustomClientOptionDefinition) asDefinition() Definition {
	return Definition{x.AssignableTypes, &x.Code, x.DisplayName, x.Description, x.ValueFormat, nil}
}

func (x *DHCPVendorOptionDefinition) asDefinition() Definition {
	return Definition{x.AssignableTypes, &x.Code, x.DisplayName, x.Description, x.ValueFormat, nil}
}

// definition returns the fields that all types of definitions have; the zero value for any other object.
func definition(o schema.Object) Definition {
	if d, ok := o.(definer); ok {
		return d.asDefinition()
	}
	return Definition{}
}

// DefinitionOf returns the fields of a definition of any type; the zero value for any other object.
func DefinitionOf(o schema.Object) Definition { return definition(o) }

// definitionFiles are the files with the built-in definitions, by the type of the definitions.
var definitionFiles = map[string]string{
	"DHCPv4ClientOptionDefinition":  "dhcpv4_client",
	"DHCPv4ServiceOptionDefinition": "dhcpv4_service",
	"DHCPv6ClientOptionDefinition":  "dhcpv6_client",
	"DHCPv6ServiceOptionDefinition": "dhcpv6_service",
	"DNSOptionDefinition":           "dns",
	"StartOfAuthorityDefinition":    "soa",
}

// optionsFiles are the options of name servers; those of DHCP servers are in the package dhcpoption. The columns are: name, code, format,
// display name, description, other names.
//
//go:embed options/*.tsv
var optionsFiles embed.FS

// readDefinitions returns the definitions in a file, and their names in the order of the file.
func readDefinitions(file string) (names []string, all map[string]Definition, err error) {
	text, err := optionsFiles.ReadFile("options/" + file + ".tsv")
	if strings.HasPrefix(file, "dhcp") {
		text, err = dhcpoption.Files.ReadFile(file + ".tsv")
	}
	if err != nil {
		return nil, nil, err
	}
	all = map[string]Definition{}
	for line := range strings.Lines(string(text)) {
		parts := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") {
			continue
		}
		if len(parts) != 6 {
			return nil, nil, fmt.Errorf("options/%s.tsv: %q has %d columns", file, line, len(parts))
		}
		d := Definition{DisplayName: parts[3], Description: parts[4], ValueFormat: json.RawMessage(parts[2])}
		if parts[1] != "" {
			code, err := strconv.ParseInt(parts[1], 10, 64)
			if err != nil {
				return nil, nil, err
			}
			d.Code = &code
		}
		if parts[5] != "" {
			d.OtherNames = strings.Split(parts[5], ",")
		}
		names = append(names, parts[0])
		all[parts[0]] = d
	}
	return names, all, nil
}

// seedDefinitions creates the built-in definitions that do not exist, and updates those that differ from the files.
func seedDefinitions(c *resource.Change) error {
	there := map[string]map[string]*store.Resource{}
	if err := c.Tx.List(store.Query{From: store.Resources, Where: store.InCollection("deploymentOptionDefinitions")},
		func(r *store.Resource) error {
			if there[r.Type] == nil {
				there[r.Type] = map[string]*store.Resource{}
			}
			there[r.Type][r.Name] = r.Clone()
			return nil
		}); err != nil {
		return err
	}
	for _, t := range c.API.Collection("deploymentOptionDefinitions").Types {
		if definitionFiles[t.Name] == "" {
			continue
		}
		names, all, err := readDefinitions(definitionFiles[t.Name])
		if err != nil {
			return err
		}
		var missing []schema.Object
		for _, name := range names {
			d := all[name]
			d.AssignableTypes = assignable(c.API, t.Name)
			o := t.New()
			schema.HeadOf(o).Name = name
			setDefinition(o, d)
			row := there[t.Name][name]
			if row == nil {
				missing = append(missing, o)
				continue
			}
			fresh, err := t.Row(o, nil)
			if err != nil {
				return err
			}
			if string(fresh.Body) == string(row.Body) {
				continue
			}
			if _, err := c.Following().Change(row, func(o schema.Object) { setDefinition(o, d) }); err != nil {
				return err
			}
		}
		if _, err := c.CreateMany(t, missing); err != nil {
			return err
		}
	}
	version, err := definitionsVersion()
	if err != nil {
		return err
	}
	return c.Tx.Write("INSERT INTO marker (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
		definitionsMarker, version)
}

// definitionsMarker is the name of the marker with the version of the stored built-in definitions.
const definitionsMarker = "option-definitions"

// definitionsVersion returns a hash of the files with the built-in definitions.
func definitionsVersion() (string, error) {
	sum := sha256.New()
	for _, files := range []fs.FS{optionsFiles, dhcpoption.Files} {
		if err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := fs.ReadFile(files, path)
			if err == nil {
				_, err = fmt.Fprintf(sum, "%s %d\n%s", path, len(text), text)
			}
			return err
		}); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// AreDefinitionsCurrent reports whether the database contains the built-in definitions of this version of the program.
func AreDefinitionsCurrent(tx *store.Tx) (bool, error) {
	version, err := definitionsVersion()
	if err != nil {
		return false, err
	}
	var equal int
	err = tx.QueryRow("SELECT count(*) FROM marker WHERE name = ? AND value = ?", definitionsMarker, version).Scan(&equal)
	return equal > 0, err
}

func (x *Definition) set(d Definition) { *x = d }

// setDefinition sets the fields of a built-in definition.
func setDefinition(o schema.Object, d Definition) {
	if x, ok := o.(interface{ set(d Definition) }); ok {
		x.set(d)
	}
}

// optionOf returns the type of the options that definitions of a type define; nil if there is none.
func optionOf(a *resource.API, definition string) *schema.Type {
	for _, t := range a.Collection("deploymentOptions").Types {
		if f, ok := t.Field("definition"); ok && slices.Contains(f.Refs, definition) {
			return t
		}
	}
	return nil
}

// assignable returns the resource types that options of a definition can be set on, sorted.
func assignable(a *resource.API, definition string) (types []string) {
	t := optionOf(a, definition)
	for _, parent := range a.ParentsOf(t) {
		if c := a.Collection(parent); c != nil {
			for _, above := range c.Types {
				if familyFits(t.Name, above.Name) {
					types = append(types, above.Name)
				}
			}
		}
	}
	slices.Sort(types)
	return types
}

// checkDefinition rejects a custom definition whose code or name is in use, or whose name or format is malformed.
func checkDefinition(c *resource.Change, h *schema.Head, code int64, format json.RawMessage, builtIn string) error {
	if strings.ContainsAny(h.Name, " \t\"{};") {
		return problem.Invalid("name", "%q must not contain blanks, quotes, braces or semicolons", h.Name)
	}
	if _, err := ParseFormat(format); err != nil {
		return problem.Invalid("valueFormat", "%v", err)
	}
	return eachDefinition(c, h.Parent, builtIn, func(row *store.Resource, d Definition) error {
		if row.ID == h.ID {
			return nil
		}
		if d.Code != nil && *d.Code == code {
			return problem.Conflict("ResourceAlreadyExists", "code: %d is already the code of the option %s", code,
				problem.Describe(row.ID, row.Name))
		}
		if row.Name == h.Name || slices.Contains(d.OtherNames, h.Name) {
			return problem.Conflict("ResourceAlreadyExists", "name: option %s already exists", problem.Describe(row.ID, row.Name))
		}
		return nil
	})
}

// eachDefinition calls fn for the definitions whose parent is given (unless 0), and for the built-in ones of a type (unless empty).
func eachDefinition(c *resource.Change, parent int64, builtIn string, fn func(row *store.Resource, d Definition) error) error {
	var either store.Any
	if parent != 0 {
		either = append(either, store.HasParent(parent))
	}
	if builtIn != "" {
		either = append(either, store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"type"}}, Op: "eq", Value: builtIn})
	}
	return c.Tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("deploymentOptionDefinitions"), either}},
		func(r *store.Resource) error {
			o, err := c.API.Object(r)
			if err != nil {
				return err
			}
			return fn(r, definition(o))
		})
}

// Validate rejects a definition whose code or name is in use.
func (x *DHCPv4CustomClientOptionDefinition) Validate(c *resource.Change) error {
	return checkDefinition(c, &x.Head, x.Code, x.ValueFormat, "DHCPv4ClientOptionDefinition")
}

// BeforeWrite sets the types that the option can be set on.
func (x *DHCPv4CustomClientOptionDefinition) BeforeWrite(c *resource.Change) error {
	x.AssignableTypes = assignable(c.API, x.Type)
	return nil
}

// Validate rejects a definition whose code or name is in use.
func (x *DHCPVendorOptionDefinition) Validate(c *resource.Change) error {
	return checkDefinition(c, &x.Head, x.Code, x.ValueFormat, "")
}

// BeforeWrite sets the types that the option can be set on.
func (x *DHCPVendorOptionDefinition) BeforeWrite(c *resource.Change) error {
	x.AssignableTypes = assignable(c.API, x.Type)
	return nil
}

// Validate rejects an identifier that another profile has.
func (x *VendorProfile) Validate(c *resource.Change) error {
	same, err := c.Tx.ReadFirst(store.Query{From: store.Resources, Where: store.All{store.InCollection("vendorProfiles"),
		store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"identifier"}, Indexed: true}, Op: "eq", Value: x.Identifier},
		store.Compare{Field: store.Field{Kind: store.ColumnID}, Op: "ne", Value: x.ID}}})
	if err == nil && same != nil {
		err = problem.Conflict("ResourceAlreadyExists", "identifier: already used by vendor profile %s (%d)", same.Name, same.ID)
	}
	return err
}

// BeforeWrite rejects requests to change a built-in definition.
func (x *Definition) BeforeWrite(c *resource.Change) error {
	if !c.IsRequested() {
		return nil
	}
	return problem.Forbidden("UpdateNotAllowed", "the option %s is built in and cannot be changed", schema.HeadOf(c.Old).Name)
}

// BeforeDelete rejects the deletion of a built-in definition.
func (x *Definition) BeforeDelete(c *resource.Change) error {
	return problem.Forbidden("DeleteNotAllowed", "the option %s is built in and cannot be deleted", schema.HeadOf(c.Old).Name)
}
