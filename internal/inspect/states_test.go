package inspect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream/codec"
)

const groups = 16

// pairKey is a key that is written as JSON.
type pairKey struct {
	From string
	N    int32
}

// content is what an operator counts, as a map of its own: the oracle.
type content struct {
	counts map[string]int64
	seen   map[pairKey]string
	items  []string
}

// randomContent has about n entries.
func randomContent(r *rand.Rand, n int) content {
	c := content{counts: map[string]int64{}, seen: map[pairKey]string{}}
	for range n {
		c.counts[strconv.Itoa(r.IntN(3*n))] = r.Int64()
		c.seen[pairKey{strconv.Itoa(r.IntN(n)), int32(r.IntN(4))}] = strconv.Itoa(r.IntN(9))
		c.items = append(c.items, strconv.Itoa(r.IntN(n)))
	}
	return c
}

// appendGroup encodes what is in a key group, in an order of its own.
func appendGroup[K comparable, V any](t *testing.T, dst []byte, m map[K]V, group int) []byte {
	t.Helper()
	keys, err := codec.For[K]()
	if err != nil {
		t.Fatal(err)
	}
	values, err := codec.For[V]()
	if err != nil {
		t.Fatal(err)
	}
	hash, err := codec.Hash[K]()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	var entries []byte
	for k, v := range m {
		if job.KeyGroupOf(hash(k), groups) != group {
			continue
		}
		n++
		if entries, err = keys.Append(entries, k); err != nil {
			t.Fatal(err)
		}
		if entries, err = values.Append(entries, v); err != nil {
			t.Fatal(err)
		}
	}
	return append(binary.AppendUvarint(dst, uint64(n)), entries...)
}

// counting makes a checkpoint of one operator at a parallelism. Subtask 0 has its state inline.
func counting(t *testing.T, c content, parallelism int) (*checkpoint.Metadata, map[string][]byte) {
	t.Helper()
	files := map[string][]byte{}
	v := checkpoint.VertexState{
		Vertex: "counts", Parallelism: parallelism, MaxParallelism: groups,
		Operators: []job.Operator{{ID: "counts", Kind: "process", States: []string{"count", "seen"}, Stateful: true}, {ID: "print", Kind: "sink"}},
	}
	for i := range parallelism {
		k := &checkpoint.Keyed{Range: job.KeyGroups(i, parallelism, groups), Offsets: []int64{0}, States: []checkpoint.StateSchema{
			{Name: "count", Kind: "value", KeyType: "string", ValueType: "int64"},
			{Name: "seen", Kind: "value", KeyType: "struct{From:string,N:int32}", ValueType: "string"},
		}}
		var data, list []byte
		for g := k.Range.Start; g < k.Range.End; g++ {
			data = appendGroup(t, data, c.counts, g)
			data = appendGroup(t, data, c.seen, g)
			k.Offsets = append(k.Offsets, int64(len(data)))
		}
		it := &checkpoint.Items{Offsets: []int64{0}}
		for n := i; n < len(c.items); n += parallelism {
			list = append(list, c.items[n]...)
			it.Offsets = append(it.Offsets, int64(len(list)))
		}
		k.Handle, it.Handle = checkpoint.InlineHandle(data), checkpoint.InlineHandle(list)
		if i > 0 {
			name := fmt.Sprintf("counts-%d-a1-c7.state", i)
			k.Handle, it.Handle = checkpoint.FileHandle(name, 0, data), checkpoint.FileHandle(name, int64(len(data)), list)
			files[name] = append(slices.Clone(data), list...)
		}
		v.Subtasks = append(v.Subtasks, checkpoint.SubtaskState{Subtask: i, Operators: []checkpoint.OperatorState{{Operator: "counts", Keyed: k, Items: it}}})
	}
	md, _ := sample()
	md.Vertices = []checkpoint.VertexState{v}
	return md, files
}

func stored(t *testing.T, md *checkpoint.Metadata, files map[string][]byte) *Stored {
	t.Helper()
	dir := t.TempDir()
	store(t, dir, md, files)
	s, err := Read(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func storedCounting(t *testing.T, c content, parallelism int) *Stored {
	md, files := counting(t, c, parallelism)
	return stored(t, md, files)
}

func newRand() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

func TestStates_CountWhatIsThere_AtAnyParallelism(t *testing.T) {
	c := randomContent(newRand(), 200)
	textBytes := 0
	for _, item := range c.items {
		textBytes += len(item)
	}
	for _, parallelism := range []int{1, 3, 16} {
		list, err := storedCounting(t, c, parallelism).States(t.Context())
		if err != nil || len(list) != 3 {
			t.Fatalf("%v, %v", list, err)
		}
		counts, seen, items := list[0], list[1], list[2]
		if counts.Name != "count" || counts.Entries != int64(len(c.counts)) || counts.KeyGroups != (job.KeyGroupRange{Start: 0, End: groups}) {
			t.Errorf("%+v, want %d entries", counts, len(c.counts))
		}
		if seen.Name != "seen" || seen.Entries != int64(len(c.seen)) || seen.KeyType != "struct{From:string,N:int32}" {
			t.Errorf("%+v, want %d entries", seen, len(c.seen))
		}
		if items.Kind != OperatorList || items.Entries != int64(len(c.items)) || items.Bytes != int64(textBytes) {
			t.Errorf("%+v, want %d items of %d bytes", items, len(c.items), textBytes)
		}
		var total, largest, at int64
		for g := range groups {
			one := int64(len(appendGroup(t, nil, c.counts, g)) - 1) // the count is below 128
			total += one
			if one > largest {
				largest, at = one, int64(g)
			}
		}
		if counts.Bytes != total || counts.LargestBytes != largest || int64(counts.LargestGroup) != at {
			t.Errorf("%+v, want %d bytes, %d of them in key group %d", counts, total, largest, at)
		}
	}
}

func TestGet_FindsEachKey_AndNoOther(t *testing.T) {
	c := randomContent(newRand(), 100)
	s := storedCounting(t, c, 3)
	for k, v := range c.counts {
		if e, err := s.Get(t.Context(), "counts", "count", k); err != nil || string(e.Value) != strconv.FormatInt(v, 10) {
			t.Fatalf("%s: %s, %v, want %d", k, e.Value, err, v)
		}
	}
	for k, v := range c.seen {
		text := fmt.Sprintf(`{"N":%d, "From":%q}`, k.N, k.From)
		e, err := s.Get(t.Context(), "counts", "seen", text)
		if want := fmt.Sprintf(`{"From":%q,"N":%d}`, k.From, k.N); err != nil || string(e.Value) != strconv.Quote(v) || string(e.Key) != want {
			t.Fatalf("%s: %+v, %v, want %s", text, e, err, v)
		}
	}
	for _, q := range []struct {
		operator, state, key string
		is                   error
		want                 string
	}{
		{"counts", "count", "none", ErrNoKey, "key none in state count of operator counts: the state has no value for the key (it would be in key group "},
		{"counts", "seen", "none", ErrBadKey, "not a key of the state seen of operator counts: a key of type struct{From:string,N:int32} is written as JSON"},
		{"counts", "sum", "1", ErrUnknown, `state "sum" of operator counts is not in the checkpoint (its states: count, seen)`},
		{"print", "sum", "1", ErrUnknown, `operator "print" with state is not in the checkpoint (it has: counts)`},
	} {
		if _, err := s.Get(t.Context(), q.operator, q.state, q.key); !errors.Is(err, q.is) || !strings.Contains(err.Error(), q.want) {
			t.Errorf("%v", err)
		}
	}
}

// All kinds keep one stored value for each key; a list state names the type of its elements.
func TestGet_OfEveryKind(t *testing.T) {
	tags := map[string][]string{"a": {"x", "y"}, "b": {"z"}}
	for kind, want := range map[string]string{"list": `["x","y"]`, "value": `["x","y"]`, "reducing": `["x","y"]`, "aggregating": `["x","y"]`} {
		md, _ := counting(t, content{}, 1)
		k := md.Vertices[0].Subtasks[0].Operators[0].Keyed
		k.States = []checkpoint.StateSchema{{Name: "tags", Kind: kind, KeyType: "string", ValueType: "[]string"}}
		if kind == "list" {
			k.States[0].ValueType = "string"
		}
		var data []byte
		for g := range groups {
			data = appendGroup(t, data, tags, g)
			k.Offsets[g+1] = int64(len(data))
		}
		k.Handle = checkpoint.InlineHandle(data)
		if e, err := stored(t, md, nil).Get(t.Context(), "counts", "tags", "a"); err != nil || string(e.Value) != want {
			t.Errorf("%s: %s, %v", kind, e.Value, err)
		}
	}
}

// Each flipped byte is found before anything is decoded, and only where the damage is.
func TestGet_OfDamagedState_NamesOperatorSubtaskAndFile(t *testing.T) {
	c := randomContent(newRand(), 100)
	s := storedCounting(t, c, 3)
	name := filepath.Join(s.Location, "counts-1-a1-c7.state")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data[0] ^= 1
	write(t, name, data)
	bad := 0
	for k, v := range c.counts {
		e, err := s.Get(t.Context(), "counts", "count", k)
		if err == nil {
			if string(e.Value) != strconv.FormatInt(v, 10) || e.Subtask == 1 {
				t.Errorf("%s: %+v", k, e)
			}
			continue
		}
		bad++
		if !errors.Is(err, checkpoint.ErrChecksum) || !strings.Contains(err.Error(), "operator counts subtask 1: keyed state: counts-1-a1-c7.state bytes 0 to ") {
			t.Errorf("%v", err)
		}
	}
	if bad == 0 || bad == len(c.counts) {
		t.Errorf("%d of %d keys were refused", bad, len(c.counts))
	}
	if _, err := s.States(t.Context()); !errors.Is(err, checkpoint.ErrChecksum) {
		t.Errorf("%v", err)
	}
	if _, err := Diff(t.Context(), s, s, 3); !errors.Is(err, checkpoint.ErrChecksum) || !strings.Contains(err.Error(), s.Location+": operator counts subtask 1") {
		t.Errorf("%v", err)
	}
}

// Bytes that are those which were written, and are no state all the same.
func TestStates_OfWhatCannotBeDecoded_IsAnError(t *testing.T) {
	for _, c := range []struct{ data, want string }{
		{"", "state count: truncated entry count"},
		{"\x01", "state count: key: truncated varint"},
		{"\x01\x01a", "state count: value: truncated varint"},
		{"\x00\x00\x00", "1 bytes are left over"},
	} {
		md, _ := counting(t, content{}, 1)
		k := md.Vertices[0].Subtasks[0].Operators[0].Keyed
		k.Handle, k.Offsets = checkpoint.InlineHandle([]byte(c.data)), slices.Repeat([]int64{int64(len(c.data))}, groups+1)
		k.Offsets[0] = 0
		if _, err := stored(t, md, nil).States(t.Context()); err == nil || !strings.Contains(err.Error(), "operator counts subtask 0: keyed state") ||
			!strings.Contains(err.Error(), "key group 0 cannot be decoded: "+c.want) {
			t.Errorf("%q: %v", c.data, err)
		}
	}
	for _, c := range []struct {
		change func(s *checkpoint.StateSchema)
		want   string
	}{
		{func(s *checkpoint.StateSchema) { s.Kind = "tree" }, `operator counts: state count is of kind "tree", which this version cannot read`},
		{func(s *checkpoint.StateSchema) { s.KeyType = "mine" }, `operator counts: state count: key: schema "mine" is not that of a built-in codec`},
		{func(s *checkpoint.StateSchema) { s.ValueType = "mine" }, `operator counts: state count: value: schema "mine" is not that of a built-in codec`},
	} {
		md, files := counting(t, content{}, 2)
		for i := range md.Vertices[0].Subtasks {
			c.change(&md.Vertices[0].Subtasks[i].Operators[0].Keyed.States[0])
		}
		if _, err := stored(t, md, files).States(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	md, files := counting(t, content{}, 2)
	md.Vertices[0].Subtasks[1].Operators[0].Keyed.States[0].Name = "other"
	if _, err := stored(t, md, files).States(t.Context()); err == nil || !strings.Contains(err.Error(), "subtasks 0 and 1 have declared different states") {
		t.Errorf("%v", err)
	}
	md, files = counting(t, content{}, 2)
	md.Vertices[0].Subtasks = md.Vertices[0].Subtasks[:1]
	if _, err := stored(t, md, files).States(t.Context()); err == nil || !strings.Contains(err.Error(), "the state of 1 of the 2 subtasks of vertex counts") {
		t.Errorf("%v", err)
	}
}

func TestDiff_OfTheSameState_IsNothing_AtAnyParallelism(t *testing.T) {
	c := randomContent(newRand(), 100)
	for _, parallelism := range []int{1, 2, 5, 16} {
		list, err := Diff(t.Context(), storedCounting(t, c, 3), storedCounting(t, c, parallelism), 3)
		if err != nil || len(list) != 3 {
			t.Fatalf("%v, %v", list, err)
		}
		for i, want := range []int{len(c.counts), len(c.seen), len(c.items)} {
			if list[i].Differs() || list[i].Same != int64(want) {
				t.Errorf("%+v, want %d the same", list[i], want)
			}
		}
	}
}

// difference is the oracle of a diff.
func difference[K comparable](a, b map[K]string) (added, removed, changed, same int64) {
	for k, v := range b {
		old, ok := a[k]
		switch {
		case !ok:
			added++
		case old == v:
			same++
		default:
			changed++
		}
	}
	return added, int64(len(a)) - same - changed, changed, same
}

func TestDiff_CountsWhatTheOracleCounts(t *testing.T) {
	r := newRand()
	for range 20 {
		a := randomContent(r, 1+r.IntN(80))
		b := content{counts: a.counts, seen: maps.Clone(a.seen), items: append(slices.Clone(a.items[1:]), "new", "new")}
		for k := range b.seen {
			switch r.IntN(4) {
			case 0:
				delete(b.seen, k)
			case 1:
				b.seen[k] = "other"
			case 2:
				b.seen[pairKey{k.From, 7}] = "new"
			}
		}
		list, err := Diff(t.Context(), storedCounting(t, a, 1+r.IntN(groups)), storedCounting(t, b, 1+r.IntN(groups)), 2)
		if err != nil || len(list) != 3 {
			t.Fatalf("%v, %v", list, err)
		}
		added, removed, changed, same := difference(a.seen, b.seen)
		d := list[1]
		if d.Added.Count != added || d.Removed.Count != removed || d.Changed.Count != changed || d.Same != same {
			t.Errorf("%+v, want %d added, %d removed, %d changed, %d the same", d, added, removed, changed, same)
		}
		for _, k := range []KeysDiff{d.Added, d.Removed, d.Changed} {
			if int64(len(k.Keys)) != min(2, k.Count) {
				t.Errorf("%s of %d keys are named", k.Keys, k.Count)
			}
		}
		if items := list[2]; list[0].Differs() || items.Added.Count != 2 || items.Removed.Count != 1 || items.Same != int64(len(a.items)-1) {
			t.Errorf("%+v", list)
		}
	}
}

func TestDiff_NamesWhatCannotBeCompared(t *testing.T) {
	c := randomContent(newRand(), 20)
	a := storedCounting(t, c, 2)
	for _, q := range []struct {
		name   string
		change func(v *checkpoint.VertexState, s []checkpoint.StateSchema)
		state  int // of the list of differences
		side   Side
		want   string
	}{
		{"value type", func(_ *checkpoint.VertexState, s []checkpoint.StateSchema) { s[0].ValueType = "uint64" }, 0, Both, "value type is int64 and uint64: only keys were compared"},
		{"key type", func(_ *checkpoint.VertexState, s []checkpoint.StateSchema) { s[0].KeyType = "binary(a.B)" }, 0, Both, "key type is string and binary(a.B)"},
		{"kind", func(_ *checkpoint.VertexState, s []checkpoint.StateSchema) { s[0].Kind = "reducing" }, 0, Both, "kind is value and reducing"},
		{"state", func(_ *checkpoint.VertexState, s []checkpoint.StateSchema) { s[0].Name = "sum" }, 0, First, ""},
		{"new state", func(_ *checkpoint.VertexState, s []checkpoint.StateSchema) { s[0].Name = "sum" }, 2, Second, ""},
		{"no list", func(v *checkpoint.VertexState, _ []checkpoint.StateSchema) { v.Subtasks[0].Operators[0].Items = nil }, 2, First, ""},
		{"operator", func(v *checkpoint.VertexState, _ []checkpoint.StateSchema) {
			v.Operators[0].ID, v.Subtasks[0].Operators[0].Operator = "sums", "sums"
		}, 5, Second, ""},
	} {
		md, files := counting(t, c, 1)
		q.change(&md.Vertices[0], md.Vertices[0].Subtasks[0].Operators[0].Keyed.States)
		list, err := Diff(t.Context(), a, stored(t, md, files), 3)
		if err != nil || len(list) <= q.state {
			t.Errorf("%s: %+v, %v", q.name, list, err)
			continue
		}
		if d := list[q.state]; d.In != q.side || d.Problem != q.want || !d.Differs() {
			t.Errorf("%s: %+v", q.name, d)
		}
	}
	md, _ := counting(t, content{}, 1)
	v := &md.Vertices[0]
	v.MaxParallelism = 1
	k := v.Subtasks[0].Operators[0].Keyed
	k.Handle, k.Range, k.Offsets = checkpoint.InlineHandle([]byte{0, 0}), job.KeyGroupRange{Start: 0, End: 1}, []int64{0, 2}
	list, err := Diff(t.Context(), a, stored(t, md, nil), 3)
	if err != nil || list[0].Problem != "max parallelism is 16 and 1" {
		t.Errorf("%+v, %v", list, err)
	}
}
