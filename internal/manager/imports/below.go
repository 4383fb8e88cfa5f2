package imports

import (
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// Imports of release 9.6 begin below the resource that their rows belong to: a table is sent as it is, and what it is an import of
// follows from its first row, or the rows stand in the body of a request that says of what the import is. Each row is what a request that
// makes it would be, with the headers of the one that sent them.

// registerImportsBelow declares them.
func registerImportsBelow(r *resource.Registry) {
	r.Collection(resource.Collection{Name: collectionName}, &IPv4BlockImport{}, &IPv4NetworkImport{}, &IPv4AddressImport{}, &IPv6BlockImport{},
		&IPv6NetworkImport{}, &IPv6AddressImport{}, &ZoneImport{}, &ResourceRecordImport{})
}

// importsBelow are the types that there are below the resources of a collection.
var importsBelow = map[string][]string{"blocks": {"IPv4BlockImport", "IPv4NetworkImport", "IPv6BlockImport", "IPv6NetworkImport"},
	"networks": {"IPv4AddressImport", "IPv6AddressImport"}, "views": {"ZoneImport"}, "zones": {recordImport}}

// tablesBelow are the types of all of those.
func tablesBelow() []string { return slices.Concat(slices.Collect(maps.Values(importsBelow))...) }

// recordImport is the type of imports of records, of whichever type they are.
const recordImport = "ResourceRecordImport"

// typeColumn is the column of a table that says what its rows are.
const typeColumn = "type"

// ImportBelow is what imports have that begin below the resource that their rows belong to.
type ImportBelow struct {
	ImportHead
	// State is how far it is. CANCELLED ends it; with rows that were refused it is COMPLETED_WITH_ERRORS at its end.
	State string `api:"state,index" enum:"PENDING|QUEUED|RUNNING|CANCELLED|CANCELLING|COMPLETED|COMPLETED_WITH_ERRORS|COMPLETED_WITH_WARNINGS|FAILED|UNKNOWN"`
	// Headers are those that hold for every row.
	Headers map[string]string `api:"headers,createOnly"`
	// Resources are the rows, where the body has them and no table is sent: each as the body of a request that makes it would be. One without
	// a type is of the type that the import is of.
	Resources json.RawMessage `api:"resources,writeOnly,createOnly,list"`
}

// below gives it, whichever type it is.
func (x *ImportBelow) below() *ImportBelow { return x }

func (x *ImportBelow) progress() (*ImportHead, *string) { return &x.ImportHead, &x.State }

// IPv4BlockImport makes blocks in a block.
type IPv4BlockImport struct {
	ImportBelow `parents:"blocks"`
}

// IPv4NetworkImport makes networks in a block.
type IPv4NetworkImport struct {
	ImportBelow `parents:"blocks"`
}

// IPv4AddressImport makes addresses in a network.
type IPv4AddressImport struct {
	ImportBelow `parents:"networks"`
}

// IPv6BlockImport makes blocks in a block.
type IPv6BlockImport struct {
	ImportBelow `parents:"blocks"`
}

// IPv6NetworkImport makes networks in a block.
type IPv6NetworkImport struct {
	ImportBelow `parents:"blocks"`
}

// IPv6AddressImport makes addresses in a network.
type IPv6AddressImport struct {
	ImportBelow `parents:"networks"`
}

// ZoneImport makes zones in a view.
type ZoneImport struct {
	ImportBelow `parents:"views"`
}

// ResourceRecordImport makes records in a zone.
type ResourceRecordImport struct {
	ImportBelow `parents:"zones"`
}

// BeforeWrite takes the table, or does what the new state asks for.
func (x *ImportBelow) BeforeWrite(c *resource.Change) error {
	switch {
	case !c.Requested():
		return nil
	case !c.Creates():
		old, _ := c.Old.(interface{ below() *ImportBelow })
		return x.move(c, &x.State, old.below().State)
	}
	x.State = queued
	kind := csvType
	if c.Content == nil && x.Resources != nil {
		kind = jsonType
		if err := x.takeResources(); err != nil {
			return err
		}
	}
	if err := x.take(c, kind); err != nil {
		return err
	}
	_, err := readHeaders(c.API, x.Headers)
	return err
}

// takeResources makes the rows of the body the file of the import.
func (x *ImportBelow) takeResources() error {
	var rows []map[string]json.RawMessage
	if json.Unmarshal(x.Resources, &rows) != nil || slices.ContainsFunc(rows, func(r map[string]json.RawMessage) bool { return r == nil }) {
		return problem.Field("JsonDeserializationError", "resources", "must be a list of objects")
	}
	if len(rows) == 0 {
		return problem.Field("EmptyFieldValue", "resources", "must have at least one entry")
	}
	of := strings.TrimSuffix(x.Type, "Import")
	for _, r := range rows {
		if _, said := r[typeColumn]; !said && x.Type != recordImport {
			r[typeColumn] = schema.AppendString(nil, of)
		}
	}
	var err error
	x.rows, err = json.Marshal(rows)
	return err
}

// BeforeDelete takes the table and the log away, unless they are being used.
func (x *ImportBelow) BeforeDelete(c *resource.Change) error { return x.drop(c, x.State) }

// typeOfTable gives the type of the import of a table, by the type of its first row: one of those.
func typeOfTable(file io.Reader, those []string) (string, error) {
	rows, err := readRows(csvType, file)
	if err != nil {
		return "", err
	}
	first, err := rows.next()
	if err != nil {
		if _, ok := problem.As(err); ok {
			return "", err
		}
		return "", problem.BadRequest("InvalidCsv", "the table has no rows that can be read: %v", err)
	}
	of := ""
	for _, c := range first.cells {
		if c.column.Name == typeColumn {
			of = c.text
		}
	}
	switch {
	case of == "" && len(those) == 1 && those[0] != recordImport:
		return those[0], nil
	case of == "":
		return "", problem.BadRequest("InvalidCsv", "the first row has no type: the table needs the column %s", typeColumn)
	case slices.Contains(those, of+"Import"):
		return of + "Import", nil
	case slices.Contains(those, recordImport) && strings.HasSuffix(of, "Record"):
		return recordImport, nil
	}
	return "", problem.Field("InvalidResourceType", typeColumn, "a %s is not imported here; these are: %s", of, strings.Join(those, ", "))
}
