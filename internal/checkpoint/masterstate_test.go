package checkpoint

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// withHooks is the sample with states of the hooks "accounts" and "lease".
func withHooks() *Metadata {
	md := sample()
	md.MasterStates = []MasterState{{"accounts", []byte{}}, {"lease", []byte("token")}}
	return md
}

func TestMasterStates_AreWrittenAndRead(t *testing.T) {
	md := withHooks()
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
	if s := got.MasterState("lease"); string(s) != "token" {
		t.Errorf("state of lease is %q", s)
	}
	if got.MasterState("accounts") == nil || got.MasterState("other") != nil {
		t.Error("an empty state and none must differ")
	}
}

func TestMasterStates_Validate(t *testing.T) {
	for want, states := range map[string][]MasterState{
		"without an id":                 {{"", []byte("x")}},
		"a after that of b":             {{"b", []byte("x")}, {"a", []byte("x")}},
		"a after that of a":             {{"a", []byte("x")}, {"a", []byte("x")}},
		"has no state":                  {{"a", nil}},
		"65537 bytes of state, at most": {{"a", make([]byte, MaxMasterStateBytes+1)}},
		"states of 1001 master hooks":   make([]MasterState, MaxMasterStates+1),
		`string "\xff" is not UTF-8`:    {{"\xff", []byte("x")}},
	} {
		md := sample()
		md.MasterStates = states
		if _, err := EncodeMetadata(md); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestMasterStates_WithoutTheirHook_AreAnErrorUnlessDropped(t *testing.T) {
	md := withHooks()
	g := takenOf(md)
	g.MasterHooks = []string{"lease", "audit"}
	if _, _, err := Fit(md, g, false); !errors.Is(err, ErrIncompatible) || !strings.Contains(err.Error(), "state of master hook accounts has no hook in job") {
		t.Errorf("%v", err)
	}
	fitted, _, err := Fit(md, g, true)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]MasterState{{"lease", []byte("token")}}, fitted.MasterStates); d != "" || len(md.MasterStates) != 2 {
		t.Errorf("(-want +got)\n%s", d)
	}
	if d := cmp.Diff([]string{"accounts"}, md.UnmatchedHooks(g)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	list, err := Compare(md, g, reader(func(string, []StateSchema) error { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	want := []Comparison{
		{Hook: "lease", Outcome: Matched},
		{Hook: "audit", Outcome: New, Detail: "the checkpoint has no state of it"},
		{Hook: "accounts", Outcome: Dropped, Detail: "the job has no such master hook"},
	}
	if d := cmp.Diff(want, list[len(list)-3:]); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
