package retention

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weirstream/weir/internal/checkpoint"
)

func TestRecover_TheNewestWithMetadataIsTheLatest(t *testing.T) {
	for _, c := range []struct {
		name                string
		files               []string
		reserved, completed checkpoint.ID
		want                Recovery
		lost                bool
	}{
		{name: "nothing", want: Recovery{}},
		{name: "nothing, ids were reserved", reserved: 100, want: Recovery{LastID: 100}},
		{name: "one", files: []string{"j/chk-7/_metadata", "j/chk-7/a.state"}, want: Recovery{Latest: 7, LastID: 7}},
		{
			name:  "by number, not by name",
			files: []string{"j/chk-10/_metadata", "j/chk-9/_metadata", "j/chk-11/a.state", "j/chk-2/_metadata", "j/chk-8/a.state"},
			want:  Recovery{Latest: 10, Older: []checkpoint.ID{2, 9}, Unfinished: []checkpoint.ID{8, 11}, LastID: 11},
		},
		{name: "unfinished only", files: []string{"j/chk-3/a.state"}, reserved: 100, want: Recovery{Unfinished: []checkpoint.ID{3}, LastID: 100}},
		{name: "above what is reserved", files: []string{"j/chk-300/_metadata"}, reserved: 100, completed: 7, want: Recovery{Latest: 300, LastID: 300}},
		{
			name:  "of others, and what is no checkpoint",
			files: []string{"k/chk-9/_metadata", "j/chk-9/sub/_metadata", "j/chk-x/_metadata", "j/other", "j/chk-4/_metadata"},
			want:  Recovery{Latest: 4, Unfinished: []checkpoint.ID{9}, LastID: 9},
		},
		{name: "gone", completed: 4, lost: true},
		{name: "only older ones", files: []string{"j/chk-3/_metadata", "j/chk-4/a.state"}, completed: 4, lost: true},
	} {
		got, err := Recover("j", c.files, c.reserved, c.completed)
		if errors.Is(err, ErrLost) != c.lost || (err != nil) != c.lost {
			t.Errorf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestLeftovers_KeepsCompletedOnesIfTold(t *testing.T) {
	files := []string{"j/chk-2/_metadata", "j/chk-2/a.state", "j/chk-10/a.state", "j/chk-3/_metadata", "k/chk-1/_metadata"}
	if got := Leftovers("j", files, true); !slices.Equal(got, []checkpoint.ID{10}) {
		t.Errorf("kept: %v are left over, want 10", got)
	}
	if got := Leftovers("j", files, false); !slices.Equal(got, []checkpoint.ID{2, 3, 10}) {
		t.Errorf("not kept: %v are left over, want 2, 3 and 10", got)
	}
}
