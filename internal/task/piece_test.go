package task

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/compression"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream"
)

// textOf is n bytes that can be compressed.
func textOf(r *rand.Rand, n int) []byte {
	out := make([]byte, 0, n+8)
	for len(out) < n {
		out = fmt.Appendf(out, "k%d=%d;", r.IntN(1000), r.IntN(10))
	}
	return out[:n]
}

func TestSnapshot_PiecesGoWhereTheyFit(t *testing.T) {
	for _, c := range []struct {
		name   string
		bytes  int
		budget int
		want   string
	}{
		{"small", 100, 0, ""},
		{"with others", 1000, 0, sharedFile},
		{"with others, a chunk", writeChunk, 1, sharedFile},
		{"with others, the largest", sharedPiece, sharedPiece, sharedFile},
		{"too large", sharedPiece + 1, sharedPiece, checkpoint.StateFile(testAttempt, 1)},
		{"no memory", writeChunk + 1000, 999, checkpoint.StateFile(testAttempt, 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 2)
				r.files.together, r.files.budget, r.cfg.InlineLimit = true, c.budget, 100
				r.ops[0].items.Items = [][]byte{big(c.bytes, 3)}
				r.ops[1].items.Items = [][]byte{big(200, 4)} // its piece has the memory that was given back
				r.start()
				r.both(barrierOf(1))
				r.j.take()
				ops := r.master.acked[1].Operators
				if len(ops) != 2 || ops[0].Items.Handle.Path != c.want || ops[1].Items.Handle.Path != sharedFile {
					t.Fatalf("state %+v", ops)
				}
				items, _ := parts(t, r, 1)
				if items["a"][0] != string(big(c.bytes, 3)) || items["b"][0] != string(big(200, 4)) {
					t.Error("the items are not what was captured")
				}
			})
		})
	}
}

func TestSnapshot_SharedFileThatFails_FailsTheSnapshot(t *testing.T) {
	for _, hook := range []string{"append", "commit-appended"} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, 1)
			r.files.together = true
			r.ops[0].items.Items = [][]byte{big(job.DefaultInlineLimit+1, 3)}
			r.files.hooks[hook] = func() error { return errors.New("disk full") }
			r.start()
			r.j.take()
			r.both(barrierOf(1))
			if got := r.j.take(); !slices.Contains(got, "decline(1, ASYNC_EXCEPTION, operator a: disk full)") && !slices.Contains(got, "decline(1, ASYNC_EXCEPTION, disk full)") {
				t.Errorf("%s: %q", hook, got)
			}
		})
	}
}

// randomState is the state of one operator: items and key groups, some of them empty.
func randomState(r *rand.Rand) (items [][]byte, groups map[int][]byte) {
	sizes := []int{0, 1, 50, 3000, 40_000}
	for range r.IntN(6) {
		items = append(items, textOf(r, sizes[r.IntN(len(sizes))]))
	}
	groups = map[int][]byte{}
	for g := 2; g < 5; g++ {
		groups[g] = textOf(r, sizes[r.IntN(len(sizes))])
	}
	return items, groups
}

// Offsets and checksums are of what is stored, so that a part can be read alone, whatever is in front of it.
func TestFault_B85_CompressedStateInSeveralOperators_ComesBackInAnyParts(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 85))
			r := newRig(t, 3)
			r.files.together, r.files.budget = rng.IntN(2) == 0, sharedPiece
			r.cfg.InlineLimit = []int{1, 2000, 1 << 20}[rng.IntN(3)]
			r.cfg.Compression, r.cfg.Encoder = checkpoint.Zstd, compression.NewEncoder()
			var items [3][][]byte
			var groups [3]map[int][]byte
			for i := range 3 {
				items[i], groups[i] = randomState(rng)
				r.ops[i].items.Items = items[i]
				r.keyed(i, groups[i])
			}
			r.start()
			r.both(barrierOf(1))
			r.j.take()
			_ = r.stop()
			if rng.IntN(2) == 0 {
				dropGroupChecksums(r)
			}

			n := newRig(t, 3)
			n.files.made, n.cfg.Decoder = r.files.made, compression.NewDecoder()
			n.cfg.Restore = restoreOf(r, 1)
			from := 2 + rng.IntN(3)
			clip(n.cfg.Restore, from)
			var ops []*keyedOperator
			for i := range 3 {
				ops = append(ops, n.keyed(i, map[int][]byte{}))
			}
			n.start()
			n.j.take()
			for i, op := range ops {
				if !slices.EqualFunc(op.restored, items[i], bytes.Equal) {
					t.Fatalf("seed %d: operator %d: %d items came back as %d", seed, i, len(items[i]), len(op.restored))
				}
				for g := 2; g < 5; g++ {
					if got, ok := op.groups[g]; ok != (g >= from) || ok && !bytes.Equal(got, groups[i][g]) {
						t.Fatalf("seed %d: operator %d key group %d: %d of %d bytes came back", seed, i, g, len(got), len(groups[i][g]))
					}
				}
			}
		})
	}
}

// dropGroupChecksums makes of an ack what an older version has written.
func dropGroupChecksums(r *rig) {
	for _, op := range r.master.acked[1].Operators {
		op.Keyed.GroupCRC = nil
	}
}

// clip leaves a restore the key groups from the given one on, as Assign does.
func clip(r *Restore, from int) {
	for i := range r.State.Operators {
		for n := range r.State.Operators[i].Keyed {
			k := &r.State.Operators[i].Keyed[n]
			k.Offsets = k.Offsets[from-k.Range.Start:]
			if len(k.GroupCRC) > 0 {
				k.GroupCRC = k.GroupCRC[from-k.Range.Start:]
			}
			k.Range.Start = from
		}
	}
}

func TestRestore_ReadsAndVerifiesOnlyItsKeyGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.cfg.InlineLimit = 10
		r.cfg.KeyGroups = job.KeyGroupRange{Start: 2, End: 102}
		groups := map[int][]byte{}
		for g := 2; g < 102; g++ {
			groups[g] = big(200_000, byte(g))
		}
		r.keyed(0, groups)
		r.start()
		r.both(barrierOf(1))
		r.j.take()
		_ = r.stop()
		name := "j/chk-1/" + checkpoint.StateFile(testAttempt, 1)

		for _, c := range []struct {
			damaged int // key group
			problem string
		}{{51, ""}, {52, "key group 52"}, {101, "key group 101"}} {
			n := newRig(t, 1)
			n.files.made = map[string][]byte{name: bytes.Clone(r.files.made[name])}
			n.cfg.Restore = restoreOf(r, 1)
			k := &n.cfg.Restore.State.Operators[0].Keyed[0]
			n.files.made[name][k.Offsets[c.damaged-2]+3]++
			clip(n.cfg.Restore, 52)
			op := n.keyed(0, map[int][]byte{})
			if c.problem != "" {
				if err := n.start().wait(); !errors.Is(err, checkpoint.ErrChecksum) || !strings.Contains(err.Error(), c.problem) {
					t.Errorf("damage in key group %d: %v", c.damaged, err)
				}
				continue
			}
			n.start()
			n.j.take()
			if want := 50 * 200_000; n.files.bytesRead != want || len(op.groups) != 50 {
				t.Errorf("read %d bytes of %d key groups, want %d of 50", n.files.bytesRead, len(op.groups), want)
			}
			for g, data := range op.groups {
				if !bytes.Equal(data, groups[g]) {
					t.Errorf("key group %d is not what was captured", g)
				}
			}
		}
	})
}

func TestRestore_CompressedStateThatGrowsTooLong_IsPermanent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.cfg.InlineLimit, r.cfg.Compression, r.cfg.Encoder = 10, checkpoint.Zstd, compression.NewEncoder()
		r.keyed(0, map[int][]byte{3: make([]byte, 1<<20)})
		r.start()
		r.both(barrierOf(1))
		r.j.take()
		_ = r.stop()
		for _, decoder := range []*compression.Decoder{nil, compression.NewDecoder()} {
			n := newRig(t, 1)
			n.files.made, n.cfg.Decoder, n.cfg.Restore = r.files.made, decoder, restoreOf(r, 1)
			n.cfg.Restore.State.Operators[0].Keyed[0].Handle.RawLength = 1000
			n.keyed(0, map[int][]byte{})
			if err := n.start().wait(); !stream.IsPermanent(err) {
				t.Errorf("Run returned %v, want it permanent", err)
			}
		}
	})
}

func TestRestore_StopsWithTheTask_WhileItReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.cfg.InlineLimit = 10
		r.keyed(0, map[int][]byte{2: big(readBlock, 1), 3: big(readBlock, 2), 4: big(readBlock, 3)})
		r.start()
		r.both(barrierOf(1))
		r.j.take()
		_ = r.stop()
		n, _ := next(t, r)
		n.cfg.Chain.Operators[0].Operator = &slowRestore{keyedOperator: n.keyed(0, map[int][]byte{}), reached: make(chan struct{}), goOn: make(chan struct{})}
		op := n.cfg.Chain.Operators[0].Operator.(*slowRestore)
		n.start()
		<-op.reached
		n.cancel(errStop)
		close(op.goOn)
		<-n.ended
		if !errors.Is(n.err, errStop) || len(op.groups) != 1 {
			t.Errorf("Run returned %v after %d key groups, want it stopped after one", n.err, len(op.groups))
		}
	})
}

// slowRestore stands still in the first key group.
type slowRestore struct {
	*keyedOperator
	reached, goOn chan struct{}
}

func (o *slowRestore) RestoreGroup(group int, written []stream.StateSchema, data []byte) error {
	if len(o.groups) == 0 {
		close(o.reached)
		<-o.goOn
	}
	return o.keyedOperator.RestoreGroup(group, written, data)
}
