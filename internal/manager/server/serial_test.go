package server

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"portolan/internal/testkit/apitest"

	"github.com/anishathalye/porcupine"
)

// Many clients at once get answers that one order, one request behind the other, explains: no answer
// comes from a state that never was. The order is looked for, it is not known.

// slots is the number of places of a shelf: addresses in a network, networks in a block, names in a view.
const slots = 14

// shelf is the state of the model: what is in each place, by its id; 0 where it is free.
type shelf [slots]int64

// want is a request: to take the first free place or a given one, to give one back, or to count.
type want struct {
	shelf int
	op    string // next, take, free, count
	slot  int
	id    int64
}

// got is its answer: the place and id that were taken, whether it was done, or the number.
type got struct {
	ok   bool
	slot int
	id   int64
	n    int
}

var shelfModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := map[int][]porcupine.Operation{}
		for _, o := range history {
			shelf := o.Input.(want).shelf
			parts[shelf] = append(parts[shelf], o)
		}
		var all [][]porcupine.Operation
		for _, part := range parts {
			all = append(all, part)
		}
		return all
	},
	Init: func() any { return shelf{} },
	Step: func(s, in, out any) (bool, any) { return s.(shelf).step(in.(want), out.(got)) },
}

func (s shelf) step(in want, out got) (bool, any) {
	first, used := slots, 0
	for i := slots - 1; i >= 0; i-- {
		if s[i] == 0 {
			first = i
		} else {
			used++
		}
	}
	switch in.op {
	case "next":
		if first == slots {
			return !out.ok, s
		}
		if !out.ok || out.slot != first {
			return false, s
		}
		s[first] = out.id
	case "take":
		if s[in.slot] != 0 {
			return !out.ok, s
		}
		if !out.ok {
			return false, s
		}
		s[in.slot] = out.id
	case "free":
		if s[in.slot] != in.id {
			return !out.ok, s
		}
		if !out.ok {
			return false, s
		}
		s[in.slot] = 0
	case "count":
		return out.n == used, s
	}
	return true, s
}

// keeper does a request for a shelf.
type keeper struct {
	take  func(m *manager, slot int) reply // slot -1: the first that is free
	slot  func(r reply) int
	free  string // the collection
	count func(m *manager) int
}

func TestOneOrderExplainsAllAnswers(t *testing.T) {
	m := startManager(t)
	managers := []*manager{m}
	if os.Getenv(apitest.OnPostgres) != "" { // two managers share the database
		managers = append(managers, startManager(t, func(o *Options) { o.Database = m.options.Database }))
	}
	_, view, _, block, _ := m.Basics()
	keepers := []keeper{}
	for i := range 2 {
		network := m.ID("/api/v2/blocks/"+block+"/networks", fmt.Sprintf(`{"type":"IPv4Network","range":"10.9.%d.0/28"}`, i),
			"x-bcn-no-gateway: true")
		path := "/api/v2/networks/" + network
		keepers = append(keepers, keeper{
			take: func(m *manager, slot int) reply {
				body := `{"type":"IPv4Address","state":"STATIC"}`
				if slot >= 0 {
					body = fmt.Sprintf(`{"type":"IPv4Address","state":"STATIC","address":"10.9.%d.%d"}`, i, slot+1)
				}
				return m.Do("POST", path+"/addresses", body)
			},
			slot: func(r reply) int {
				n, _ := strconv.Atoi(r.Text("address")[strings.LastIndex(r.Text("address"), ".")+1:])
				return n - 1
			},
			free: "addresses",
			count: func(m *manager) int {
				n, _ := strconv.Atoi(m.Do("GET", path, "").Text("usage.STATIC"))
				return n
			},
		})
	}
	// Fourteen networks fill a block of that size.
	inner := m.ID("/api/v2/blocks/"+block+"/blocks", fmt.Sprintf(`{"type":"IPv4Block","range":"10.8.0.0-10.8.%d.255"}`, slots-1))
	keepers = append(keepers, keeper{
		take: func(m *manager, slot int) reply {
			body := `{"type":"IPv4Network","range":"/24"}`
			if slot >= 0 {
				body = fmt.Sprintf(`{"type":"IPv4Network","range":"10.8.%d.0/24"}`, slot)
			}
			return m.Do("POST", "/api/v2/blocks/"+inner+"/networks", body)
		},
		slot: func(r reply) int {
			n, _ := strconv.Atoi(strings.Split(r.Text("range"), ".")[2])
			return n
		},
		free: "networks",
		count: func(m *manager) int {
			n, _ := strconv.Atoi(m.Do("GET", "/api/v2/blocks/"+inner+"/networks?limit=1&total=true", "").Text("totalCount"))
			return n
		},
	}, keeper{
		take: func(m *manager, slot int) reply {
			return m.Do("POST", "/api/v2/views/"+view+"/zones", fmt.Sprintf(`{"type":"Zone","name":"z%d"}`, max(slot, 0)))
		},
		slot: func(r reply) int {
			n, _ := strconv.Atoi(strings.TrimPrefix(r.Text("name"), "z"))
			return n
		},
		free: "zones",
		count: func(m *manager) int {
			n, _ := strconv.Atoi(m.Do("GET", "/api/v2/views/"+view+"/zones?limit=1&total=true&filter=name:startsWith('z')", "").Text("totalCount"))
			return n
		},
	})
	history := write(t, managers, keepers)
	result, info := porcupine.CheckOperationsVerbose(shelfModel, history, time.Minute)
	switch result {
	case porcupine.Illegal:
		t.Errorf("no order explains the answers: %+v", info)
	case porcupine.Unknown:
		t.Log("no order was found within a minute, nor that there is none")
	}
	done := 0
	for _, o := range history {
		if o.Output.(got).ok {
			done++
		}
	}
	t.Logf("%d requests, %d of them changed something", len(history), done)
	m.Verify()
}

// write lets sixteen clients change the shelves, and gives what they asked and were answered.
func write(t *testing.T, managers []*manager, keepers []keeper) (history []porcupine.Operation) {
	var mu sync.Mutex
	taken := map[int][]want{} // places that can be released, by shelf
	began := time.Now()
	var all sync.WaitGroup
	for client := range 16 {
		all.Go(func() {
			m := managers[client%len(managers)]
			random := rand.New(rand.NewPCG(uint64(client), 7)) //nolint:gosec // the same each time
			for range 25 {
				in := want{shelf: random.IntN(len(keepers)), slot: random.IntN(slots)}
				k := keepers[in.shelf]
				switch n := random.IntN(10); {
				case n < 3 && k.free != "zones":
					in.op = "next"
				case n < 6:
					in.op = "take"
				case n < 9:
					in.op = "free"
				default:
					in.op = "count"
				}
				if in.op == "free" {
					mu.Lock()
					if list := taken[in.shelf]; len(list) > 0 {
						in = list[random.IntN(len(list))] // another client may release it at the same time
					}
					mu.Unlock()
					if in.op = "free"; in.id == 0 {
						continue
					}
				}
				call := time.Since(began).Nanoseconds()
				out, r := ask(m, k, in)
				back := time.Since(began).Nanoseconds()
				if r.Response != nil && r.StatusCode >= 500 {
					t.Errorf("%+v answers %d %s", in, r.StatusCode, r.Body)
				}
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: back})
				if out.ok && out.id != 0 {
					taken[in.shelf] = append(taken[in.shelf], want{shelf: in.shelf, slot: out.slot, id: out.id})
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return history
}

func ask(m *manager, k keeper, in want) (out got, r reply) {
	switch in.op {
	case "count":
		return got{n: k.count(m)}, r
	case "free":
		r = m.Do(http.MethodDelete, "/api/v2/"+k.free+"/"+strconv.FormatInt(in.id, 10), "")
		return got{ok: r.StatusCode == http.StatusNoContent}, r
	case "next":
		r = k.take(m, -1)
	default:
		r = k.take(m, in.slot)
	}
	if r.StatusCode != http.StatusCreated {
		return out, r
	}
	id, _ := strconv.ParseInt(r.Text("id"), 10, 64)
	return got{ok: true, slot: k.slot(r), id: id}, r
}
