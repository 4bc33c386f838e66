package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"time"

	"github.com/weirstream/weir/stream"
)

// The job store fills a keyed state and then updates it at a rate. Each update is of one of window keys, which are others in each second: so window is
// how many keys are dirty at a checkpoint every second.

// update is a record of the job store.
type update struct {
	Key  int64
	Sent int64 // nanoseconds, when the source emitted it; 0 while the state is being filled
}

// row is what the job keeps of a key: with its key 64 bytes in memory, and hardly less in a checkpoint.
type row struct {
	Count      int64
	A, B, C, D uint64
	E, F       uint64
}

func store(j *stream.Job) error {
	n := j.IntParam("keys", 1_000_000)
	src := &storeSource{keys: int64(n), window: int64(j.IntParam("window", n)), rate: int64(j.IntParam("rate", 0))}
	small := j.BoolParam("small", false)
	byKey := stream.KeyBy(stream.From(j, "updates", src), func(u update) int64 { return u.Key })
	var stored stream.Stream[update]
	if small {
		counts := stream.NewValue[int64, int64]("counts")
		stored = stream.Process(byKey, "store", func(c *stream.Context[int64], u update, emit func(update) error) error {
			v, _ := counts.Get(c)
			counts.Set(c, v+1)
			return emit(u)
		}, counts)
	} else {
		rows := stream.NewValue[int64, row]("rows")
		stored = stream.Process(byKey, "store", func(c *stream.Context[int64], u update, emit func(update) error) error {
			r, ok := rows.Get(c)
			if !ok {
				h := uint64(u.Key)*0x9E3779B97F4A7C15 | 1<<63 // so that each is written with its full length
				r = row{A: h, B: h ^ 1, C: h ^ 2, D: h ^ 3, E: h ^ 4, F: h ^ 5}
			}
			r.Count++
			rows.Set(c, r)
			return emit(u)
		}, rows)
	}
	stream.To(stored, "probe", probe{dir: j.Param("probes")})
	return nil
}

// storeSource emits each key once, as fast as it can, and then updates at a rate; 0 is unlimited.
type storeSource struct{ keys, window, rate int64 }

// Splits implements stream.Source.
func (s *storeSource) Splits(_ context.Context, parallelism int) ([][]byte, error) {
	splits := make([][]byte, parallelism)
	for i := range splits {
		splits[i] = position{int64(i), int64(parallelism)}.encode()
	}
	return splits, nil
}

// Open implements stream.Source.
func (s *storeSource) Open(env stream.SourceEnv) (stream.Reader[update], error) {
	r := &storeReader{storeSource: s}
	for _, item := range env.Splits {
		if len(item) != 16 {
			return nil, stream.Permanent(fmt.Errorf("a position has %d bytes", len(item)))
		}
		r.at = append(r.at, position{int64(binary.LittleEndian.Uint64(item)), int64(binary.LittleEndian.Uint64(item[8:]))})
	}
	return r, nil
}

// position is of the numbers next, next+stride and so on.
type position struct{ next, stride int64 }

func (p position) encode() []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(p.next)), uint64(p.stride))
}

type storeReader struct {
	*storeSource
	at      []position
	turn    int
	started time.Time // when the first update was due
	sent    int64     // updates since
}

// Read implements stream.Reader.
func (r *storeReader) Read(out stream.Collector[update], limit int) (stream.Next, error) {
	if len(r.at) == 0 {
		return stream.End, nil
	}
	p := &r.at[r.turn]
	r.turn = (r.turn + 1) % len(r.at)
	var sent int64
	if p.next >= r.keys && r.rate > 0 {
		now := time.Now()
		if r.started.IsZero() {
			r.started = now
		}
		share := r.rate * int64(len(r.at)) / p.stride // of this subtask in each second
		due := int64(now.Sub(r.started)) * share / int64(time.Second)
		if due <= r.sent {
			return stream.WaitUntil(now.Add(time.Millisecond)), nil
		}
		limit = min(limit, int(due-r.sent))
		r.sent += int64(limit)
		sent = now.UnixNano()
	}
	for range limit {
		if err := out.Collect(stream.NoTimestamp, update{Key: r.key(p.next), Sent: sent}); err != nil {
			return stream.More, err
		}
		p.next += p.stride
	}
	return stream.More, nil
}

// perWindow is how many updates fall on the same keys when the rate is not limited.
const perWindow = 2_000_000

// key is the key of a number: all in turn at first, then those of a window that moves on.
func (r *storeReader) key(i int64) int64 {
	if i < r.keys {
		return i
	}
	i -= r.keys
	each := r.rate
	if each == 0 {
		each = perWindow
	}
	start := i / each * r.window
	return (start + int64(scramble(uint64(i))%uint64(r.window))) % r.keys
}

func scramble(x uint64) uint64 {
	hi, lo := bits.Mul64(x^0x2545F4914F6CDD1D, 0x9E3779B97F4A7C15)
	return hi ^ lo
}

// Positions implements stream.Reader.
func (r *storeReader) Positions() ([][]byte, error) {
	var items [][]byte
	for _, p := range r.at {
		items = append(items, p.encode())
	}
	return items, nil
}

// Close implements stream.Reader.
func (r *storeReader) Close() error { return nil }

// probe is a sink that counts, and keeps a histogram of how old records are. It writes both into a file of its subtask, some times a second.
type probe struct{ dir string }

// Open implements stream.Sink.
func (p probe) Open(env stream.SinkEnv) (stream.Writer[update], error) {
	f, err := os.Create(filepath.Join(p.dir, fmt.Sprintf("probe-%d-%d", env.Subtask, env.Attempt)))
	if err != nil {
		return nil, err
	}
	return &probeWriter{file: f}, nil
}

type probeWriter struct {
	file  *os.File
	seen  reading
	calls int
	wrote int64
}

// readEvery is after how many records the clock is read.
const readEvery = 64

// probePause is the time between two entries of a probe's file.
const probePause = 20 * time.Millisecond

// Write implements stream.Writer.
func (w *probeWriter) Write(_ stream.Timestamp, u update) error {
	w.seen.Count++
	if w.calls++; w.calls%readEvery != 0 {
		return nil
	}
	now := time.Now().UnixNano()
	if u.Sent > 0 {
		w.seen.Ages[bucketOf(now-u.Sent)]++
	}
	if now-w.wrote < int64(probePause) {
		return nil
	}
	w.wrote, w.seen.Time = now, now
	return binary.Write(w.file, binary.LittleEndian, &w.seen)
}

// Flush implements stream.Writer.
func (w *probeWriter) Flush() error { return nil }

// Close implements stream.Writer.
func (w *probeWriter) Close() error { return w.file.Close() }

// reading is what a probe has seen until some time.
type reading struct {
	Time  int64 // nanoseconds
	Count int64
	Ages  [ageBuckets]int64 // of one record in readEvery
}

// ageBuckets are eight for each doubling of the age.
const (
	ageBuckets   = 320
	ageSubBucket = 3
)

func bucketOf(age int64) int {
	v := uint64(max(age, 1))
	exp := bits.Len64(v) - 1
	if exp <= ageSubBucket {
		return int(v)
	}
	return min((exp-ageSubBucket+1)<<ageSubBucket|int(v>>(exp-ageSubBucket)&(1<<ageSubBucket-1)), ageBuckets-1)
}

// ageOf is the upper end of a bucket.
func ageOf(bucket int) time.Duration {
	exp := bucket>>ageSubBucket - 1 + ageSubBucket
	if bucket < 2<<ageSubBucket {
		return time.Duration(bucket)
	}
	return time.Duration((1<<ageSubBucket|bucket&(1<<ageSubBucket-1))+1) << (exp - ageSubBucket)
}

// readProbes adds up what the probes in dir had seen by a time.
func readProbes(dir string, by time.Time) (total reading, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "probe-*"))
	if err != nil || len(names) == 0 {
		return total, errors.Join(err, errors.New("no sink has written a probe"))
	}
	for _, name := range names {
		last, err := lastReading(name, by)
		if err != nil {
			return total, err
		}
		total.Time = max(total.Time, last.Time)
		total.Count += last.Count
		for i, n := range last.Ages {
			total.Ages[i] += n
		}
	}
	return total, nil
}

// lastReading finds the last entry of a probe's file until a time. The entry at the end may be half written.
func lastReading(name string, by time.Time) (last reading, err error) {
	f, err := os.Open(name)
	if err != nil {
		return last, err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return last, err
	}
	size := int64(binary.Size(last))
	for at := info.Size()/size - 1; at >= 0; at-- {
		data := make([]byte, size)
		if _, err := f.ReadAt(data, at*size); err != nil {
			return last, err
		}
		if _, err := binary.Decode(data, binary.LittleEndian, &last); err != nil {
			return last, err
		}
		if last.Time <= by.UnixNano() {
			return last, nil
		}
	}
	return reading{}, nil
}

// since is what was seen after an earlier reading.
func (r reading) since(before reading) reading {
	r.Count -= before.Count
	for i := range r.Ages {
		r.Ages[i] -= before.Ages[i]
	}
	return r
}

// add adds what another reading has seen.
func (r *reading) add(o reading) {
	r.Count += o.Count
	for i := range r.Ages {
		r.Ages[i] += o.Ages[i]
	}
}

// age is the age that so many of a thousand records do not exceed.
func (r reading) age(perMille int64) time.Duration {
	total := int64(0)
	for _, n := range r.Ages {
		total += n
	}
	below := int64(0)
	for i, n := range r.Ages {
		if below += n; below*1000 >= total*perMille && below > 0 {
			return ageOf(i)
		}
	}
	return 0
}
