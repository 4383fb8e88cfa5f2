package discovery

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

//go:embed migrations/*/*_observations.sql
var observationMigrations embed.FS

// observationRows is the table of observations. It has the columns of resources.
const observationRows store.Source = "observation"

// KeepObservations is how long an address that is not seen any more is listed.
const KeepObservations = 365 * 24 * time.Hour

// registerObservations declares the collection of observations. The runs of policies write them.
func registerObservations(r *resource.Registry) {
	r.Extension(newObservationExtension())
	r.Collection(resource.Collection{Name: "observations", From: observationRows, Guard: resource.Along, Hidden: true, Numerous: true,
		Unpublished: true}, &Observation{})
	r.Computed(resource.ComputedSub{Below: "addresses", Name: "observations", Items: []string{"observations"}, Where: atAddress})
	for _, above := range []string{"blocks", "networks"} {
		r.Computed(resource.ComputedSub{Below: above, Name: "observations", Items: []string{"observations"}, Where: inSpan})
	}
}

// Observation is the last observation of an address in the network. It has no history. Portolan extension.
type Observation struct {
	schema.Head `head:"readOnly" post:"no"`
	// Configuration is the configuration that contains the address.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// Network is the network that contains the address; the configuration if no network does.
	Network schema.Ref `api:"network,readOnly" column:"parent" ref:"IPv4Network|IPv6Network|Configuration"`
	// Policy is the policy whose run saw the address last.
	Policy schema.Ref `api:"policy,readOnly" ref:"IPv4ReconciliationPolicy|IPv6ReconciliationPolicy"`
	// Address is the address.
	Address netip.Addr `api:"address,readOnly,span"`
	// MACAddress is the hardware address in the table of a router.
	MACAddress string `api:"macAddress,readOnly,hardware,index"`
	// HostName is the name in the PTR record of the address.
	HostName string `api:"hostName,readOnly,index"`
	// Methods are the methods that saw the address: PING, or NEIGHBOR (ARP and IPv6 neighbours).
	Methods []string `api:"methods,readOnly"`
	// Router and RouterPort are the router and its interface that know the address.
	Router     string `api:"router,readOnly"`
	RouterPort string `api:"routerPort,readOnly"`
	// Switch and SwitchPort are the switch and its port that learned the hardware address, and VLAN is the number of the VLAN.
	Switch     string `api:"switch,readOnly,index"`
	SwitchPort string `api:"switchPort,readOnly"`
	VLAN       *int64 `api:"vlan,readOnly"`
	// FirstSeenDateTime and LastSeenDateTime are the times of the first and of the last observation. The first time starts again when
	// another hardware address has the address.
	FirstSeenDateTime time.Time `api:"firstSeenDateTime,readOnly"`
	LastSeenDateTime  time.Time `api:"lastSeenDateTime,readOnly,index"`
}

// Span returns the address as first and last address.
func (x *Observation) Span() (low, high netip.Addr) { return x.Address, x.Address }

// The columns of the table that conditions use.
var (
	lowColumn           = store.Field{Kind: store.ColumnSpan, Path: []string{"low"}}
	configurationColumn = store.Field{Kind: store.ColumnInt, Path: []string{"configuration"}}
)

// inSpan returns the condition for the observations in a block or network.
func inSpan(_ *store.Tx, _ *resource.API, above *store.Resource) (store.Expr, error) {
	return store.All{store.Compare{Field: configurationColumn, Op: "eq", Value: above.Configuration},
		store.Compare{Field: lowColumn, Op: "ge", Value: above.Low}, store.Compare{Field: lowColumn, Op: "le", Value: above.High}}, nil
}

// atAddress returns the condition for the observation of an address.
func atAddress(_ *store.Tx, _ *resource.API, above *store.Resource) (store.Expr, error) {
	return store.All{store.Compare{Field: configurationColumn, Op: "eq", Value: above.Configuration},
		store.Compare{Field: lowColumn, Op: "eq", Value: above.Low}}, nil
}

// Observations reads the observations of the extension, for packages that do not import this one.
type Observations struct{}

// newObservationExtension returns the extension that stores observations. They are not resources: they have no history and no change feed.
func newObservationExtension() *store.Extension {
	return &store.Extension{Name: "observations", State: &Observations{}, Migrations: observationMigrations,
		Follow: func(tx *store.Tx) store.Follower { return &observationFollower{tx: tx} },
		Tables: []store.Table{{Name: string(observationRows), Columns: []string{"id", "collection", "type", "name", "parent", "configuration",
			"low", "high", "key", "version", "refs", "body"}, Key: 1}},
		Verify: func(tx *store.Tx, fault func(format string, args ...any)) error {
			return tx.ReportFaults(fault, "observations belong to resource %d, which does not exist%s",
				"SELECT DISTINCT o.parent, '' FROM observation o LEFT JOIN resource r ON r.id = o.parent WHERE r.id IS NULL")
		}}
}

// observationFollower moves observations to the networks that contain them when networks are created, changed or deleted.
type observationFollower struct {
	tx *store.Tx
	// spans are the spans of changed networks, before and after the change. deleted are deleted configurations.
	spans   []store.Resource
	deleted []int64
}

// Changed records changed networks and deleted configurations.
func (f *observationFollower) Changed(before, after *store.Resource) error {
	switch one := cmp.Or(before, after); {
	case one.Collection == "configurations" && after == nil:
		f.deleted = append(f.deleted, one.ID)
	case one.Collection != "networks":
	case before == nil || after == nil || !bytes.Equal(before.Low, after.Low) || !bytes.Equal(before.High, after.High):
		for _, r := range []*store.Resource{before, after} {
			if r != nil {
				f.spans = append(f.spans, store.Resource{Configuration: r.Configuration, Low: r.Low, High: r.High})
			}
		}
	}
	return nil
}

// BeforeCommit gives the observations in changed networks their new parents.
func (f *observationFollower) BeforeCommit() error {
	const contained = " WHERE configuration = ? AND low >= ? AND low <= ?"
	for _, s := range f.spans {
		if some, err := f.tx.Exists(store.Query{From: observationRows, Where: store.All{
			store.Compare{Field: configurationColumn, Op: "eq", Value: s.Configuration},
			store.Compare{Field: lowColumn, Op: "ge", Value: s.Low}, store.Compare{Field: lowColumn, Op: "le", Value: s.High}}}); err != nil {
			return err
		} else if !some {
			continue
		}
		if err := f.tx.Write("UPDATE observation SET parent = configuration"+contained, s.Configuration, s.Low, s.High); err != nil {
			return err
		}
		var now []*store.Resource
		if err := f.tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("networks"),
			store.Compare{Field: configurationColumn, Op: "eq", Value: s.Configuration},
			store.Compare{Field: lowColumn, Op: "le", Value: s.High},
			store.Compare{Field: store.Field{Kind: store.ColumnSpan, Path: []string{"high"}}, Op: "ge", Value: s.Low}}},
			func(r *store.Resource) error {
				now = append(now, r.Clone())
				return nil
			}); err != nil {
			return err
		}
		for _, n := range now {
			if err := f.tx.Write("UPDATE observation SET parent = ?"+contained, n.ID, s.Configuration, n.Low, n.High); err != nil {
				return err
			}
		}
	}
	for _, id := range f.deleted {
		if err := f.tx.Write("DELETE FROM observation WHERE configuration = ?", id); err != nil {
			return err
		}
	}
	return nil
}

// observationsAtOnce is the number of observations that one transaction writes or deletes.
const observationsAtOnce = 1000

// writeObservation creates or updates the observation of an address. Values that this run did not learn are kept, unless another hardware
// address has the address now.
func writeObservation(tx *store.Tx, api *resource.API, configuration, policy int64, x *Observation) error {
	parent := configuration
	network, err := tx.Holding(configuration, "networks", x.Address)
	if err == nil {
		parent = network.ID
	} else if !store.IsNotFound(err) {
		return err
	}
	low := store.AddrKey(x.Address)
	var id int64
	var text string
	err = tx.QueryRow("SELECT id, body FROM observation WHERE configuration = ? AND low = ?", configuration, low).Scan(&id, &text)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	there := err == nil
	x.Type = "Observation"
	if x.LastSeenDateTime.IsZero() {
		x.LastSeenDateTime = tx.Now()
	}
	if x.FirstSeenDateTime.IsZero() {
		x.FirstSeenDateTime = x.LastSeenDateTime
	}
	if there {
		if err := x.addFormer(text); err != nil {
			return fmt.Errorf("observation %d: %w", id, err)
		}
	}
	t := api.TypeNamed(x.Type)
	row, err := t.Row(x, nil)
	if err != nil {
		return err
	}
	whole, err := t.AppendWhole(nil, row.Body)
	if err != nil {
		return err
	}
	body, refs := string(whole), "policy:"+strconv.FormatInt(policy, 10)
	if there {
		return tx.Write("UPDATE observation SET body = ?, refs = ?, parent = ?, version = version + 1 WHERE id = ?", body, refs, parent, id)
	}
	if id, err = tx.NewID(); err != nil {
		return err
	}
	return tx.Write("INSERT INTO observation (id, parent, configuration, low, high, version, refs, body) VALUES (?, ?, ?, ?, ?, 1, ?, ?)", id,
		parent, configuration, low, low, refs, body)
}

// addFormer adds the values of the former observation that this one lacks.
func (x *Observation) addFormer(text string) error {
	var old struct {
		MACAddress, HostName, Router, RouterPort, Switch, SwitchPort string
		VLAN                                                         *int64
		FirstSeenDateTime                                            time.Time
	}
	if err := json.Unmarshal([]byte(text), &old); err != nil {
		return err
	}
	if x.MACAddress != "" && old.MACAddress != "" && x.MACAddress != old.MACAddress {
		return nil
	}
	x.FirstSeenDateTime = old.FirstSeenDateTime
	if x.MACAddress == "" {
		x.MACAddress, x.Router, x.RouterPort = old.MACAddress, old.Router, old.RouterPort
	}
	if x.Switch == "" {
		x.Switch, x.SwitchPort, x.VLAN = old.Switch, old.SwitchPort, old.VLAN
	}
	if x.HostName == "" {
		x.HostName = old.HostName
	}
	return nil
}

// PruneObservations deletes the observations of addresses that were last seen before a time, and returns their number.
func PruneObservations(ctx context.Context, update store.Updater, before time.Time) (pruned int, err error) {
	for {
		var n int64
		if err := update(ctx, store.Author{}, func(tx *store.Tx) (err error) {
			n, err = tx.Exec("DELETE FROM observation WHERE id IN (SELECT id FROM observation WHERE "+
				"json_extract(body, '$.\"lastSeenDateTime\"') < ? LIMIT ?)", schema.FormatTime(before), observationsAtOnce)
			return err
		}); err != nil {
			return pruned, err
		}
		if pruned += int(n); n < observationsAtOnce {
			return pruned, nil
		}
	}
}

// addressMembers are the members of addresses that show the observation.
type addressMembers struct {
	LastSeenDateTime                       json.RawMessage
	Router, RouterPort, Switch, SwitchPort string
	VLAN                                   *int64
}

// Complete adds the values of observations to the bodies of addresses: when an address was seen last, and where.
func (*Observations) Complete(tx *store.Tx, rows []*store.Resource) error {
	var some bool
	if err := tx.QueryRow("SELECT EXISTS (SELECT 1 FROM observation)").Scan(&some); err != nil || !some {
		return err
	}
	type place struct {
		configuration int64
		low           string
	}
	at, keys := map[place]*store.Resource{}, map[int64][]any{}
	var body store.Object
	for _, r := range rows {
		if err := body.Read(r.Body); err != nil {
			return err
		}
		a, err := netip.ParseAddr(strings.Trim(string(body.Get("address")), `"`))
		if err != nil {
			return fmt.Errorf("address %d: %w", r.ID, err)
		}
		key := store.AddrKey(a)
		at[place{r.Configuration, string(key)}] = r
		keys[r.Configuration] = append(keys[r.Configuration], key)
	}
	for configuration, all := range keys {
		for part := range slices.Chunk(all, keysAtOnce) {
			if err := tx.Each(func(scan func(...any) error) error {
				var low []byte
				var text string
				if err := scan(&low, &text); err != nil {
					return err
				}
				r := at[place{configuration, string(low)}]
				if err := body.Read(r.Body); err != nil {
					return err
				}
				if err := showObservation(&body, r.Type, text); err != nil {
					return err
				}
				r.Body = body.Text()
				return nil
			}, "SELECT low, body FROM observation WHERE configuration = ? AND low IN (?"+strings.Repeat(",?", len(part)-1)+")",
				append([]any{configuration}, part...)...); err != nil {
				return err
			}
		}
	}
	return nil
}

// keysAtOnce is the number of addresses that one statement looks up.
const keysAtOnce = 200

// showObservation sets the members of an address that show its observation.
func showObservation(body *store.Object, typeName, text string) error {
	var x addressMembers
	if err := json.Unmarshal([]byte(text), &x); err != nil {
		return err
	}
	body.Set("lastSeenDateTime", x.LastSeenDateTime)
	if typeName != "IPv4Address" {
		return nil
	}
	vlan := ""
	if x.VLAN != nil {
		vlan = strconv.FormatInt(*x.VLAN, 10)
	}
	for name, value := range map[string]string{"routerPortInfo": strings.TrimSpace(x.Router + " " + x.RouterPort),
		"switchPortInfo": strings.TrimSpace(x.Switch + " " + x.SwitchPort), "vlanInfo": vlan} {
		if value != "" {
			body.Set(name, schema.AppendString(nil, value))
		}
	}
	return nil
}
