package checkpoint

import (
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/weirstream/weir/internal/job"
)

// Limits of what a metadata file may hold. They bound what a damaged or hostile file can make a reader allocate.
const (
	MaxMetadataBytes     = 256 << 20 // length of the whole file
	MaxStringBytes       = 1 << 20   // length of one string
	MaxPathBytes         = 4096      // length of the path in a handle
	MaxVertices          = 10_000    // of a job
	MaxOperators         = 1_000     // of a vertex
	MaxStates            = 1_000     // declared by an operator
	MaxItemsPerHandle    = 4 << 20   // items of one operator in one subtask
	MaxParams            = 10_000    // of a job
	MaxMasterStates      = 1_000     // of a job
	MaxMasterStateBytes  = 64 << 10  // of one hook
	MaxSubtasksPerVertex = job.MaxMaxParallelism
	MaxSharedFiles       = 100_000 // of one operator in one subtask
	MaxFileNameBytes     = 255     // of a shared file, by either of its names
)

// Validate checks that a restore can rely on md: everything that is referred to is there, ranges fit and paths stay in the directory.
func (md *Metadata) Validate() error {
	switch {
	case md.Job == "":
		return fmt.Errorf("no job id")
	case md.ID < 1:
		return fmt.Errorf("checkpoint id is %d, the first is 1", md.ID)
	case md.Kind != Checkpoint && md.Kind != Savepoint:
		return fmt.Errorf("unknown kind %d", md.Kind)
	case len(md.Vertices) > MaxVertices:
		return fmt.Errorf("%d vertices, at most %d are possible", len(md.Vertices), MaxVertices)
	case len(md.Params) > MaxParams:
		return fmt.Errorf("%d parameters, at most %d are possible", len(md.Params), MaxParams)
	}
	if err := validateMasterStates(md.MasterStates); err != nil {
		return err
	}
	texts := []string{string(md.Job), md.JobName, md.Fingerprint}
	for k, v := range md.Params {
		texts = append(texts, k, v)
	}
	if err := checkTexts(texts...); err != nil {
		return err
	}
	vertices, operators := map[job.VertexID]bool{}, map[string]job.VertexID{}
	for i := range md.Vertices {
		v := &md.Vertices[i]
		if vertices[v.Vertex] {
			return fmt.Errorf("vertex %s occurs twice", v.Vertex)
		}
		vertices[v.Vertex] = true
		for _, op := range v.Operators {
			if other, ok := operators[op.ID]; ok {
				return fmt.Errorf("operator %s is in vertex %s and in vertex %s", op.ID, other, v.Vertex)
			}
			operators[op.ID] = v.Vertex
		}
		if err := v.validate(); err != nil {
			return fmt.Errorf("vertex %s: %w", v.Vertex, err)
		}
	}
	return nil
}

func (v *VertexState) validate() error {
	switch {
	case v.Vertex == "":
		return fmt.Errorf("no vertex id")
	case v.MaxParallelism < 1 || v.MaxParallelism > job.MaxMaxParallelism:
		return fmt.Errorf("max parallelism is %d, it is at least 1 and at most %d", v.MaxParallelism, job.MaxMaxParallelism)
	case v.Parallelism < 1 || v.Parallelism > v.MaxParallelism:
		return fmt.Errorf("parallelism is %d, it is at least 1 and at most %d", v.Parallelism, v.MaxParallelism)
	case len(v.Operators) > MaxOperators:
		return fmt.Errorf("%d operators, at most %d are possible", len(v.Operators), MaxOperators)
	}
	if err := checkTexts(string(v.Vertex)); err != nil {
		return err
	}
	known := map[string]bool{}
	for _, op := range v.Operators {
		if err := validateOperator(op); err != nil {
			return fmt.Errorf("operator %q: %w", op.ID, err)
		}
		known[op.ID] = true
	}
	last := -1
	for i := range v.Subtasks {
		s := &v.Subtasks[i]
		if s.Subtask <= last || s.Subtask >= v.Parallelism {
			return fmt.Errorf("subtask %d after subtask %d at parallelism %d", s.Subtask, last, v.Parallelism)
		}
		last = s.Subtask
		if err := s.validate(v.MaxParallelism, known); err != nil {
			return fmt.Errorf("subtask %d: %w", s.Subtask, err)
		}
	}
	return nil
}

func validateOperator(op job.Operator) error {
	if op.ID == "" {
		return fmt.Errorf("no operator id")
	}
	if len(op.States) > MaxStates {
		return fmt.Errorf("%d states, at most %d are possible", len(op.States), MaxStates)
	}
	return checkTexts(append([]string{op.ID, op.Kind, op.Signature}, op.States...)...)
}

func (s *SubtaskState) validate(maxParallelism int, known map[string]bool) error {
	seen := map[string]bool{}
	for _, op := range s.Operators {
		if !known[op.Operator] {
			return fmt.Errorf("state of operator %q, which the vertex does not have", op.Operator)
		}
		if seen[op.Operator] {
			return fmt.Errorf("state of operator %s occurs twice", op.Operator)
		}
		seen[op.Operator] = true
		if op.Items != nil {
			if err := op.Items.Validate(); err != nil {
				return fmt.Errorf("items of operator %s: %w", op.Operator, err)
			}
		}
		if op.Keyed != nil {
			if err := op.Keyed.Validate(maxParallelism); err != nil {
				return fmt.Errorf("keyed state of operator %s: %w", op.Operator, err)
			}
		}
		if err := validateLists(op.Lists); err != nil {
			return fmt.Errorf("operator %s: %w", op.Operator, err)
		}
	}
	return nil
}

// Validate checks that every item lies within the handle.
func (it *Items) Validate() error {
	if it.Len() > MaxItemsPerHandle {
		return fmt.Errorf("%d items, at most %d are possible", it.Len(), MaxItemsPerHandle)
	}
	if err := it.Handle.Validate(); err != nil {
		return err
	}
	return validateOffsets(it.Offsets, it.Handle.Size())
}

// Validate checks that every key group lies within the handle, and the range within the key groups that exist.
func (k *Keyed) Validate(maxParallelism int) error {
	if k.Range.Start < 0 || k.Range.End < k.Range.Start || k.Range.End > maxParallelism {
		return fmt.Errorf("key groups %s are not in [0,%d)", k.Range, maxParallelism)
	}
	if k.IsNative() {
		if err := k.validateFiles(); err != nil {
			return err
		}
	} else if len(k.Files) > 0 || k.Clipped {
		return fmt.Errorf("state without a backend has %d files", len(k.Files))
	} else if len(k.Offsets) != k.Range.Len()+1 {
		return fmt.Errorf("key groups %s need %d offsets, there are %d", k.Range, k.Range.Len()+1, len(k.Offsets))
	}
	if len(k.States) > MaxStates {
		return fmt.Errorf("%d states, at most %d are possible", len(k.States), MaxStates)
	}
	for _, s := range k.States {
		if err := checkTexts(s.Name, s.Kind, s.KeyType, s.ValueType); err != nil {
			return err
		}
	}
	if n := len(k.GroupCRC); n > 0 && n != k.Range.Len() {
		return fmt.Errorf("key groups %s need %d checksums, there are %d", k.Range, k.Range.Len(), n)
	}
	if err := k.Handle.Validate(); err != nil {
		return err
	}
	return validateOffsets(k.Offsets, k.Handle.Size())
}

// Validate checks that the handle can be read without leaving the directory of the checkpoint.
func (h Handle) Validate() error {
	switch {
	case h.Compression != Uncompressed && h.Compression != Zstd:
		return fmt.Errorf("state of unknown %s; read it with the build that wrote it or a later one", h.Compression)
	case h.RawLength < 0 || h.Compression == Uncompressed && h.RawLength != 0:
		return fmt.Errorf("state of compression %s has the raw length %d", h.Compression, h.RawLength)
	}
	if h.IsInline() {
		if h.Offset != 0 || h.Length != int64(len(h.Inline)) {
			return fmt.Errorf("handle without a path has %d inline bytes, but offset %d and length %d", len(h.Inline), h.Offset, h.Length)
		}
		return nil
	}
	if len(h.Inline) > 0 {
		return fmt.Errorf("handle has both a path and %d inline bytes", len(h.Inline))
	}
	if h.Offset < 0 || h.Length < 0 || h.Offset+h.Length < h.Offset {
		return fmt.Errorf("handle of %s has offset %d and length %d", h.Path, h.Offset, h.Length)
	}
	return ValidatePath(h.Path)
}

// ValidatePath checks that p, the path of a handle, is relative, slash-separated and stays below the directory that it is relative to.
func ValidatePath(p string) error {
	switch {
	case len(p) > MaxPathBytes:
		return fmt.Errorf("path of %d bytes, at most %d are possible", len(p), MaxPathBytes)
	case p == "." || !fs.ValidPath(p) || strings.ContainsAny(p, "\\\x00"):
		return fmt.Errorf("path %q is not a relative path below the checkpoint's directory", p)
	}
	return nil
}

func validateOffsets(offsets []int64, size int64) error {
	last := int64(0)
	for i, o := range offsets {
		if o < last || o > size {
			return fmt.Errorf("offset %d is %d, it must be at least %d and at most %d", i, o, last, size)
		}
		last = o
	}
	return nil
}

// checkTexts refuses what the wire refuses too, so that metadata that can be written can be shown.
func checkTexts(texts ...string) error {
	for _, s := range texts {
		if len(s) > MaxStringBytes {
			return fmt.Errorf("string of %d bytes, at most %d are possible", len(s), MaxStringBytes)
		}
		if !utf8.ValidString(s) {
			return fmt.Errorf("string %q is not UTF-8", s)
		}
	}
	return nil
}
