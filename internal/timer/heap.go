package timer

// arity is the number of children in the heap: with four, the path from a leaf is half as long as with two, and the children of an item are neighbours.
const arity = 4

func (q *Queue[K]) push(i item[K]) {
	q.heap = append(q.heap, i)
	at := len(q.heap) - 1
	for at > 0 {
		parent := (at - 1) / arity
		if !i.before(&q.heap[parent]) {
			break
		}
		q.heap[at] = q.heap[parent]
		at = parent
	}
	q.heap[at] = i
}

// pop drops the first item.
func (q *Queue[K]) pop() {
	n := len(q.heap) - 1
	last := q.heap[n]
	q.heap[n] = item[K]{} // its key must not live on
	q.heap = q.heap[:n]
	if n > 0 {
		q.sink(0, last)
	}
	if cap(q.heap) > minRoom && n < cap(q.heap)/4 {
		q.heap = append(make([]item[K], 0, cap(q.heap)/2), q.heap...)
	}
}

// minRoom is a capacity of the heap that is not worth giving back.
const minRoom = 1024

// sink puts i at a free place or below it.
func (q *Queue[K]) sink(at int, i item[K]) {
	for {
		first := at*arity + 1
		if first >= len(q.heap) {
			break
		}
		least := first
		for c := first + 1; c < min(first+arity, len(q.heap)); c++ {
			if q.heap[c].before(&q.heap[least]) {
				least = c
			}
		}
		if !q.heap[least].before(&i) {
			break
		}
		q.heap[at] = q.heap[least]
		at = least
	}
	q.heap[at] = i
}

func (q *Queue[K]) heapify() {
	if len(q.heap) < 2 {
		return
	}
	for at := (len(q.heap) - 2) / arity; at >= 0; at-- {
		q.sink(at, q.heap[at])
	}
}
