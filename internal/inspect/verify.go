package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/compression"
	"github.com/weirstream/weir/internal/storage"
)

// Damage is a piece of state that cannot be restored.
type Damage struct {
	Vertex   string
	Operator string // empty: all of the subtask
	Subtask  int
	Problem  string
}

// String is one line for people.
func (d Damage) String() string {
	if d.Operator == "" {
		return fmt.Sprintf("vertex %s subtask %d: %s", d.Vertex, d.Subtask, d.Problem)
	}
	return fmt.Sprintf("operator %s subtask %d: %s", d.Operator, d.Subtask, d.Problem)
}

// Verified is what a verification has found.
type Verified struct {
	Pieces int   // of state that were read
	Bytes  int64 // in them
	Damage []Damage
}

// Verify reads all state that the metadata refers to and compares lengths and checksums. The error is only ctx's: what cannot be read is damage.
func (s *Stored) Verify(ctx context.Context) (Verified, error) {
	v := verifier{stored: s}
	defer v.close()
	for i := range s.Metadata.Vertices {
		vertex := &s.Metadata.Vertices[i]
		v.missingSubtasks(vertex)
		for n := range vertex.Subtasks {
			for _, op := range vertex.Subtasks[n].Operators {
				d := Damage{Vertex: string(vertex.Vertex), Operator: op.Operator, Subtask: vertex.Subtasks[n].Subtask}
				if op.Keyed != nil && op.Keyed.IsNative() {
					v.files(ctx, d, op.Keyed)
				} else if op.Keyed != nil {
					v.piece(ctx, d, "keyed state", op.Keyed.Handle)
				}
				if op.Items != nil {
					v.piece(ctx, d, "list state", op.Items.Handle)
				}
				for _, l := range op.Lists {
					v.piece(ctx, d, "list state "+l.Schema.Name, l.Items.Handle)
				}
				if ctx.Err() != nil {
					return v.out, context.Cause(ctx)
				}
			}
		}
	}
	return v.out, nil
}

// verifier has one file open at a time: the pieces of a subtask lie in one file.
type verifier struct {
	stored *Stored
	out    Verified
	name   string
	file   storage.File
	seen   map[checkpoint.SharedFile]error // files of backends

	decoder *compression.Decoder // nil until something is compressed
}

func (v *verifier) missingSubtasks(vertex *checkpoint.VertexState) {
	there := map[int]bool{}
	for _, s := range vertex.Subtasks {
		there[s.Subtask] = true
	}
	for n := range vertex.Parallelism {
		if !there[n] {
			v.out.Damage = append(v.out.Damage, Damage{Vertex: string(vertex.Vertex), Subtask: n, Problem: "its state is not in the metadata"})
		}
	}
}

func (v *verifier) piece(ctx context.Context, d Damage, what string, h checkpoint.Handle) {
	v.out.Pieces++
	v.out.Bytes += h.Size()
	if err := v.check(ctx, h); err != nil {
		d.Problem = what + ": " + err.Error()
		v.out.Damage = append(v.out.Damage, d)
	}
}

// files verifies those of a state backend. Several subtasks may refer to the same one; it is read once.
func (v *verifier) files(ctx context.Context, d Damage, k *checkpoint.Keyed) {
	if v.seen == nil {
		v.seen = map[checkpoint.SharedFile]error{}
	}
	for _, f := range k.Files {
		f.Name = ""
		err, known := v.seen[f]
		if !known {
			err = v.stored.checkFile(ctx, f)
			v.seen[f] = err
			v.out.Pieces++
			v.out.Bytes += f.Size
		}
		if err != nil {
			d.Problem = "keyed state: " + err.Error()
			v.out.Damage = append(v.out.Damage, d)
		}
	}
}

func (v *verifier) check(ctx context.Context, h checkpoint.Handle) error {
	if h.IsInline() {
		return h.Verify(h.Inline)
	}
	if err := v.open(ctx, h.Path); err != nil {
		return err
	}
	if end := h.Offset + h.Length; end > v.file.Size() {
		return fmt.Errorf("file %s is truncated: it has %d bytes, the state ends at byte %d", h.Path, v.file.Size(), end)
	}
	sum := checkpoint.NewChecksum()
	if _, err := io.Copy(sum, io.NewSectionReader(v.file, h.Offset, h.Length)); err != nil {
		return fmt.Errorf("file %s cannot be read: %w", h.Path, err)
	}
	if got := sum.Sum32(); got != h.CRC32C {
		return fmt.Errorf("%s are damaged: %w: it is %08x, recorded was %08x", h, checkpoint.ErrChecksum, got, h.CRC32C)
	}
	return nil
}

func (v *verifier) open(ctx context.Context, name string) error {
	if v.file != nil && v.name == name {
		return nil
	}
	v.close()
	file, err := v.stored.files.Open(ctx, path.Join(v.stored.dir, name))
	if errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("file %s is missing", name)
	}
	if err != nil {
		return fmt.Errorf("file %s cannot be read: %w", name, err)
	}
	v.name, v.file = name, file
	return nil
}

func (v *verifier) close() {
	if v.file != nil {
		_ = v.file.Close() // was only read
		v.file = nil
	}
}
