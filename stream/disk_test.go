package stream

import (
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/job"
)

// inMemory runs f as if the job of its operators had its state in memory, whichever backend the tests run with.
func inMemory(f func()) {
	was := onDisk.state
	onDisk.state = nil
	defer func() { onDisk.state = was }()
	f()
}

// randomKinds is an operator on which random things were done, and what it must have.
func randomKinds(t *testing.T, seed uint64) (*kinds, map[int]row) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 9))
	k, twin := newKinds(t, allGroups()), map[int]row{}
	for range 3000 {
		key := rng.IntN(300)
		k.at(t, key, func(c *Context[int]) { twin[key] = k.step(c, twin[key], rng) })
	}
	return k, twin
}

// holds compares what an operator has of its key groups.
func (k *kinds) holds(t *testing.T, twin map[int]row, groups job.KeyGroupRange, what string) {
	t.Helper()
	for key, r := range twin {
		if !groups.Contains(job.KeyGroupOf(k.ctx.hasher(key), testMaxParallelism)) {
			continue
		}
		k.at(t, key, func(c *Context[int]) {
			if got := k.show(c); got != r.String() {
				t.Errorf("%s: key %d:\n got %s\nwant %s", what, key, got, r)
			}
		})
	}
}

// filesOf are the files of a snapshot of k, which stay until the end of the test.
func filesOf(t *testing.T, k KeyedStateful) []SnapshotFile {
	t.Helper()
	snap := must(k.SnapshotKeyed())(t)
	t.Cleanup(snap.Release)
	return must(snap.(FileSnapshot).Files(t.Context()))(t)
}

// The canonical form goes from each backend into each.
func TestDisk_CanonicalStateGoesBetweenBackends(t *testing.T) {
	if onDisk.state == nil {
		return // it needs both backends: see bothBackends
	}
	for _, way := range []struct {
		name     string
		from, to func(func())
	}{
		{"memory to disk", inMemory, func(f func()) { f() }},
		{"disk to memory", func(f func()) { f() }, inMemory},
	} {
		var from, to *kinds
		var twin map[int]row
		way.from(func() { from, twin = randomKinds(t, 1) })
		way.to(func() { to = newKinds(t, allGroups()) })
		m := &moment{snap: must(from.SnapshotKeyed())(t), data: map[int][]byte{}}
		if m.encode(); m.fault != nil {
			t.Fatal(m.fault)
		}
		for g := range testMaxParallelism {
			must(0, to.RestoreGroup(g, from.Schemas(), m.data[g]))(t)
		}
		to.holds(t, twin, allGroups(), way.name)
	}
}

// Files go to one subtask, to parts of several, and from those back to one.
func TestDisk_FilesAreRestoredAtAnyParallelism(t *testing.T) {
	if onDisk.state == nil {
		return // state in memory has no files
	}
	k, twin := randomKinds(t, 2)
	files, written := filesOf(t, k), k.Schemas()
	for parallelism := 1; parallelism <= 3; parallelism++ {
		var parts []RestoredFiles
		for i := range parallelism {
			groups := job.KeyGroups(i, parallelism, testMaxParallelism)
			next := newKinds(t, groups)
			must(0, next.RestoreFiles(t.Context(), []RestoredFiles{{Groups: groups, Whole: parallelism == 1, Written: written, Files: files}}))(t)
			next.holds(t, twin, groups, "part")
			parts = append(parts, RestoredFiles{Groups: groups, Whole: true, Written: written, Files: filesOf(t, next)})
		}
		whole := newKinds(t, allGroups())
		must(0, whole.RestoreFiles(t.Context(), parts))(t)
		whole.holds(t, maps.Clone(twin), allGroups(), "whole")
	}
}

// Types that have changed are read from files as they are from the canonical form.
func TestDisk_TypesMayEvolveInFiles(t *testing.T) {
	if onDisk.state == nil {
		return // state in memory has no files
	}
	old := NewReducing[int]("text", func(a, b textV1) textV1 { return textV1{a.Text + b.Text, a.Size + b.Size} })
	before := drive(t, allGroups(), old)
	for key := range 100 {
		for range 2 {
			before.at(t, key, func(c *Context[int]) { old.Add(c, textV1{"ab", 2}) })
		}
	}
	files := filesOf(t, before)
	for _, groups := range []job.KeyGroupRange{allGroups(), {Start: 3, End: 9}} {
		now := NewReducing[int]("text", func(a, b textV2) textV2 { return textV2{a.Added + b.Added, a.Size + b.Size, a.Text + b.Text} })
		added := NewValue[int, string]("added")
		after := drive(t, groups, added, now)
		must(0, after.RestoreFiles(t.Context(), []RestoredFiles{{Groups: groups, Whole: groups == allGroups(), Written: before.Schemas(), Files: files}}))(t)
		for key := range 100 {
			if !groups.Contains(job.KeyGroupOf(after.ctx.hasher(key), testMaxParallelism)) {
				continue
			}
			after.at(t, key, func(c *Context[int]) {
				if got, ok := now.Get(c); !ok || got != (textV2{0, 4, "abab"}) {
					t.Errorf("key %d has %+v, %v", key, got, ok)
				}
			})
		}
	}
}

func TestDisk_FilesNeedTheBackend(t *testing.T) {
	inMemory(func() {
		d := drive(t, allGroups(), NewValue[int, string]("s"))
		err := d.RestoreFiles(t.Context(), []RestoredFiles{{Groups: allGroups()}})
		if !IsPermanent(err) || !strings.Contains(err.Error(), "--state-backend") || d.Backend() != "memory" {
			t.Errorf("backend %s: got %v, want a permanent error with the remedy", d.Backend(), err)
		}
	})
}
