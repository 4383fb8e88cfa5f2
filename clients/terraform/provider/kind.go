package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"portolan/client"
	declared "portolan/internal/engine/resource"
	fields "portolan/internal/engine/schema"
)

// kind is a resource type.
type kind struct {
	api     *declared.API
	t       *fields.Type
	manager *manager
	// attributes are the fields, by attribute name.
	attributes map[string]*fields.Field
}

func newKind(a *declared.API, t *fields.Type) *kind {
	k := &kind{api: a, t: t, attributes: map[string]*fields.Field{}}
	for _, f := range t.Fields {
		if f.ReadOnly || f.Hidden || f.Transient || f.Also != "" || f.Column != "" || f.Name == "type" || f.Name == "id" || typeOf(f) == nil {
			continue
		}
		k.attributes[snake(f.Name)] = f
	}
	return k
}

// placed returns the additional attribute that determines a resource's parent, such as the view of DNS names. It returns an empty text if
// there is none.
func (k *kind) placed() string { return k.api.CollectionOf(k.t).PlacedBy }

// snake returns a name in snake case: absoluteName becomes absolute_name, IPv4Network becomes ipv4_network.
func snake(name string) string {
	name = strings.NewReplacer("IPv4", "Ipv4", "IPv6", "Ipv6", "DHCP", "Dhcp", "MX", "Mx", "TXT", "Txt", "SRV", "Srv", "DNS", "Dns").Replace(name)
	var b strings.Builder
	for i, r := range name {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// typeOf returns the type of an attribute, or nil for fields that are not attributes.
func typeOf(f *fields.Field) attr.Type {
	switch f.Kind {
	case fields.Bool:
		return types.BoolType
	case fields.Integer:
		return types.Int64Type
	case fields.Text, fields.Address, fields.Span, fields.Reference, fields.Time, fields.SecretText:
		return types.StringType
	case fields.Strings, fields.References:
		return types.ListType{ElemType: types.StringType}
	case fields.Map:
		return types.MapType{ElemType: types.StringType}
	}
	return nil
}

// Metadata sets the type name: portolan_ipv4_network.
func (k *kind) Metadata(_ context.Context, rq resource.MetadataRequest, rs *resource.MetadataResponse) {
	rs.TypeName = rq.ProviderTypeName + "_" + snake(k.t.Name)
}

// Schema is derived from the fields. Attributes that the manager sets if they are not given are computed.
func (k *kind) Schema(_ context.Context, _ resource.SchemaRequest, rs *resource.SchemaResponse) {
	key := k.api.CollectionOf(k.t).KeyField()
	all := map[string]schema.Attribute{
		"id": schema.StringAttribute{Computed: true, Description: "The id of the resource.",
			PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()}},
		"in": schema.StringAttribute{Optional: true, Description: "The path of the parent, such as networks/10.1.0.0/24/addresses. " +
			"Not required if the values determine the parent.", PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()}},
	}
	if by := k.placed(); by != "" {
		all[by] = schema.StringAttribute{Optional: true, Description: "The " + by + " that it is in, where there are several.",
			PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()}}
	}
	if strings.HasSuffix(k.t.Name, "Network") || strings.HasSuffix(k.t.Name, "Block") {
		all["size"] = schema.StringAttribute{Optional: true, Description: "Instead of a range: the size of the next free range in the parent (in), such as /26.",
			PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()}}
	}
	for name, f := range k.attributes {
		description := k.api.Descriptions[f.Owner+"."+f.Name]
		computed := f.Name == key || f.Name == "gateway" || f.Name == "name" && key != "name"
		required := f.OnPost && !computed
		switch typeOf(f) {
		case types.BoolType:
			all[name] = schema.BoolAttribute{Optional: !required, Required: required, Description: description}
		case types.Int64Type:
			all[name] = schema.Int64Attribute{Optional: !required, Required: required, Description: description}
		case types.StringType:
			one := schema.StringAttribute{Optional: !required, Required: required, Computed: computed, Sensitive: f.Kind == fields.SecretText,
				Description: description}
			if computed {
				one.PlanModifiers = append(one.PlanModifiers, stringplanmodifier.UseStateForUnknown())
			}
			if f.Name == key && (f.Span || f.Kind == fields.Span || f.DNS) {
				one.PlanModifiers = append(one.PlanModifiers, stringplanmodifier.RequiresReplace())
			}
			all[name] = one
		default:
			if f.Kind == fields.Map {
				all[name] = schema.MapAttribute{ElementType: types.StringType, Optional: true, Description: description}
			} else {
				all[name] = schema.ListAttribute{ElementType: types.StringType, Optional: !required, Required: required, Description: description}
			}
		}
	}
	rs.Schema = schema.Schema{Description: k.api.Descriptions[k.t.Name], Attributes: all}
}

// Configure stores the manager.
func (k *kind) Configure(_ context.Context, rq resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	if m, ok := rq.ProviderData.(*manager); ok {
		k.manager = m
	}
}

// wanted returns the members of the resource in a plan or a state. It omits unknown values.
func (k *kind) wanted(raw tftypes.Value) (map[string]any, error) {
	var all map[string]tftypes.Value
	if err := raw.As(&all); err != nil {
		return nil, err
	}
	members := map[string]any{"type": k.t.Name}
	for name, value := range all {
		f := k.attributes[name]
		target := name
		if f != nil {
			target = f.Name
		}
		if !value.IsKnown() || name == "id" || name == "size" || value.IsNull() && (f == nil || !f.Chosen) {
			continue
		}
		if value.IsNull() {
			continue // the manager selects the value
		}
		plain, err := plainOf(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		members[target] = plain
	}
	if size, ok := all["size"]; ok && size.IsKnown() && !size.IsNull() {
		var text string
		if err := size.As(&text); err != nil {
			return nil, err
		}
		members["range"] = "/" + strings.TrimPrefix(text, "/")
	}
	return members, nil
}

// plainOf returns a value in the form that json.Marshal encodes.
func plainOf(value tftypes.Value) (any, error) {
	switch {
	case value.Type().Is(tftypes.String):
		var text string
		err := value.As(&text)
		return text, err
	case value.Type().Is(tftypes.Bool):
		var yes bool
		err := value.As(&yes)
		return yes, err
	case value.Type().Is(tftypes.Number):
		var n big.Float
		err := value.As(&n)
		whole, _ := n.Int64()
		return whole, err
	case value.Type().Is(tftypes.List{}):
		var list []tftypes.Value
		if err := value.As(&list); err != nil {
			return nil, err
		}
		all := []any{}
		for _, one := range list {
			plain, err := plainOf(one)
			if err != nil {
				return nil, err
			}
			all = append(all, plain)
		}
		return all, nil
	}
	var members map[string]tftypes.Value
	if err := value.As(&members); err != nil {
		return nil, err
	}
	all := map[string]any{}
	for name, one := range members {
		plain, err := plainOf(one)
		if err != nil {
			return nil, err
		}
		all[name] = plain
	}
	return all, nil
}

// apply applies one resource and returns the result.
func (k *kind) apply(ctx context.Context, members map[string]any, action string, dry bool) (one client.AppliedResource, err error) {
	raw, err := json.Marshal(members)
	if err != nil {
		return one, err
	}
	into := k.manager.into
	if k.t.Name == "Configuration" || k.t.Name == "TagGroup" || k.t.Name == "Tag" {
		into = ""
	}
	done, err := k.manager.Apply(ctx, client.Apply{Into: into, Action: action, Resources: []json.RawMessage{raw}}, client.ChangeOptions{DryRun: dry})
	if err == nil && len(done.Resources) != 1 {
		err = errors.New("the manager returned no result for the resource")
	}
	if err == nil {
		one = done.Resources[0]
	}
	return one, err
}

// refused adds an error of the manager to the diagnostics, at its attribute if possible.
func (k *kind) refused(what string, err error, all *diag.Diagnostics) {
	var e *client.Error
	if !errors.As(err, &e) {
		all.AddError(what, err.Error())
		return
	}
	message := strings.NewReplacer("resources[0].", "", "resources[0]: ", "").Replace(e.Message)
	for _, field := range e.Fields {
		name := snake(strings.TrimPrefix(field, "resources[0]."))
		if k.attributes[name] != nil || name == "in" || name == k.placed() {
			all.AddAttributeError(path.Root(name), what, message+" ("+e.Code+")")
			return
		}
	}
	all.AddError(what, message+" ("+e.Code+")")
}

// complete sets the unknown attributes of the state to the values that the manager selected.
func (k *kind) complete(ctx context.Context, id int64, state *tfsdk.State, all *diag.Diagnostics) {
	var shown map[string]json.RawMessage
	if err := k.manager.Get(ctx, fmt.Sprint(k.api.CollectionOf(k.t).Path(), "/", id), &shown); err != nil {
		k.refused("Reading it", err, all)
		return
	}
	all.Append(state.SetAttribute(ctx, path.Root("id"), fmt.Sprint(id))...)
	var now map[string]tftypes.Value
	if err := state.Raw.As(&now); err != nil {
		all.AddError("Reading it", err.Error())
		return
	}
	for name, f := range k.attributes {
		if value := now[name]; value.IsKnown() {
			continue
		}
		text := types.StringNull()
		var plain string
		if json.Unmarshal(shown[f.Name], &plain) == nil && plain != "" {
			text = types.StringValue(plain)
		}
		all.Append(state.SetAttribute(ctx, path.Root(name), text)...)
	}
}

// Create creates the resource.
func (k *kind) Create(ctx context.Context, rq resource.CreateRequest, rs *resource.CreateResponse) {
	members, err := k.wanted(rq.Plan.Raw)
	if err != nil {
		rs.Diagnostics.AddError("Reading the plan", err.Error())
		return
	}
	one, err := k.apply(ctx, members, "CREATE", false)
	if err != nil {
		k.refused("Creating a "+k.t.Name, err, &rs.Diagnostics)
		return
	}
	rs.State.Raw = rq.Plan.Raw
	k.complete(ctx, one.ID, &rs.State, &rs.Diagnostics)
}

// idOf returns the ID in a state.
func idOf(ctx context.Context, state tfsdk.State, all *diag.Diagnostics) (id int64) {
	var text types.String
	all.Append(state.GetAttribute(ctx, path.Root("id"), &text)...)
	if _, err := fmt.Sscan(text.ValueString(), &id); err != nil {
		all.AddError("Reading the state", "id is no number")
	}
	return id
}

// Read compares the resource with the state by a dry run of an update. It sets the attributes that the dry run would change to their
// current values.
func (k *kind) Read(ctx context.Context, rq resource.ReadRequest, rs *resource.ReadResponse) {
	id := idOf(ctx, rq.State, &rs.Diagnostics)
	members, err := k.wanted(rq.State.Raw)
	if err != nil || rs.Diagnostics.HasError() {
		rs.Diagnostics.Append(diag.NewErrorDiagnostic("Reading the state", fmt.Sprint(err)))
		return
	}
	delete(members, "in")
	delete(members, k.placed())
	members["id"] = id
	if size := members["range"]; size != nil && strings.HasPrefix(fmt.Sprint(size), "/") {
		delete(members, "range")
	}
	one, err := k.apply(ctx, members, "UPDATE", true)
	var e *client.Error
	if errors.As(err, &e) && e.Status == http.StatusNotFound {
		var there client.Head
		if gone := k.manager.Get(ctx, fmt.Sprint(k.api.CollectionOf(k.t).Path(), "/", id, "?fields=id"), &there); gone != nil {
			rs.State.RemoveResource(ctx)
			return
		}
	}
	if err != nil {
		k.refused("Reading a "+k.t.Name, err, &rs.Diagnostics)
		return
	}
	rs.State.Raw = rq.State.Raw
	for _, c := range one.Changes {
		name := snake(c.Field)
		f := k.attributes[name]
		if f == nil {
			continue
		}
		switch typeOf(f) {
		case types.BoolType:
			var yes *bool
			_ = json.Unmarshal(c.Before, &yes) // stays null on an error
			rs.Diagnostics.Append(rs.State.SetAttribute(ctx, path.Root(name), yes)...)
		case types.Int64Type:
			var n *int64
			_ = json.Unmarshal(c.Before, &n) // as above
			rs.Diagnostics.Append(rs.State.SetAttribute(ctx, path.Root(name), n)...)
		case types.StringType:
			var text *string
			if json.Unmarshal(c.Before, &text) != nil { // a reference
				shown := keyIn(c.Before)
				text = &shown
			}
			rs.Diagnostics.Append(rs.State.SetAttribute(ctx, path.Root(name), text)...)
		default:
			var list []string
			if json.Unmarshal(c.Before, &list) == nil {
				rs.Diagnostics.Append(rs.State.SetAttribute(ctx, path.Root(name), list)...)
			}
		}
	}
}

// keyIn returns the key in an inlined reference.
func keyIn(raw json.RawMessage) string {
	var one map[string]any
	if json.Unmarshal(raw, &one) != nil {
		return ""
	}
	for _, name := range []string{"absoluteName", "address", "range", "code", "name"} {
		if text, ok := one[name].(string); ok {
			return text
		}
	}
	return ""
}

// Update changes the attributes that differ.
func (k *kind) Update(ctx context.Context, rq resource.UpdateRequest, rs *resource.UpdateResponse) {
	id := idOf(ctx, rq.State, &rs.Diagnostics)
	members, err := k.wanted(rq.Plan.Raw)
	if err != nil || rs.Diagnostics.HasError() {
		rs.Diagnostics.Append(diag.NewErrorDiagnostic("Reading the plan", fmt.Sprint(err)))
		return
	}
	before, err := k.wanted(rq.State.Raw)
	if err != nil {
		rs.Diagnostics.AddError("Reading the state", err.Error())
		return
	}
	for name := range before { // attributes that were removed from the configuration
		if _, said := members[name]; !said {
			members[name] = nil
		}
	}
	delete(members, "in")
	delete(members, k.placed())
	members["id"] = id
	if _, err := k.apply(ctx, members, "UPDATE", false); err != nil {
		k.refused("Changing a "+k.t.Name, err, &rs.Diagnostics)
		return
	}
	rs.State.Raw = rq.Plan.Raw
	k.complete(ctx, id, &rs.State, &rs.Diagnostics)
}

// Delete deletes the resource and everything below it.
func (k *kind) Delete(ctx context.Context, rq resource.DeleteRequest, rs *resource.DeleteResponse) {
	id := idOf(ctx, rq.State, &rs.Diagnostics)
	if rs.Diagnostics.HasError() {
		return
	}
	err := k.manager.Delete(ctx, fmt.Sprint(k.api.CollectionOf(k.t).Path(), "/", id))
	var e *client.Error
	if err != nil && !(errors.As(err, &e) && e.Status == http.StatusNotFound) {
		k.refused("Deleting a "+k.t.Name, err, &rs.Diagnostics)
	}
}

// ImportState imports a resource by its ID. The next read compares it with the configuration.
func (k *kind) ImportState(ctx context.Context, rq resource.ImportStateRequest, rs *resource.ImportStateResponse) {
	resource.ImportStatePassthroughID(ctx, path.Root("id"), rq, rs)
}
