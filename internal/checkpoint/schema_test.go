package checkpoint

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStateSchemas_OfEveryKind_AreWrittenAndRead(t *testing.T) {
	md := sample()
	md.Vertices[1].Subtasks[0].Operators[0].Keyed.States = []StateSchema{
		{Name: "stats", Kind: "value", KeyType: "string", ValueType: "main.Stats"},
		{Name: "sessions", Kind: "map", KeyType: "string", ValueType: "int64", NamespaceType: "struct{End:int64}", MapKeyType: "uint32", TTL: 60_000},
		{Name: "_timer_state/event", Kind: "event-timers", KeyType: "string", NamespaceType: "int64"},
	}
	data, err := EncodeMetadata(md)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeMetadata(data)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(md, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
