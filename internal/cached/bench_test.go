package cached_test

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"github.com/weirstream/weir/internal/cached"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/lsm"
	"github.com/weirstream/weir/stream/codec"
)

// benchKeys is how many keys there are. The memory is 256 MiB for 10 million, and as much less as there are fewer.
var benchKeys = flag.Int("keys", 200_000, "keys of the benchmarks of state on disk")

func benchMemory() int64 { return int64(*benchKeys) * (256 << 20) / 10_000_000 }

type (
	key16   struct{ A, B uint64 }
	value32 [4]uint64
)

func keyNumber(n int) key16 {
	u := uint64(n) * 0x9E3779B97F4A7C15
	return key16{u ^ u>>29, uint64(n)}
}

// benchState is one table over all key groups, with the memory split as an executor does it.
type benchState struct {
	*cached.Operator
	table *cached.Table[key16, value32]
	hash  func(key16) uint64
	stats func() cached.Stats
}

func newBenchState(b *testing.B, memory int64) *benchState {
	b.Helper()
	blocks := lsm.NewCache(memory / 3)
	b.Cleanup(blocks.Close)
	backend := cached.New(lsm.Disk{Cache: blocks}, memory-memory/3)
	dir := filepath.Join(b.TempDir(), "state")
	s := &benchState{hash: must(codec.Hash[key16]())(b), stats: backend.Stats}
	s.Operator = backend.NewOperator(cached.OperatorConfig{
		Groups: job.KeyGroupRange{End: 128}, MaxParallelism: 128, Dir: func() (string, error) { return dir, os.MkdirAll(dir, 0o755) },
	})
	s.table = cached.NewTable(s.Operator, cached.TableConfig[key16, value32]{
		Name: "bench", Keys: must(codec.For[key16]())(b), Values: must(codec.For[value32]())(b), Hash: s.hash, Plain: true,
	})
	b.Cleanup(func() { must(0, s.Close())(b) })
	return s
}

func (s *benchState) update(n int) {
	k := keyNumber(n)
	v, _ := s.table.Ref(s.hash(k), k)
	v[0]++
}

// bareDB is Pebble as one would use it for the same, with the same memory in all.
type bareDB struct {
	db  *pebble.DB
	buf [48]byte
}

func newBareDB(b *testing.B, memory int64) *bareDB {
	b.Helper()
	memtable := max(1<<20, memory/4)
	cache := pebble.NewCache(max(1<<20, memory-memtable))
	defer cache.Unref()
	o := &pebble.Options{
		Cache: cache, DisableWAL: true, MemTableSize: uint64(memtable), FormatMajorVersion: pebble.FormatNewest, Logger: quiet{}, MaxOpenFiles: 500,
	}
	for i := range o.Levels {
		o.Levels[i].BlockSize, o.Levels[i].FilterPolicy = 16<<10, bloom.FilterPolicy(10)
	}
	db := must(pebble.Open(filepath.Join(b.TempDir(), "bare"), o))(b)
	b.Cleanup(func() { must(0, db.Close())(b) })
	return &bareDB{db: db}
}

type quiet struct{}

func (quiet) Infof(string, ...any)           {}
func (quiet) Errorf(string, ...any)          {}
func (quiet) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

func (d *bareDB) update(b *testing.B, n int) {
	k := keyNumber(n)
	binary.BigEndian.PutUint64(d.buf[:], k.A)
	binary.BigEndian.PutUint64(d.buf[8:], k.B)
	value := d.buf[16:]
	clear(value)
	old, done, err := d.db.Get(d.buf[:16])
	if err == nil {
		copy(value, old)
		err = done.Close()
	} else if errors.Is(err, pebble.ErrNotFound) {
		err = nil
	}
	binary.LittleEndian.PutUint64(value, binary.LittleEndian.Uint64(value)+1)
	if err = errors.Join(err, d.db.Set(d.buf[:16], value, pebble.NoSync)); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkUpdate_AgainstBarePebble interleaves rounds of updates on both and reports the median of the ratios: above 1 we are faster.
func BenchmarkUpdate_AgainstBarePebble(b *testing.B) {
	const rounds = 7
	for _, shape := range []string{"zipf", "uniform"} {
		b.Run(fmt.Sprintf("%s/%dk", shape, *benchKeys/1000), func(b *testing.B) {
			ours, bare := newBenchState(b, benchMemory()), newBareDB(b, benchMemory())
			for n := range *benchKeys {
				ours.update(n)
				bare.update(b, n)
			}
			r := rand.New(rand.NewPCG(1, 1))
			zipf := rand.NewZipf(r, 1.1, 1, uint64(*benchKeys-1))
			next := func() int {
				if shape == "zipf" {
					return int(zipf.Uint64() * 2654435761 % uint64(*benchKeys)) // hot keys are anywhere
				}
				return r.IntN(*benchKeys)
			}
			updates := make([]int, *benchKeys/2)
			b.ResetTimer()
			for range b.N {
				var ratios, mine, theirs []float64
				for range rounds {
					for i := range updates {
						updates[i] = next()
					}
					start := time.Now()
					for _, n := range updates {
						ours.update(n)
					}
					middle := time.Now()
					for _, n := range updates {
						bare.update(b, n)
					}
					a, c := middle.Sub(start), time.Since(middle)
					ratios = append(ratios, float64(c)/float64(a))
					mine, theirs = append(mine, float64(a)/float64(len(updates))), append(theirs, float64(c)/float64(len(updates)))
				}
				b.ReportMetric(median(ratios), "x-bare-pebble")
				b.ReportMetric(median(mine), "ns/update")
				b.ReportMetric(median(theirs), "ns/bare")
			}
		})
	}
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// BenchmarkSnapshot_Incremental changes 5 % of the keys, evenly spread, before each of some snapshots, and reports how much of a full one is new in them: the
// mean, the most, and how long the task stood still.
func BenchmarkSnapshot_Incremental(b *testing.B) {
	const snapshots = 24
	b.Run(fmt.Sprintf("%dk", *benchKeys/1000), func(b *testing.B) {
		for range b.N {
			s := newBenchState(b, benchMemory())
			for n := range *benchKeys {
				s.update(n)
			}
			known := map[string]bool{}
			take := func() (fresh, all int64, stood time.Duration) {
				start := time.Now()
				snap := must(s.Snapshot(true))(b)
				stood = time.Since(start)
				for _, f := range must(snap.Files())(b) {
					all += f.Size
					if !known[f.Name] {
						fresh += f.Size
					}
					known[f.Name] = true
				}
				snap.Release()
				return fresh, all, stood
			}
			full, _, _ := take()
			r := rand.New(rand.NewPCG(2, 2))
			var shares, stood, sizes []float64
			for range snapshots {
				for range *benchKeys / 20 {
					s.update(r.IntN(*benchKeys))
				}
				fresh, all, d := take()
				shares, sizes = append(shares, 100*float64(fresh)/float64(full)), append(sizes, 100*float64(all)/float64(full))
				stood = append(stood, float64(d)/1e3)
			}
			mean := 0.0
			for _, v := range shares {
				mean += v / float64(len(shares))
			}
			b.ReportMetric(mean, "%-new-mean")
			b.ReportMetric(slices.Max(shares), "%-new-most")
			b.ReportMetric(sizes[len(sizes)-1], "%-size-at-end")
			b.ReportMetric(median(stood), "us-sync")
			b.ReportMetric(float64(full), "B-full")
		}
	})
}
