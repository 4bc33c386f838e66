package inspect

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream/codec"
)

// bytesOf is values one behind the other: text as strings, numbers as int64, and counts.
func bytesOf(values ...any) (out []byte) {
	for _, v := range values {
		switch v := v.(type) {
		case string:
			out = append(binary.AppendUvarint(out, uint64(len(v))), v...)
		case int:
			out = binary.AppendVarint(out, int64(v))
		case uint:
			out = binary.AppendUvarint(out, uint64(v))
		}
	}
	return out
}

// keyedBy is a checkpoint in which the key "a" has what data says in each kind of state, all in one key group.
func keyedBy(t *testing.T, change func(string) []byte) *Stored {
	t.Helper()
	hash, err := codec.Hash[string]()
	if err != nil {
		t.Fatal(err)
	}
	md, _ := counting(t, content{}, 1)
	k := md.Vertices[0].Subtasks[0].Operators[0].Keyed
	k.States = []checkpoint.StateSchema{
		{Name: "map", Kind: "map", KeyType: "string", ValueType: "int64", MapKeyType: "string"},
		{Name: "windows", Kind: "reducing", KeyType: "string", ValueType: "int64", NamespaceType: "struct{Start:int64,End:int64}"},
		{Name: "session", Kind: "value", KeyType: "string", ValueType: "string", TTL: 1000},
		{Name: "recent", Kind: "list", KeyType: "string", ValueType: "int64", TTL: 1000},
		{Name: "all", Kind: "map", KeyType: "string", ValueType: "int64", NamespaceType: "int64", MapKeyType: "string", TTL: 1000},
		{Name: "_timer_state/event", Kind: "event-timers", KeyType: "string", ValueType: "int64", NamespaceType: "int64"},
		{Name: "_timer_state/processing", Kind: "processing-timers", KeyType: "string", ValueType: "int64"},
	}
	var data []byte
	for g := range groups {
		for _, s := range k.States {
			if g == job.KeyGroupOf(hash("a"), groups) {
				data = append(data, change(s.Name)...)
			} else {
				data = append(data, 0)
			}
		}
		k.Offsets[g+1] = int64(len(data))
	}
	k.Handle = checkpoint.InlineHandle(data)
	return stored(t, md, nil)
}

func kindsOf(name string) []byte {
	return map[string][]byte{
		"map":                     bytesOf(uint(1), "a", uint(2), "x", 1, "y", 2),
		"windows":                 bytesOf(uint(2), "a", 0, 10, 5, "a", 10, 20, 6),
		"session":                 bytesOf(uint(1), "a", "on", 77),
		"recent":                  bytesOf(uint(1), "a", uint(3), 1, 50, 2, 60),
		"all":                     bytesOf(uint(1), "a", 9, uint(1), "u", 3, 70),
		"_timer_state/event":      bytesOf(uint(2), "a", 4, 100, "a", 5, 100),
		"_timer_state/processing": bytesOf(uint(1), "a", 200),
	}[name]
}

func TestGet_OfMapsNamespacesTimersAndWhatExpires(t *testing.T) {
	s := keyedBy(t, kindsOf)
	want := map[string]string{
		"map":                     `[{"key":"x","value":1},{"key":"y","value":2}]`,
		"windows":                 `[{"namespace":{"Start":0,"End":10},"value":5},{"namespace":{"Start":10,"End":20},"value":6}]`,
		"session":                 `{"value":"on","last_access":77}`,
		"recent":                  `[{"value":1,"last_access":50},{"value":2,"last_access":60}]`,
		"all":                     `[{"namespace":9,"key":"u","value":{"value":3,"last_access":70}}]`,
		"_timer_state/event":      `[{"namespace":4,"at":100},{"namespace":5,"at":100}]`,
		"_timer_state/processing": `[{"at":200}]`,
	}
	for name, value := range want {
		if e, err := s.Get(t.Context(), "counts", name, "a"); err != nil || string(e.Value) != value || string(e.Key) != `"a"` {
			t.Errorf("%s: %s, %v, want %s", name, e.Value, err, value)
		}
	}
	list, err := s.States(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]int64{"map": 2, "windows": 2, "session": 1, "recent": 1, "all": 1, "_timer_state/event": 2, "_timer_state/processing": 1}
	for _, r := range list {
		if n, ok := entries[r.Name]; ok && r.Entries != n {
			t.Errorf("%s has %d entries, want %d", r.Name, r.Entries, n)
		}
	}
}

func TestDiff_OfMapsNamespacesAndTimers_NamesEntries(t *testing.T) {
	a := keyedBy(t, kindsOf)
	b := keyedBy(t, func(name string) []byte {
		switch name {
		case "map":
			return bytesOf(uint(1), "a", uint(2), "y", 3, "z", 2)
		case "_timer_state/event":
			return bytesOf(uint(2), "a", 4, 100, "a", 5, 101)
		}
		return kindsOf(name)
	})
	list, err := Diff(t.Context(), a, b, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list {
		var got []string
		for _, keys := range []KeysDiff{d.Added, d.Removed, d.Changed} {
			for _, key := range keys.Keys {
				got = append(got, string(key))
			}
		}
		want := map[string]string{"map": `["a","z"] ["a","x"] ["a","y"]`, "_timer_state/event": `["a",5,101] ["a",5,100]`}[d.Name]
		if strings.Join(got, " ") != want || d.Problem != "" {
			t.Errorf("%s: %v %s, want %s", d.Name, got, d.Problem, want)
		}
	}
}

func TestGet_OfDamagedMaps_IsAnError(t *testing.T) {
	for _, name := range []string{"map", "all", "_timer_state/event", "recent"} {
		whole := kindsOf(name)
		s := keyedBy(t, func(n string) []byte {
			if n == name {
				return whole[:len(whole)-1]
			}
			return kindsOf(n)
		})
		if _, err := s.States(t.Context()); err == nil {
			t.Errorf("%s: state that lacks a byte was read", name)
		}
	}
}
