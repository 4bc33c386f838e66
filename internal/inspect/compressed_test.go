package inspect

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/compression"
)

// repack compresses each part of a handle by itself and gives it checksums. The state of subtask 2 and above lies in one file, as in a segment.
func repack(h *checkpoint.Handle, offsets []int64, files map[string][]byte, subtask int) (sums []uint32) {
	e := compression.NewEncoder()
	data := h.Inline
	if !h.IsInline() {
		data = files[h.Path][h.Offset : h.Offset+h.Length]
	}
	var stored []byte
	from := offsets[0]
	for i := range len(offsets) - 1 {
		before := len(stored)
		stored = e.Append(stored, data[from:offsets[i+1]])
		from, offsets[i+1] = offsets[i+1], int64(len(stored))
		sums = append(sums, checkpoint.Checksum(stored[before:]))
	}
	raw := int64(len(data))
	switch name := "packed.segment"; {
	case h.IsInline():
		*h, sums = checkpoint.InlineHandle(stored), nil
	case subtask == 1:
		name = "counts-1-a1-c7.packed"
		fallthrough
	default:
		*h = checkpoint.FileHandle(name, int64(len(files[name])), stored)
		files[name] = append(files[name], stored...)
	}
	h.Compression, h.RawLength = checkpoint.Zstd, raw
	return sums
}

func compressed(t *testing.T, c content, parallelism int) *Stored {
	md, files := counting(t, c, parallelism)
	for i := range md.Vertices[0].Subtasks {
		op := &md.Vertices[0].Subtasks[i].Operators[0]
		op.Keyed.GroupCRC = repack(&op.Keyed.Handle, op.Keyed.Offsets, files, i)
		repack(&op.Items.Handle, op.Items.Offsets, files, i)
		delete(files, "counts-"+strconv.Itoa(i)+"-a1-c7.state")
	}
	return stored(t, md, files)
}

func TestCompressedState_IsReadAsIfItWerePlain(t *testing.T) {
	c := randomContent(newRand(), 200)
	for _, parallelism := range []int{1, 2, 5} {
		plain, packed := storedCounting(t, c, parallelism), compressed(t, c, parallelism)
		if v, err := packed.Verify(t.Context()); err != nil || len(v.Damage) > 0 {
			t.Fatalf("%+v, %v", v, err)
		}
		want, err := plain.States(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := packed.States(t.Context()); err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("%v %s", err, cmp.Diff(want, got))
		}
		for k, v := range c.counts {
			if e, err := packed.Get(t.Context(), "counts", "count", k); err != nil || string(e.Value) != strconv.FormatInt(v, 10) {
				t.Fatalf("%s: %s, %v, want %d", k, e.Value, err, v)
			}
		}
		same, err := Diff(t.Context(), plain, plain, 3)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Diff(t.Context(), plain, packed, 3); err != nil || cmp.Diff(same, got) != "" {
			t.Errorf("%v %s", err, cmp.Diff(same, got))
		}
	}
}

// A key group with a checksum of its own is read without the others.
func TestGet_BesideDamage_ReadsWhatIsWhole(t *testing.T) {
	c := randomContent(newRand(), 200)
	s := compressed(t, c, 2)
	k := s.Metadata.Vertices[0].Subtasks[1].Operators[0].Keyed
	name := filepath.Join(s.Location, k.Handle.Path)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data[k.Handle.Offset+k.Offsets[1]] ^= 1
	write(t, name, data)
	bad := map[int]bool{}
	for key := range c.counts {
		e, err := s.Get(t.Context(), "counts", "count", key)
		if err == nil {
			bad[e.KeyGroup] = bad[e.KeyGroup] || false
			continue
		}
		if !errors.Is(err, checkpoint.ErrChecksum) || !strings.Contains(err.Error(), "key group "+strconv.Itoa(k.Range.Start+1)) {
			t.Errorf("%v", err)
		}
		bad[k.Range.Start+1] = true
	}
	if !bad[k.Range.Start+1] || len(bad) < groups-3 {
		t.Errorf("key groups %v", bad)
	}
	if v, err := s.Verify(t.Context()); err != nil || len(v.Damage) != 1 {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestCompressedState_LongerThanRecorded_IsDamage(t *testing.T) {
	s := compressed(t, randomContent(newRand(), 100), 1)
	s.Metadata.Vertices[0].Subtasks[0].Operators[0].Keyed.Handle.RawLength = 1
	if _, err := s.States(t.Context()); !errors.Is(err, compression.ErrTooLong) {
		t.Errorf("%v", err)
	}
}

func TestReport_NamesEachFileOfASubtask(t *testing.T) {
	md, _ := sample()
	op := &md.Vertices[1].Subtasks[0].Operators[0]
	op.Items = &checkpoint.Items{Handle: checkpoint.FileHandle("x.segment", 0, []byte("ab")), Offsets: []int64{0, 2}}
	got := NewReport(md).Vertices[1].Operators
	i := slices.IndexFunc(got, func(o OperatorReport) bool { return o.Operator.ID == "sums" })
	if want := []string{"sums-0-a1-c7.state", "x.segment"}; !slices.Equal(got[i].Subtasks[0].Files, want) {
		t.Errorf("%v, want %v", got[i].Subtasks[0].Files, want)
	}
}
