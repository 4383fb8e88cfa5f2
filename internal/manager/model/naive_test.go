package model_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"portolan/internal/testkit/apitest"
)

// A naive model of the address tree: what the rules say, by looking at everything. The manager has to
// answer as it does, and to have the same tree in the end.

// plot is a block or a network of the model.
type plot struct {
	id        string
	network   bool
	low, high uint32
	above     *plot
	below     []*plot
	used      map[uint32]bool
	gateway   uint32
}

func (p *plot) hosts() (low, high uint32) {
	if !p.network || p.high-p.low < 2 {
		return p.low, p.high
	}
	return p.low + 1, p.high - 1
}

func (p *plot) contains(low, high uint32) bool { return p.low <= low && high <= p.high }

func (p *plot) meets(low, high uint32) bool { return p.low <= high && low <= p.high }

func at4(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// text is the range as the API writes it.
func (p *plot) text() string {
	size := p.high - p.low + 1
	if size&(size-1) == 0 && p.low%size == 0 {
		bits := 32
		for s := size; s > 1; s >>= 1 {
			bits--
		}
		return fmt.Sprintf("%s/%d", at4(p.low), bits)
	}
	return at4(p.low).String() + "-" + at4(p.high).String()
}

// naive is the model of a configuration: the root has no bounds.
type naive struct {
	m             *manager
	rt            *rapid.T
	configuration string
	root          *plot
}

// all gives the blocks, or the networks.
func (n *naive) all(networks bool) (list []*plot) {
	var walk func(p *plot)
	walk = func(p *plot) {
		for _, q := range p.below {
			if q.network == networks {
				list = append(list, q)
			}
			walk(q)
		}
	}
	walk(n.root)
	return list
}

// tree writes the model as manager.tree writes what it sees.
func (n *naive) tree() string {
	text := ""
	for _, p := range slices.Concat(n.all(false), n.all(true)) {
		if p.above != n.root {
			text += p.above.text()
		}
		text += ">" + p.text()
		if p.gateway != 0 {
			text += "~" + at4(p.gateway).String()
		}
		text += " "
		for _, a := range slices.Sorted(maps.Keys(p.used)) {
			text += p.text() + ">" + at4(a).String()
			if a == p.gateway {
				text += "!G"
			}
			text += " "
		}
	}
	return apitest.Sorted(text)
}

// find gives the id of a network by its range, which no other one has.
func (n *naive) find(p *plot) string {
	return n.m.Want(200, "GET", "/api/v2/networks?filter=range:'"+p.text()+"'%20and%20configuration.id:"+n.configuration, "").Text("data.0.id")
}

// try sends a change and fails where it is not answered as the model says.
func (n *naive) try(ok bool, method, path, body string, headers ...string) apitest.Reply {
	n.m.T.Helper()
	r := n.m.Do(method, "/api/v2"+path, body, headers...)
	if got := r.StatusCode < 300; got != ok || r.StatusCode >= 500 {
		n.rt.Fatalf("%s %s %s answers %d %s\nthe model says %v of\n%s", method, path, body, r.StatusCode, r.Body, ok, n.tree())
	}
	return r
}

func (n *naive) pick(list []*plot) *plot {
	if len(list) == 0 {
		return nil
	}
	return list[rapid.IntRange(0, len(list)-1).Draw(n.rt, "which")]
}

func (n *naive) number(least, most int) uint32 {
	return uint32(rapid.IntRange(least, most).Draw(n.rt, "number")) //nolint:gosec // never below nought
}

const base4 = 10 << 24 // 10.0.0.0

// under returns the possible parents: the root and the blocks.
func (n *naive) under() *plot { return n.pick(append(n.all(false), n.root)) }

func put(p *plot, q *plot) {
	q.above = p
	p.below = append(p.below, q)
}

func (n *naive) block() {
	above := n.under()
	low := base4 + 16*n.number(0, 60)
	high := low + 16*n.number(1, 40) - 1
	ok := above == n.root || above.contains(low, high)
	var inside, outside []*plot
	for _, q := range above.below {
		switch {
		case !q.meets(low, high):
			outside = append(outside, q)
		case q.low < low || q.high > high || !q.network && q.low == low && q.high == high:
			ok = false
		default:
			inside = append(inside, q)
		}
	}
	p := &plot{low: low, high: high}
	path := "/blocks/" + above.id
	if above == n.root {
		path = "/configurations/" + n.configuration
	}
	r := n.try(ok, "POST", path+"/blocks", `{"type":"IPv4Block","range":"`+p.text()+`"}`)
	if ok {
		p.id = r.Text("id")
		above.below = outside
		put(above, p)
		for _, q := range inside {
			put(p, q)
		}
	}
}

// network makes one at a place, or where there is room for it first.
func (n *naive) network() {
	above := n.pick(n.all(false))
	if above == nil {
		return
	}
	size := uint32(1) << n.number(2, 6)
	free := func(low uint32) bool {
		return above.contains(low, low+size-1) && !slices.ContainsFunc(above.below, func(q *plot) bool { return q.meets(low, low+size-1) })
	}
	low, body := base4+size*n.number(0, int(1024/size)), ""
	ok := free(low)
	if rapid.Bool().Draw(n.rt, "by size") {
		ok = false
		for low = (above.low + size - 1) / size * size; low+size-1 <= above.high; low += size {
			if free(low) {
				ok = true
				break
			}
		}
		body = (&plot{low: 0, high: size - 1}).text()
		body = body[strings.Index(body, "/"):]
	}
	p := &plot{network: true, low: low, high: low + size - 1, used: map[uint32]bool{}}
	if body == "" {
		body = p.text()
	}
	r := n.try(ok, "POST", "/blocks/"+above.id+"/networks", `{"type":"IPv4Network","range":"`+body+`"}`)
	if !ok {
		return
	}
	if r.Text("range") != p.text() {
		n.rt.Fatalf("the network is %s, the model says %s in\n%s", r.Text("range"), p.text(), n.tree())
	}
	p.id = r.Text("id")
	p.gateway, _ = p.hosts()
	p.used[p.gateway] = true
	put(above, p)
}

// address assigns one: a given one, or the next.
func (n *naive) address() {
	p := n.pick(n.all(true))
	if p == nil {
		return
	}
	first, last := p.hosts()
	a, member := p.low+n.number(0, 70), ""
	ok := first <= a && a <= last && !p.used[a]
	if rapid.Bool().Draw(n.rt, "next") {
		for a = first; a <= last && p.used[a]; a++ {
		}
		ok = a <= last
	} else {
		member = `,"address":"` + at4(a).String() + `"`
	}
	r := n.try(ok, "POST", "/networks/"+p.id+"/addresses", `{"type":"IPv4Address","state":"STATIC"`+member+`}`)
	if !ok {
		return
	}
	if r.Text("address") != at4(a).String() {
		n.rt.Fatalf("the address is %s, the model says %s in\n%s", r.Text("address"), at4(a), n.tree())
	}
	p.used[a] = true
}

func (n *naive) release() {
	p := n.pick(n.all(true))
	if p == nil || len(p.used) == 0 {
		return
	}
	list := slices.Sorted(maps.Keys(p.used))
	a := list[rapid.IntRange(0, len(list)-1).Draw(n.rt, "which")]
	id := n.m.Want(200, "GET", "/api/v2/networks/"+p.id+"/addresses?filter=address:'"+at4(a).String()+"'", "").Text("data.0.id")
	n.try(true, "DELETE", "/addresses/"+id, "")
	delete(p.used, a)
	if p.gateway == a {
		p.gateway = 0
	}
}

func (n *naive) resize() {
	p := n.pick(append(n.all(false), n.all(true)...))
	if p == nil {
		return
	}
	q := &plot{network: p.network, low: base4 + 16*n.number(0, 60)}
	q.high = q.low + 16*n.number(1, 40) - 1
	if p.network {
		size := uint32(1) << n.number(2, 6)
		q.low = p.low / size * size
		q.high = q.low + size - 1
	}
	ok := p.above == n.root || p.above.contains(q.low, q.high)
	for _, s := range p.above.below {
		ok = ok && (s == p || !s.meets(q.low, q.high))
	}
	for _, s := range p.below {
		ok = ok && q.contains(s.low, s.high)
	}
	first, last := q.hosts()
	for a := range p.used {
		ok = ok && first <= a && a <= last
	}
	list := "/blocks/"
	if p.network {
		list = "/networks/"
	}
	n.try(ok, "PATCH", list+p.id, `{"range":"`+q.text()+`"}`, apitest.MergePatch)
	if ok {
		p.low, p.high = q.low, q.high
	}
}

// split divides a network in two. The half that contains the gateway keeps it.
func (n *naive) split() {
	p := n.pick(n.all(true))
	if p == nil {
		return
	}
	half := (p.high - p.low + 1) / 2
	parts := []*plot{{network: true, low: p.low, high: p.low + half - 1, used: map[uint32]bool{}},
		{network: true, low: p.low + half, high: p.high, used: map[uint32]bool{}}}
	ok := half > 0
	for a := range p.used {
		held := false
		for _, part := range parts {
			if first, last := part.hosts(); first <= a && a <= last {
				part.used[a], held = true, true
				if a == p.gateway {
					part.gateway = a
				}
			}
		}
		ok = ok && held
	}
	n.try(ok, "POST", "/blocks/"+p.above.id+"/splits", `{"type":"IPv4NetworkSplit","network":{"id":`+p.id+`},"networkCount":2}`)
	if ok {
		above := p.above
		parts[0].id, parts[1].id = p.id, n.find(parts[1])
		above.below = slices.DeleteFunc(above.below, func(q *plot) bool { return q == p })
		put(above, parts[0])
		put(above, parts[1])
	}
}

func (n *naive) remove() {
	p := n.pick(append(n.all(false), n.all(true)...))
	if p == nil {
		return
	}
	list := "/blocks/"
	if p.network {
		list = "/networks/"
	}
	n.try(true, "DELETE", list+p.id, "")
	p.above.below = slices.DeleteFunc(p.above.below, func(q *plot) bool { return q == p })
}

// TestAddressTreeAgainstNaiveModel compares the address tree and its answers with a naive model, after random changes.
func TestAddressTreeAgainstNaiveModel(t *testing.T) {
	m := startConcurrent(t)
	round, steps := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		n := &naive{m: m, rt: rt, configuration: m.ID("/api/v2/configurations", fmt.Sprintf(`{"name":"naive %d"}`, round)), root: &plot{}}
		for range rapid.IntRange(10, 60).Draw(rt, "steps") {
			steps++
			switch rapid.IntRange(0, 15).Draw(rt, "op") {
			case 0, 1, 2:
				n.block()
			case 3, 4, 5, 6:
				n.network()
			case 7, 8, 9, 10:
				n.address()
			case 11, 12:
				n.resize()
			case 13:
				n.release()
			case 14:
				n.split()
			case 15:
				if rapid.IntRange(0, 2).Draw(rt, "really") == 0 {
					n.remove()
				}
			}
		}
		if got, want := m.Tree(n.configuration), n.tree(); got != want {
			rt.Fatalf("the tree is\n%s\nthe model says\n%s", got, want)
		}
		m.Verify()
	})
	t.Logf("%d changes in %d rounds", steps, round)
}

// domain is a zone of the model, or the view, with its records.
type domain struct {
	label   string
	above   *domain
	below   []*domain
	records []*entry
}

type entry struct{ kind, label, text, id string }

func (d *domain) absolute() string {
	if d.above == nil {
		return ""
	}
	return join(d.label, d.above.absolute())
}

func join(label, zone string) string {
	if zone == "" || label == "" {
		return label + zone
	}
	return label + "." + zone
}

// names is the model of a view.
type names struct {
	*naive
	view string
	top  *domain
	host string // the target of the aliases
}

func (n *names) zones() (list []*domain) {
	var walk func(d *domain)
	walk = func(d *domain) {
		for _, e := range d.below {
			list = append(list, e)
			walk(e)
		}
	}
	walk(n.top)
	return list
}

func (n *names) named(absolute string) *domain {
	for _, d := range n.zones() {
		if d.absolute() == absolute {
			return d
		}
	}
	return nil
}

func (n *names) zoneID(d *domain) string {
	return n.m.Want(200, "GET", "/api/v2/zones?filter=absoluteName:'"+d.absolute()+"'%20and%20view.id:"+n.view, "").Text("data.0.id")
}

func (n *names) label() string { return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(n.rt, "label") }

func (n *names) some(list []*domain) *domain {
	return list[rapid.IntRange(0, len(list)-1).Draw(n.rt, "which")]
}

func (n *names) zone() {
	if rapid.Bool().Draw(n.rt, "by absolute name") {
		absolute := n.label() + "." + n.label() + "." + n.label()
		ok := n.named(absolute) == nil
		n.try(ok, "POST", "/views/"+n.view+"/zones", `{"type":"Zone","absoluteName":"`+absolute+`"}`)
		if !ok {
			return
		}
		labels := strings.Split(absolute, ".")
		at := n.top
		for i := len(labels) - 1; i >= 0; i-- {
			next := n.named(strings.Join(labels[i:], "."))
			if next == nil {
				next = &domain{label: labels[i], above: at}
				at.below = append(at.below, next)
			}
			at = next
		}
		return
	}
	above := n.some(append(n.zones(), n.top))
	d := &domain{label: n.label(), above: above}
	ok := n.named(d.absolute()) == nil
	path := "/views/" + n.view
	if above != n.top {
		path = "/zones/" + n.zoneID(above)
	}
	n.try(ok, "POST", path+"/zones", `{"type":"Zone","name":"`+d.label+`"}`)
	if ok {
		above.below = append(above.below, d)
	}
}

// beside gives the records of a name, in whichever zone of the view they lie.
func (n *names) beside(absolute string) (list []*entry) {
	for _, d := range n.zones() {
		for _, e := range d.records {
			if join(e.label, d.absolute()) == absolute {
				list = append(list, e)
			}
		}
	}
	return list
}

func (n *names) record() {
	zones := n.zones()
	if len(zones) == 0 {
		return
	}
	d := n.some(zones)
	e := &entry{kind: "TXTRecord", label: rapid.SampledFrom([]string{"a", "b", "x.a", ""}).Draw(n.rt, "name"), text: n.label()}
	given := e.label
	if e.label == d.absolute() { // the zone's own name is its apex
		e.label = ""
	}
	body := `{"type":"TXTRecord","name":"` + given + `","text":"` + e.text + `"}`
	there := n.beside(join(e.label, d.absolute()))
	ok := !slices.ContainsFunc(there, func(o *entry) bool { return o.kind == "AliasRecord" || o.text == e.text })
	if rapid.Bool().Draw(n.rt, "alias") {
		e.kind, e.text = "AliasRecord", ""
		body = `{"type":"AliasRecord","name":"` + given + `","linkedRecord":{"id":` + n.host + `}}`
		ok = e.label != "" && len(there) == 0
	}
	for name := join(e.label, d.absolute()); name != d.absolute(); _, name, _ = strings.Cut(name, ".") { // it belongs to a zone below
		ok = ok && n.named(name) == nil
	}
	if given == "" {
		body = strings.Replace(body, `"name":""`, `"name":null`, 1)
	}
	r := n.try(ok, "POST", "/zones/"+n.zoneID(d)+"/resourceRecords", body)
	if ok {
		e.id = r.Text("id")
		d.records = append(d.records, e)
	}
}

func (n *names) rename() {
	zones := n.zones()
	if len(zones) == 0 {
		return
	}
	d, label := n.some(zones), n.label()
	other := n.named(join(label, d.above.absolute()))
	ok := other == nil || other == d
	n.try(ok, "PATCH", "/zones/"+n.zoneID(d), `{"name":"`+label+`"}`, apitest.MergePatch)
	if ok {
		d.label = label
	}
}

func (n *names) remove() {
	zones := n.zones()
	if len(zones) == 0 {
		return
	}
	d := n.some(zones)
	if len(d.records) > 0 {
		n.try(true, "DELETE", "/resourceRecords/"+d.records[0].id, "")
		d.records = d.records[1:]
		return
	}
	n.try(true, "DELETE", "/zones/"+n.zoneID(d), "")
	d.above.below = slices.DeleteFunc(d.above.below, func(e *domain) bool { return e == d })
}

// compare lists all names of the view.
func (n *names) compare() {
	var want, got []string
	for _, d := range n.zones() {
		want = append(want, "Zone "+d.absolute())
		for _, e := range d.records {
			want = append(want, e.kind+" "+join(e.label, d.absolute()))
		}
	}
	for _, list := range []string{"zones?limit=1000&filter=type:'Zone'%20and%20view.id:" + n.view,
		"resourceRecords?limit=1000&filter=type:ne('ExternalHostRecord')%20and%20configuration.id:" + n.configuration} {
		r := n.m.Want(200, "GET", "/api/v2/"+list, "")
		all, _ := r.Get("data").([]any)
		for i := range all {
			got = append(got, r.Text(fmt.Sprintf("data.%d.type", i))+" "+r.Text(fmt.Sprintf("data.%d.absoluteName", i)))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		n.rt.Fatalf("the names are\n%v\nthe model says\n%v", got, want)
	}
}

// TestZoneTreeAgainstNaiveModel compares the zones and records of a view with a naive model, after random changes.
func TestZoneTreeAgainstNaiveModel(t *testing.T) {
	m := startConcurrent(t)
	round, steps := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		n := &names{naive: &naive{m: m, rt: rt, configuration: m.ID("/api/v2/configurations", fmt.Sprintf(`{"name":"names %d"}`, round)),
			root: &plot{}}, top: &domain{}}
		n.view = m.ID("/api/v2/configurations/"+n.configuration+"/views", `{"name":"v"}`)
		hosts := m.Want(200, "GET", "/api/v2/views/"+n.view+"/zones?"+apitest.Filter("type:'ExternalHostsZone'"), "").Text("data.0.id")
		n.host = m.ID("/api/v2/zones/"+hosts+"/resourceRecords", `{"type":"ExternalHostRecord","name":"elsewhere.test"}`)
		for range rapid.IntRange(10, 50).Draw(rt, "steps") {
			steps++
			switch rapid.IntRange(0, 9).Draw(rt, "op") {
			case 0, 1, 2:
				n.zone()
			case 3, 4, 5, 6:
				n.record()
			case 7, 8:
				n.rename()
			case 9:
				n.remove()
			}
		}
		n.compare()
		m.Verify()
	})
	t.Logf("%d changes in %d rounds", steps, round)
}
