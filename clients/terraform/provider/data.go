package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"portolan/client"
	fields "portolan/internal/engine/schema"
)

// found is a data source for a type of resources. It finds an existing resource by its ID, its key, or a filter.
type found struct{ *kind }

// Metadata sets the type name: portolan_ipv4_network.
func (d found) Metadata(_ context.Context, rq datasource.MetadataRequest, rs *datasource.MetadataResponse) {
	rs.TypeName = rq.ProviderTypeName + "_" + snake(d.t.Name)
}

// keys returns the attributes that can identify a resource.
func (d found) keys() (all []string) {
	for _, name := range []string{"name", "absolute_name", "range", "address"} {
		if d.attributes[name] != nil {
			all = append(all, name)
		}
	}
	return all
}

// Schema is derived from the fields. The identifying attributes may be set, all others are computed. Secrets are omitted.
func (d found) Schema(_ context.Context, _ datasource.SchemaRequest, rs *datasource.SchemaResponse) {
	keys := d.keys()
	all := map[string]schema.Attribute{
		"id":     schema.StringAttribute{Optional: true, Computed: true, Description: "The id of the resource."},
		"filter": schema.StringAttribute{Optional: true, Description: "A filter of the API that matches exactly one resource."},
	}
	for name, f := range d.attributes {
		if f.Kind == fields.SecretText {
			continue
		}
		description := d.api.Descriptions[f.Owner+"."+f.Name]
		switch kind := typeOf(f).(type) {
		case types.ListType:
			all[name] = schema.ListAttribute{Computed: true, ElementType: kind.ElemType, Description: description}
		case types.MapType:
			all[name] = schema.MapAttribute{Computed: true, ElementType: kind.ElemType, Description: description}
		default:
			switch kind {
			case types.BoolType:
				all[name] = schema.BoolAttribute{Computed: true, Description: description}
			case types.Int64Type:
				all[name] = schema.Int64Attribute{Computed: true, Description: description}
			default:
				all[name] = schema.StringAttribute{Computed: true, Optional: slices.Contains(keys, name), Description: description}
			}
		}
	}
	rs.Schema = schema.Schema{Description: d.api.Descriptions[d.t.Name], Attributes: all}
}

// Configure stores the manager.
func (d found) Configure(_ context.Context, rq datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	if m, ok := rq.ProviderData.(*manager); ok {
		d.manager = m
	}
}

// Read finds the resource. It reports an error if none or several match.
func (d found) Read(ctx context.Context, rq datasource.ReadRequest, rs *datasource.ReadResponse) {
	filter, err := d.filter(ctx, rq)
	if err != nil {
		rs.Diagnostics.AddError("Looking for a "+d.t.Name, err.Error())
		return
	}
	page, err := d.manager.List(ctx, d.api.CollectionOf(d.t).Path(), client.Query{Filter: filter, Limit: 2})
	if err != nil {
		d.refused("Looking for a "+d.t.Name, err, &rs.Diagnostics)
		return
	}
	if len(page.Data) != 1 {
		rs.Diagnostics.AddError("Looking for a "+d.t.Name, fmt.Sprintf("%s with %s: give what finds one alone", []string{"there is none", "", "there are several"}[len(page.Data)], filter))
		return
	}
	var shown map[string]json.RawMessage
	if err := json.Unmarshal(page.Data[0], &shown); err != nil {
		rs.Diagnostics.AddError("Reading a "+d.t.Name, err.Error())
		return
	}
	rs.State.Raw = rq.Config.Raw
	rs.Diagnostics.Append(rs.State.SetAttribute(ctx, path.Root("id"), string(shown["id"]))...)
	for name, f := range d.attributes {
		if f.Kind == fields.SecretText {
			continue
		}
		raw, there := shown[f.Name]
		if !there && f.Kind == fields.References { // the API shows the references as a subcollection
			var linked []json.RawMessage
			err := d.manager.All(ctx, fmt.Sprint(d.api.CollectionOf(d.t).Path(), "/", string(shown["id"]), "/", f.Name), client.Query{Limit: 1000},
				func(one json.RawMessage) error {
					linked = append(linked, one)
					return nil
				})
			if err == nil {
				raw, err = json.Marshal(linked)
			}
			var e *client.Error
			if errors.As(err, &e) && e.Status == http.StatusNotFound { // a write-only field
				err = nil
			}
			if err != nil {
				d.refused("Reading the "+f.Name+" of a "+d.t.Name, err, &rs.Diagnostics)
				return
			}
		}
		rs.Diagnostics.Append(rs.State.SetAttribute(ctx, path.Root(name), valueOf(f, raw))...)
	}
}

// filter returns the filter for the type, the given attributes, and the configuration of the provider.
func (d found) filter(ctx context.Context, rq datasource.ReadRequest) (string, error) {
	all := []string{fmt.Sprintf("type:'%s'", d.t.Name)}
	given := func(name string) (text types.String) {
		rq.Config.GetAttribute(ctx, path.Root(name), &text)
		return text
	}
	if id := given("id"); !id.IsNull() {
		all = append(all, "id:"+quoted(id.ValueString()))
	}
	for _, name := range d.keys() {
		if text := given(name); !text.IsNull() {
			all = append(all, d.attributes[name].Name+":"+quoted(text.ValueString()))
		}
	}
	if text := given("filter"); !text.IsNull() {
		all = append(all, "("+text.ValueString()+")")
	}
	if len(all) == 1 {
		return "", fmt.Errorf("set one of id, %s or filter", strings.Join(d.keys(), ", "))
	}
	if name, within := strings.CutPrefix(d.manager.into, "configurations/"); within {
		if _, lies := d.t.Field("configuration"); lies {
			all = append(all, "configuration.name:"+quoted(name))
		}
	}
	return strings.Join(all, " and "), nil
}

// quoted returns a text as a quoted string of the filter syntax.
func quoted(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

// valueOf returns the value of an attribute from the JSON of its field.
func valueOf(f *fields.Field, raw json.RawMessage) attr.Value {
	switch kind := typeOf(f).(type) {
	case types.ListType:
		var all []json.RawMessage
		if json.Unmarshal(raw, &all) != nil {
			return types.ListNull(kind.ElemType)
		}
		list := make([]attr.Value, len(all))
		for i, one := range all {
			list[i] = types.StringValue(textOf(one))
		}
		return types.ListValueMust(kind.ElemType, list)
	case types.MapType:
		var all map[string]json.RawMessage
		if json.Unmarshal(raw, &all) != nil || all == nil {
			return types.MapNull(kind.ElemType)
		}
		members := map[string]attr.Value{}
		for name, one := range all {
			members[name] = types.StringValue(textOf(one))
		}
		return types.MapValueMust(kind.ElemType, members)
	default:
		switch kind {
		case types.BoolType:
			var yes *bool
			_ = json.Unmarshal(raw, &yes) // stays null on an error
			return types.BoolPointerValue(yes)
		case types.Int64Type:
			var n *int64
			_ = json.Unmarshal(raw, &n) // as above
			return types.Int64PointerValue(n)
		}
		if text := textOf(raw); text != "" {
			return types.StringValue(text)
		}
		return types.StringNull()
	}
}

// textOf returns a value as text. For a reference it returns the key.
func textOf(raw json.RawMessage) string {
	var text string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case json.Unmarshal(raw, &text) == nil:
		return text
	}
	if name := keyIn(raw); name != "" {
		return name
	}
	return string(raw)
}
