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

// Imports of release 9.6 start below the parent of their resources. The client sends a table, whose first row determines the type of the
// import, or a request with the rows in its body. Each row is treated as a request that creates a resource, with the headers of the
// import's request.

// registerImportsBelow declares these imports.
func registerImportsBelow(r *resource.Registry) {
	r.Collection(resource.Collection{Name: collectionName}, &IPv4BlockImport{}, &IPv4NetworkImport{}, &IPv4AddressImport{}, &IPv6BlockImport{},
		&IPv6NetworkImport{}, &IPv6AddressImport{}, &ZoneImport{}, &ResourceRecordImport{})
}

// importsBelow are the types of imports below the resources of a collection.
var importsBelow = map[string][]string{"blocks": {"IPv4BlockImport", "IPv4NetworkImport", "IPv6BlockImport", "IPv6NetworkImport"},
	"networks": {"IPv4AddressImport", "IPv6AddressImport"}, "views": {"ZoneImport"}, "zones": {recordImport}}

// tablesBelow returns all these types.
func tablesBelow() []string { return slices.Concat(slices.Collect(maps.Values(importsBelow))...) }

// recordImport is the type of imports of resource records of any type.
const recordImport = "ResourceRecordImport"

// typeColumn is the column of a table that has the type of a row.
const typeColumn = "type"

// ImportBelow has the fields of imports that start below the parent of their resources.
type ImportBelow struct {
	ImportHead
	// State is the progress of the import. Set CANCELLED to cancel it. An import with rejected rows ends as COMPLETED_WITH_ERRORS.
	State string `api:"state,index" enum:"PENDING|QUEUED|RUNNING|CANCELLED|CANCELLING|COMPLETED|COMPLETED_WITH_ERRORS|COMPLETED_WITH_WARNINGS|FAILED|UNKNOWN"`
	// Headers are request headers that apply to every row.
	Headers map[string]string `api:"headers,createOnly"`
	// Resources are the rows, if no table is sent. Each row is the body of a request that creates the resource. A row without a type has
	// the type of the import.
	Resources json.RawMessage `api:"resources,writeOnly,createOnly,list"`
}

// common returns the common part of all these types.
func (x *ImportBelow) common() *ImportBelow { return x }

func (x *ImportBelow) progress() (*ImportHead, *string) { return &x.ImportHead, &x.State }

// IPv4BlockImport imports blocks into a block.
type IPv4BlockImport struct {
	ImportBelow `parents:"blocks"`
}

// IPv4NetworkImport imports networks into a block.
type IPv4NetworkImport struct {
	ImportBelow `parents:"blocks"`
}

// IPv4AddressImport imports addresses into a network.
type IPv4AddressImport struct {
	ImportBelow `parents:"networks"`
}

// IPv6BlockImport imports blocks into a block.
type IPv6BlockImport struct {
	ImportBelow `parents:"blocks"`
}

// IPv6NetworkImport imports networks into a block.
type IPv6NetworkImport struct {
	ImportBelow `parents:"blocks"`
}

// IPv6AddressImport imports addresses into a network.
type IPv6AddressImport struct {
	ImportBelow `parents:"networks"`
}

// ZoneImport imports zones into a view.
type ZoneImport struct {
	ImportBelow `parents:"views"`
}

// ResourceRecordImport imports resource records into a zone.
type ResourceRecordImport struct {
	ImportBelow `parents:"zones"`
}

// BeforeWrite checks the table of a new import, or applies a change of the state.
func (x *ImportBelow) BeforeWrite(c *resource.Change) error {
	switch {
	case !c.IsRequested():
		return nil
	case !c.IsCreation():
		old, _ := c.Old.(interface{ common() *ImportBelow })
		return x.changeState(c, &x.State, old.common().State)
	}
	x.State = queued
	kind := csvType
	if c.Content == nil && x.Resources != nil {
		kind = jsonType
		if err := x.readResources(); err != nil {
			return err
		}
	}
	if err := x.setFileInfo(c, kind); err != nil {
		return err
	}
	_, err := readHeaders(c.API, x.Headers)
	return err
}

// readResources converts the rows in the body to the file of the import.
func (x *ImportBelow) readResources() error {
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

// BeforeDelete deletes the table and the log. It returns an error if the import is running.
func (x *ImportBelow) BeforeDelete(c *resource.Change) error { return x.deleteData(c, x.State) }

// typeOfTable returns the type of the import of a table, one of those, by the type of its first row.
func typeOfTable(file io.Reader, those []string) (string, error) {
	rows, err := readRows(csvType, file, nil)
	if err != nil {
		return "", err
	}
	first, err := rows.next()
	if err != nil {
		if _, ok := problem.As(err); ok {
			return "", err
		}
		return "", problem.BadRequest("InvalidCsv", "the table has no readable rows: %v", err)
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
	return "", problem.Field("InvalidResourceType", typeColumn, "a %s cannot be imported here; choose one of %s",
		of, strings.Join(those, ", "))
}
