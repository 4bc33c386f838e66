package checkpoint

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/weirstream/weir/internal/job"
)

// Handles are all pieces of the state.
func (s *OperatorState) Handles() iter.Seq[Handle] {
	return func(yield func(Handle) bool) {
		if s.Items != nil && !yield(s.Items.Handle) || s.Keyed != nil && !yield(s.Keyed.Handle) {
			return
		}
		for i := range s.Lists {
			if !yield(s.Lists[i].Items.Handle) {
				return
			}
		}
	}
}

// Validate checks the items of the list state and that its mode is known.
func (l *List) Validate() error {
	if l.Mode < job.Split || l.Mode > job.BroadcastState {
		return fmt.Errorf("unknown mode %d", l.Mode)
	}
	if err := checkTexts(l.Schema.Name, l.Schema.Kind, l.Schema.KeyType, l.Schema.ValueType); err != nil {
		return err
	}
	return l.Items.Validate()
}

func validateLists(lists []List) error {
	if len(lists) > MaxStates {
		return fmt.Errorf("%d list states, at most %d are possible", len(lists), MaxStates)
	}
	seen := map[string]bool{}
	for i := range lists {
		name := lists[i].Schema.Name
		if seen[name] {
			return fmt.Errorf("list state %q occurs twice", name)
		}
		seen[name] = true
		if err := lists[i].Validate(); err != nil {
			return fmt.Errorf("list state %q: %w", name, err)
		}
	}
	return nil
}

// CheckUnions refuses a checkpoint in which some subtasks of an operator with union state have reached the end of their input and others have not:
// when those have finished, their items would be in no checkpoint any more, and every subtask must get all of them.
func (md *Metadata) CheckUnions() error {
	for i := range md.Vertices {
		v := &md.Vertices[i]
		operator, ended := "", 0
		for n := range v.Subtasks {
			if v.Subtasks[n].Ended {
				ended++
			}
			for _, op := range v.Subtasks[n].Operators {
				if slices.ContainsFunc(op.Lists, func(l List) bool { return l.Mode == job.Union }) {
					operator = op.Operator
				}
			}
		}
		if operator != "" && ended > 0 && ended < len(v.Subtasks) {
			return fmt.Errorf("%d of the %d subtasks of operator %s, which has union list state, have reached the end of their input: no checkpoint can complete before all have", ended, len(v.Subtasks), operator)
		}
	}
	return nil
}

// assignLists gives each new subtask its part of the list states. The odd items of one state go to the subtasks behind those that got the odd ones
// of the state before, so that many small states do not all end in the first subtasks.
func assignLists(o *oldOperator, v *job.Vertex) [][]List {
	out := make([][]List, v.Parallelism)
	copies := o.listsByName()
	start := 0
	for _, name := range slices.Sorted(maps.Keys(copies)) {
		old := copies[name]
		switch {
		case modeOf(old) == job.Union:
			for i := range out {
				for _, l := range old {
					out[i] = appendItemsOf(out[i], l)
				}
			}
		case modeOf(old) == job.BroadcastState:
			assignBroadcast(old, out)
		case o.vertex.Parallelism == v.Parallelism:
			for i, l := range old {
				out[i] = appendItemsOf(out[i], l)
			}
		default:
			start = splitList(old, out, start)
		}
	}
	return out
}

// listsByName gives the list states of the operator by old subtask, nil where one has written none.
func (o *oldOperator) listsByName() map[string][]*List {
	out := map[string][]*List{}
	for n, s := range o.states {
		if s == nil {
			continue
		}
		for i := range s.Lists {
			name := s.Lists[i].Schema.Name
			if out[name] == nil {
				out[name] = make([]*List, len(o.states))
			}
			out[name][n] = &s.Lists[i]
		}
	}
	return out
}

// modeOf is the mode of a state: all subtasks run one program.
func modeOf(copies []*List) job.ListMode {
	for _, l := range copies {
		if l != nil {
			return l.Mode
		}
	}
	return job.Split
}

// appendItemsOf appends a list that may be absent.
func appendItemsOf(dst []List, l *List) []List {
	if l == nil || l.Items.Len() == 0 {
		return dst
	}
	return append(dst, *l)
}

// assignBroadcast gives new subtask i the copy of old subtask i mod their number, or of another one if that had finished and has none.
func assignBroadcast(old []*List, out [][]List) {
	there := slices.DeleteFunc(slices.Clone(old), func(l *List) bool { return l == nil })
	for i := range out {
		l := old[i%len(old)]
		if l == nil {
			l = there[i%len(there)]
		}
		out[i] = appendItemsOf(out[i], l)
	}
}

// splitList deals the items of all old subtasks out, in their order and evenly, and returns where the next state is to begin.
func splitList(old []*List, out [][]List, start int) int {
	total := 0
	for _, l := range old {
		if l != nil {
			total += l.Items.Len()
		}
	}
	share, odd := total/len(out), total%len(out)
	subtask, from := 0, 0 // the old one whose items come next, and the first of them
	for i := range out {
		want := share
		if i < odd {
			want++
		}
		to := &out[(start+i)%len(out)]
		for want > 0 {
			l := old[subtask]
			if l == nil || from == l.Items.Len() {
				subtask, from = subtask+1, 0
				continue
			}
			n := min(want, l.Items.Len()-from)
			*to = append(*to, List{l.Schema, l.Mode, l.Items.cut(from, from+n)})
			want, from = want-n, from+n
		}
	}
	return (start + odd) % len(out)
}
