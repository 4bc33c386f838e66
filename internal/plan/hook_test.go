package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/connector/datagen"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream"
)

func TestNew_MasterHooks_AreInTheGraphAndItsFingerprint(t *testing.T) {
	build := func(hooks ...string) *Program {
		p, err := New(stream.Define("j", "", func(j *stream.Job) error {
			stream.From(j, "numbers", datagen.Sequence(1, 0))
			for _, id := range hooks {
				stream.AddMasterHook(j, id, func(stream.HookEnv) (stream.MasterHook, error) { return nil, nil })
			}
			return nil
		}), nil, job.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	none, one, both := build(), build("lease"), build("lease", "accounts")
	if d := cmp.Diff([]string{"lease", "accounts"}, both.Graph.MasterHooks); d != "" || len(both.Hooks) != 2 {
		t.Errorf("(-want +got)\n%s", d)
	}
	if none.Graph.Fingerprint == one.Graph.Fingerprint || one.Graph.Fingerprint == both.Graph.Fingerprint {
		t.Error("a hook makes no difference to the fingerprint")
	}
	if got := Diff(one.Graph, both.Graph); !strings.Contains(got, `the master hooks differ: submitted with ["lease"], here ["lease" "accounts"]`) {
		t.Errorf("difference: %s", got)
	}
}
