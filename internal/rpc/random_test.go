package rpc

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// randomValue makes a value of the domain with every field set most of the time. It goes by types, so that a field that is added to the domain
// and forgotten in a conversion breaks the round trip.
func randomValue[T any](r *rand.Rand) T {
	var out T
	fill(r, reflect.ValueOf(&out).Elem())
	return out
}

var enumSizes = map[reflect.Type]int{
	reflect.TypeFor[job.TaskState]():           9,
	reflect.TypeFor[job.State]():               8,
	reflect.TypeFor[job.FailureClass]():        3,
	reflect.TypeFor[job.Partitioning]():        4,
	reflect.TypeFor[job.StopMode]():            3,
	reflect.TypeFor[job.SavepointFormat]():     2,
	reflect.TypeFor[job.ListMode]():            3,
	reflect.TypeFor[checkpoint.Kind]():         2,
	reflect.TypeFor[checkpoint.Verdict]():      5,
	reflect.TypeFor[gateway.CheckpointState](): 4,
}

func fill(r *rand.Rand, v reflect.Value) {
	if n, ok := enumSizes[v.Type()]; ok {
		v.SetInt(1 + r.Int64N(int64(n)))
		return
	}
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		*p = time.UnixMilli(1 + r.Int64N(4e12)).UTC()
	case *time.Duration:
		*p = time.Duration(1+r.IntN(1e6)) * time.Millisecond
	case *job.Graph:
		*p = randomGraph(r)
	case *gateway.DeployTasks:
		fillStruct(r, v)
		fitDeployment(r, p)
	case *checkpoint.Items:
		p.Handle, p.Offsets = randomHandle(r, r.IntN(5))
	case *checkpoint.Keyed:
		groups := r.IntN(5)
		p.Range.Start = r.IntN(100)
		p.Range.End = p.Range.Start + groups
		p.Handle, p.Offsets = randomHandle(r, groups)
		for range groups * r.IntN(2) {
			p.GroupCRC = append(p.GroupCRC, r.Uint32())
		}
		p.States = randomValue[[]checkpoint.StateSchema](r)
		if r.IntN(3) == 0 {
			p.Handle, p.Offsets, p.Backend, p.Clipped = checkpoint.Handle{}, nil, "pebble", r.IntN(2) == 0
			for i := range r.IntN(4) {
				f := checkpoint.SharedFile{Name: fmt.Sprint(i), Path: fmt.Sprintf("%d.sst", r.IntN(1e6)), Size: r.Int64N(1e6), CRC32C: r.Uint32()}
				if r.IntN(2) == 0 {
					f.Path = checkpoint.SharedPath(f.Path)
				}
				p.Files = append(p.Files, f)
			}
		}
	default:
		fillKind(r, v)
	}
}

func fillKind(r *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		fillStruct(r, v)
	case reflect.Pointer:
		if r.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem())
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	case reflect.Slice:
		if n := r.IntN(4); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fill(r, v.Index(i))
			}
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 1 + r.IntN(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(r, key)
			fill(r, value)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("ü%x", r.Uint64()))
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 1)
	case reflect.Int:
		v.SetInt(1 + r.Int64N(1e6))
	case reflect.Int64:
		v.SetInt(1 + r.Int64())
	case reflect.Uint64:
		v.SetUint(r.Uint64())
	case reflect.Uint8:
		v.SetUint(r.Uint64() % 256)
	case reflect.Float64:
		v.SetFloat(r.Float64())
	default:
		panic(fmt.Sprintf("no random value for %s", v.Type()))
	}
}

func fillStruct(r *rand.Rand, v reflect.Value) {
	for i := range v.NumField() {
		fill(r, v.Field(i))
	}
}

// randomHandle answers a handle, inline or not, and the offsets of parts in it, which need not cover it.
func randomHandle(r *rand.Rand, parts int) (checkpoint.Handle, []int64) {
	offsets := []int64{r.Int64N(3)}
	for range parts {
		offsets = append(offsets, offsets[len(offsets)-1]+r.Int64N(5))
	}
	data := make([]byte, offsets[parts]+1+r.Int64N(3))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	h := checkpoint.InlineHandle(data)
	if r.IntN(2) == 0 {
		h = checkpoint.FileHandle(fmt.Sprintf("dir/%x.state", r.Uint32()), r.Int64N(1e9), data)
	}
	if r.IntN(2) == 0 {
		h.Compression, h.RawLength = checkpoint.Zstd, r.Int64N(1e9)
	}
	return h, offsets
}

func randomGraph(r *rand.Rand) job.Graph {
	g := job.Graph{
		Name: randomValue[string](r), Params: randomValue[map[string]string](r), Fingerprint: randomValue[string](r),
		MasterHooks: randomValue[[]string](r),
	}
	for range 1 + r.IntN(3) {
		v := randomValue[job.Vertex](r)
		v.MaxParallelism = 1 + r.IntN(job.MaxMaxParallelism)
		v.Parallelism = 1 + r.IntN(v.MaxParallelism)
		g.Vertices = append(g.Vertices, v)
	}
	for range r.IntN(3) {
		e := randomValue[job.Edge](r)
		e.From, e.To = g.Vertices[r.IntN(len(g.Vertices))].ID, g.Vertices[r.IntN(len(g.Vertices))].ID
		g.Edges = append(g.Edges, e)
	}
	return g
}

// fitDeployment makes the tasks of d those of its graph.
func fitDeployment(r *rand.Rand, d *gateway.DeployTasks) {
	g := randomGraph(r)
	d.Graph = &g
	for i := range d.Tasks {
		v := &g.Vertices[r.IntN(len(g.Vertices))]
		t := &d.Tasks[i]
		t.Attempt.Job = d.Job
		t.Attempt.Task = job.TaskID{Vertex: v.ID, Subtask: r.IntN(v.Parallelism)}
		t.Splits = nil
		for split := range v.Splits {
			t.Splits = append(t.Splits, split)
		}
	}
}
