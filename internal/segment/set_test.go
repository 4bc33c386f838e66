package segment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inStorage are segments in a fake storage.
type inStorage struct{ *storagetest.Mem }

func (s inStorage) Create(ctx context.Context, dir, name string) (Writer, error) {
	return s.Mem.Create(ctx, path.Join(dir, name))
}

func (s inStorage) Remove(ctx context.Context, dir, name string) error {
	return s.Mem.Remove(ctx, path.Join(dir, name))
}

func newSet(maxOpen int, maxBuffered int64) *Set {
	return New(Config{
		Log: zap.NewNop(), MaxOpen: maxOpen, MaxBuffered: maxBuffered,
		Name: func(n Number, id checkpoint.ID) string { return checkpoint.SegmentFile("x", "1f", int64(n), id) },
	})
}

const dir = "j/chk-7"

func list(t *testing.T, mem *storagetest.Mem) []storage.Info {
	t.Helper()
	infos, err := mem.List(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	return infos
}

// idle checks that nothing is left in the set.
func (s *Set) idle(t *testing.T) {
	t.Helper()
	s.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.files)+len(s.mu.core.segments) > 0 || s.mu.buffered != 0 {
		t.Errorf("left: %d files, %d segments, %d bytes", len(s.mu.files), len(s.mu.core.segments), s.mu.buffered)
	}
}

// stored is a piece and where it is.
type stored struct {
	location Location
	data     []byte
}

func TestSet_TasksShareOneFile_WhichIsPublishedWhenTheLastIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, set := storagetest.NewMem(), newSet(0, 0)
		var wg sync.WaitGroup
		var leave []func()
		for i := range 3 {
			leave = append(leave, set.Join(t.Context(), taskOf(i)))
		}
		start := time.Now()
		for i := range 3 {
			wg.Go(func() {
				p := set.Begin(inStorage{mem}, dir, taskOf(i), 7)
				time.Sleep(time.Duration(i) * time.Millisecond)
				if i < 2 { // the last one has nothing for a file
					l, err := p.Append(t.Context(), bytes.Repeat([]byte{byte(i)}, 100))
					if err != nil || l.Offset != int64(100*i) {
						t.Errorf("task %d: %+v, %v", i, l, err)
					}
				}
				if err := p.Commit(t.Context()); err != nil {
					t.Error(err)
				}
				p.Settle(t.Context(), true)
			})
		}
		wg.Wait()
		if took := time.Since(start); took != 2*time.Millisecond {
			t.Errorf("it took %s, want no linger", took)
		}
		if files := list(t, mem); len(files) != 1 || files[0].Size != 200 || !checkpoint.IsSegmentFile(path.Base(files[0].Path)) {
			t.Errorf("files %+v", files)
		}
		for _, l := range leave {
			l()
		}
		set.idle(t)
	})
}

func TestSet_OneThatIsSlow_HoldsUpTheOthersForTheLingerOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, set := storagetest.NewMem(), newSet(0, 0)
		defer set.Join(t.Context(), taskOf(0))()
		defer set.Join(t.Context(), taskOf(1))()
		start := time.Now()
		fast, slow := set.Begin(inStorage{mem}, dir, taskOf(0), 7), set.Begin(inStorage{mem}, dir, taskOf(1), 7)
		if _, err := slow.Append(t.Context(), []byte("early")); err != nil {
			t.Fatal(err)
		}
		if _, err := fast.Append(t.Context(), []byte("all")); err != nil {
			t.Fatal(err)
		}
		if err := fast.Commit(t.Context()); err != nil || time.Since(start) != DefaultLinger {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		late, err := slow.Append(t.Context(), []byte("late"))
		if err != nil || late.Offset != 0 {
			t.Errorf("%+v, %v: want it in a file of its own", late, err)
		}
		if err := slow.Commit(t.Context()); err != nil || time.Since(start) != DefaultLinger {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		slow.Settle(t.Context(), false)
		if files := list(t, mem); len(files) != 1 || files[0].Size != int64(len("earlyall")) {
			t.Errorf("files %+v, want the one that somebody may refer to", files)
		}
		fast.Settle(t.Context(), false)
		if files := list(t, mem); len(files) != 0 {
			t.Errorf("files %+v", files)
		}
		set.idle(t)
	})
}

func TestSet_StalledStorage_HoldsUpNobodyWhoGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, set := storagetest.NewMem(), newSet(0, 0)
		stall := make(chan struct{})
		mem.SetFaults(func(op storagetest.Op) storagetest.Fault {
			if op.Kind == storagetest.Write {
				return storagetest.Fault{Stall: stall}
			}
			return storagetest.Fault{}
		})
		defer set.Join(t.Context(), taskOf(0))()
		p := set.Begin(inStorage{mem}, dir, taskOf(0), 7)
		if !p.Grow(10) {
			t.Error("there is memory")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.Append(ctx, []byte("x")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		p.Settle(t.Context(), false)
		close(stall)
		set.idle(t)
		if files := list(t, mem); len(files) != 0 {
			t.Errorf("files %+v", files)
		}
	})
}

func TestSet_LimitsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, set := storagetest.NewMem(), newSet(2, 100)
		defer set.Join(t.Context(), taskOf(0))()
		var parts []*Part
		for id := range 3 {
			p := set.Begin(inStorage{mem}, dir, taskOf(0), checkpoint.ID(id+1))
			parts = append(parts, p)
			if ok := p.Grow(50); ok != (id < 2) {
				t.Errorf("part %d may hold 50 bytes more: %t", id, ok)
			}
		}
		for id, p := range parts {
			if _, err := p.Append(t.Context(), []byte("x")); errors.Is(err, ErrFull) != (id == 2) {
				t.Errorf("part %d: %v", id, err)
			}
		}
		if p := parts[2]; !p.Grow(100) || p.Grow(1) {
			t.Error("what was written is not given back")
		}
		for _, p := range parts {
			p.Settle(t.Context(), false)
		}
		set.idle(t)
	})
}

// run is tasks that write a checkpoint at once, with faults and crashes of their own.
type run struct {
	rng  *rand.Rand
	mem  *storagetest.Mem
	set  *Set
	mu   sync.Mutex
	kept [][]stored // of parts whose ack may have counted
}

// random draws under the lock, because tasks share the source.
func (r *run) random(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rng.IntN(n)
}

// part writes as a task does, and gives up when ctx ends.
func (r *run) part(ctx context.Context, task job.AttemptID, id checkpoint.ID) {
	p := r.set.Begin(inStorage{r.mem}, fmt.Sprintf("j/chk-%d", id), task, id)
	pieces, err := r.write(ctx, p)
	if err == nil {
		err = p.Commit(ctx)
	}
	keep := err == nil && r.random(4) > 0 // else the ack came too late
	if keep {
		r.mu.Lock()
		r.kept = append(r.kept, pieces)
		r.mu.Unlock()
	}
	p.Settle(context.WithoutCancel(ctx), keep)
}

func (r *run) write(ctx context.Context, p *Part) (pieces []stored, err error) {
	for i := range r.random(4) {
		time.Sleep(time.Duration(r.random(8)) * time.Millisecond)
		data := bytes.Repeat([]byte{byte(r.random(250)), byte(i)}, 1+r.random(100))
		p.Grow(len(data))
		l, err := p.Append(ctx, data)
		if errors.Is(err, ErrFull) {
			continue
		}
		if err != nil {
			return nil, err
		}
		l.Path = p.dir + "/" + l.Path
		pieces = append(pieces, stored{l, data})
	}
	return pieces, nil
}

func (r *run) play(t *testing.T, cancels bool) {
	var tasks sync.WaitGroup
	for n := range 4 {
		task := taskOf(n)
		delay := time.Duration(r.random(10)) * time.Millisecond
		tasks.Go(func() {
			time.Sleep(delay)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if cancels && r.random(3) == 0 {
				stop := time.AfterFunc(time.Duration(r.random(30))*time.Millisecond, cancel)
				defer stop.Stop()
			}
			leave := r.set.Join(ctx, task)
			defer leave()
			var parts sync.WaitGroup
			for id := checkpoint.ID(1); id <= 3; id++ {
				time.Sleep(time.Duration(r.random(6)) * time.Millisecond)
				parts.Go(func() { r.part(ctx, task, id) })
			}
			parts.Wait()
		})
	}
	tasks.Wait()
	r.set.idle(t)
}

// check reads all that may be referred to. Each file has a reason.
func (r *run) check(t *testing.T, seed uint64, exact bool) {
	referred := map[string]bool{}
	for _, pieces := range r.kept {
		for _, p := range pieces {
			referred[p.location.Path] = true
			data, err := r.mem.ReadFile(context.Background(), p.location.Path, 1<<20)
			from := p.location.Offset
			if err != nil || from+int64(len(p.data)) > int64(len(data)) || !bytes.Equal(data[from:from+int64(len(p.data))], p.data) {
				t.Fatalf("seed %d: %+v is not what was written: %v", seed, p.location, err)
			}
		}
	}
	if !exact {
		return
	}
	for _, f := range list(t, r.mem) {
		if !referred[f.Path] {
			t.Fatalf("seed %d: nobody refers to %s", seed, f.Path)
		}
	}
}

// Tasks give up at random points, and the storage fails at others: what is left is what somebody may refer to.
func TestFault_B75_TasksThatGiveUpAtRandomPoints_LeaveOnlyFilesThatAreReferredTo(t *testing.T) {
	for seed := range uint64(1000) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 75))
			r := &run{rng: rng, mem: storagetest.NewMem(), set: newSet(1+rng.IntN(4), 300)}
			failing := rng.IntN(2) == 0
			r.mem.SetFaults(func(op storagetest.Op) storagetest.Fault {
				if !failing || op.Kind == storagetest.Remove || r.random(15) > 0 {
					return storagetest.Fault{}
				}
				if op.Kind == storagetest.Commit && r.random(2) == 0 {
					return storagetest.Fault{After: errors.New("no answer")}
				}
				return storagetest.Fault{Before: errors.New("disk full")}
			})
			r.play(t, true)
			r.mem.SetFaults(nil)
			r.check(t, seed, true)
		})
	}
}

// A storage that cannot sync says so, and then loses what it had: nothing of that was said to be durable.
func TestFault_B76_CrashBehindRandomSyncFailures_LosesNothingThatWasDurable(t *testing.T) {
	for seed := range uint64(500) {
		synctest.Test(t, func(t *testing.T) {
			r := &run{rng: rand.New(rand.NewPCG(seed, 76)), mem: storagetest.NewMem(), set: newSet(4, 300)}
			r.mem.SetFaults(func(op storagetest.Op) storagetest.Fault {
				if op.Kind != storagetest.Commit || r.random(3) > 0 {
					return storagetest.Fault{}
				}
				return storagetest.Fault{Unsynced: true, After: errors.New("sync failed")}
			})
			r.play(t, false)
			r.mem.SetFaults(nil)
			r.mem.Crash()
			r.check(t, seed, false)
		})
	}
}
