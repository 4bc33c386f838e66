package view

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/weirstream/weir/internal/inspect"
	"github.com/weirstream/weir/internal/job"
)

// State is how much is in a state.
type State struct {
	Operator      string `json:"operator_id"`
	State         string `json:"state,omitempty"`
	Kind          string `json:"kind"`
	Mode          string `json:"mode,omitempty"`
	KeyType       string `json:"key_type,omitempty"`
	ValueType     string `json:"value_type,omitempty"`
	NamespaceType string `json:"namespace_type,omitempty"`
	MapKeyType    string `json:"map_key_type,omitempty"`
	TTL           int64  `json:"ttl_ms,omitempty"`
	Entries       int64  `json:"entries"`
	Bytes         int64  `json:"state_bytes"`
	LargestGroup  int    `json:"largest_key_group"`
	LargestBytes  int64  `json:"largest_key_group_bytes"`
	FirstKeyGroup int    `json:"first_key_group"`
	KeyGroups     int    `json:"key_groups"`
}

// OfState is the view of a state.
func OfState(r inspect.StateReport) State {
	return State{
		r.Operator, r.Name, r.Kind, ofMode(r.Mode), r.KeyType, r.ValueType, r.NamespaceType, r.MapKeyType, r.TTL, r.Entries, r.Bytes, r.LargestGroup, r.LargestBytes, r.KeyGroups.Start, r.KeyGroups.Len(),
	}
}

// Types are those of a state for people: what an entry is found by, and what it holds.
func Types(r inspect.StateReport) (key, value string) {
	key, value = r.KeyType, r.ValueType
	if r.NamespaceType != "" {
		key += " in " + r.NamespaceType
	}
	if r.MapKeyType != "" {
		value = "map[" + r.MapKeyType + "]" + value
	}
	if r.TTL != 0 {
		value += " for " + (time.Duration(r.TTL) * time.Millisecond).String()
	}
	return key, value
}

// ofMode is the name of the mode of a list state; empty for all else.
func ofMode(m job.ListMode) string {
	if m == 0 {
		return ""
	}
	return m.String()
}

// Entry is the value of a key.
type Entry struct {
	Path      string          `json:"path"`
	Operator  string          `json:"operator_id"`
	State     string          `json:"state"`
	Subtask   int             `json:"subtask"`
	KeyGroup  int             `json:"key_group"`
	KeyType   string          `json:"key_type"`
	ValueType string          `json:"value_type"`
	Key       json.RawMessage `json:"key"`
	Value     json.RawMessage `json:"value"`
}

// OfEntry is the view of an entry in the checkpoint at a location.
func OfEntry(location string, e inspect.Entry) Entry {
	return Entry{location, e.Operator, e.State.Name, e.Subtask, e.KeyGroup, e.State.KeyType, e.State.ValueType, e.Key, e.Value}
}

// Text is a JSON value for people: a string is what it says, all else is JSON.
func Text(value json.RawMessage) string {
	var s string
	if strings.HasPrefix(string(value), `"`) && json.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}

// StateDiffs is how two checkpoints differ.
type StateDiffs struct {
	First     string      `json:"first"`
	Second    string      `json:"second"`
	Equal     bool        `json:"equal"`
	Different int         `json:"different"`
	States    []StateDiff `json:"states"`
}

// StateDiff is how a state differs.
type StateDiff struct {
	Operator    string            `json:"operator_id"`
	State       string            `json:"state,omitempty"`
	Kind        string            `json:"kind"`
	Mode        string            `json:"mode,omitempty"`
	OnlyIn      string            `json:"only_in,omitempty"`
	Problem     string            `json:"problem,omitempty"`
	Added       int64             `json:"added"`
	Removed     int64             `json:"removed"`
	Changed     int64             `json:"changed"`
	Same        int64             `json:"same"`
	AddedKeys   []json.RawMessage `json:"added_keys,omitempty"`
	RemovedKeys []json.RawMessage `json:"removed_keys,omitempty"`
	ChangedKeys []json.RawMessage `json:"changed_keys,omitempty"`
}

// OfStateDiffs is the view of a comparison.
func OfStateDiffs(a, b *inspect.Stored, list []inspect.StateDiff) StateDiffs {
	out := StateDiffs{First: a.Location, Second: b.Location}
	out.States = Each(list, func(d inspect.StateDiff) StateDiff {
		if d.Differs() {
			out.Different++
		}
		sides := map[inspect.Side]string{inspect.First: "first", inspect.Second: "second"}
		return StateDiff{
			d.Operator, d.Name, d.Kind, ofMode(d.Mode), sides[d.In], d.Problem, d.Added.Count, d.Removed.Count, d.Changed.Count, d.Same,
			d.Added.Keys, d.Removed.Keys, d.Changed.Keys,
		}
	})
	out.Equal = out.Different == 0
	return out
}

// Note is what else there is to say about it, for people.
func (d *StateDiff) Note() string {
	var notes []string
	if d.OnlyIn != "" {
		notes = append(notes, "only in the "+d.OnlyIn)
	}
	if d.Problem != "" {
		notes = append(notes, d.Problem)
	}
	for _, k := range []struct {
		what string
		keys []json.RawMessage
	}{{"added", d.AddedKeys}, {"removed", d.RemovedKeys}, {"changed", d.ChangedKeys}} {
		if len(k.keys) > 0 {
			notes = append(notes, k.what+": "+strings.Join(Each(k.keys, func(key json.RawMessage) string { return string(key) }), " "))
		}
	}
	return strings.Join(notes, "; ")
}
