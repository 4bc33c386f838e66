package app

import (
	"testing"

	"github.com/weirstream/weir/stream"
)

func TestCheck_FindsJobsThatCannotBeReached(t *testing.T) {
	build := func(*stream.Job) error { return nil }
	for _, c := range []struct {
		name string
		jobs []stream.Definition
		want string
	}{
		{"none", nil, ""},
		{"two", []stream.Definition{Job("a", build), Job("b", build)}, ""},
		{"no name", []stream.Definition{Job("", build)}, "a job given to app.Main has no name"},
		{"no function", []stream.Definition{Job("a", nil)}, "job a given to app.Main has no function that builds it"},
		{"twice", []stream.Definition{Job("a", build), Job("b", build), Job("a", build)}, "two jobs given to app.Main have the name a"},
	} {
		got := ""
		if err := check(c.jobs); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
