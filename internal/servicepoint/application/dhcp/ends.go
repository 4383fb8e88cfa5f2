package dhcp

import "container/heap"

// ends orders slots by the end of their leases. It implements heap.Interface.
type ends struct {
	slots *slots
	all   []slotID
}

func (q *ends) add(id slotID) { heap.Push(q, id) }

func (q *ends) remove(id slotID) {
	if place := q.slots.slot(id).place; place != 0 {
		heap.Remove(q, int(place)-1)
	}
}

// first returns the slot with the earliest end; 0 if there is none.
func (q *ends) first() slotID {
	if len(q.all) == 0 {
		return 0
	}
	return q.all[0]
}

// Len implements heap.Interface.
func (q *ends) Len() int { return len(q.all) }

// Less implements heap.Interface.
func (q *ends) Less(i, j int) bool {
	return q.slots.slot(q.all[i]).expires < q.slots.slot(q.all[j]).expires
}

// Swap implements heap.Interface.
func (q *ends) Swap(i, j int) {
	q.all[i], q.all[j] = q.all[j], q.all[i]
	q.slots.slot(q.all[i]).place, q.slots.slot(q.all[j]).place = uint32(i+1), uint32(j+1)
}

// Push implements heap.Interface.
func (q *ends) Push(x any) {
	id := x.(slotID)
	q.all = append(q.all, id)
	q.slots.slot(id).place = uint32(len(q.all))
}

// Pop implements heap.Interface.
func (q *ends) Pop() any {
	last := len(q.all) - 1
	id := q.all[last]
	q.slots.slot(id).place = 0
	q.all = q.all[:last]
	return id
}
