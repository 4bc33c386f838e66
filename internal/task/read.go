package task

import (
	"context"
	"fmt"
	"sync"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream"
)

// The limits of what a restore has in memory of the keyed state that it reads.
const (
	// readBlock is how many stored bytes are read at a time; more when a single key group has more.
	readBlock = 4 << 20
	// readAhead is how many blocks are read beside the one that is being decoded.
	readAhead = 2
)

// readItems reads list state whole.
func (t *Task) readItems(ctx context.Context, parts []checkpoint.Items) ([][]byte, error) {
	var out [][]byte
	for _, part := range parts {
		data, err := t.readWhole(ctx, part.Handle)
		if err != nil {
			return nil, err
		}
		raw := rawBudget{h: part.Handle, left: part.Handle.RawLength}
		for i := range part.Len() {
			item, err := raw.append(t, nil, part.Item(data, i))
			if err != nil {
				return nil, err
			}
			out = append(out, item)
		}
	}
	return out, nil
}

// readWhole reads and verifies all bytes of a handle.
func (t *Task) readWhole(ctx context.Context, h checkpoint.Handle) ([]byte, error) {
	r, err := t.cfg.Files.Open(ctx, t.cfg.Restore.Dir, h)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data := make([]byte, h.Size())
	return data, r.Read(ctx, data, 0, func() error { return h.Verify(data) })
}

// rawBudget bounds what the parts of a handle can become.
type rawBudget struct {
	h    checkpoint.Handle
	left int64
}

// append appends what a stored part holds. State of a compression that is unknown, or longer than recorded, is damaged for good.
func (b *rawBudget) append(t *Task, dst, stored []byte) ([]byte, error) {
	if b.h.Compression == checkpoint.Uncompressed {
		return append(dst, stored...), nil
	}
	if t.cfg.Decoder == nil {
		return dst, stream.Permanent(fmt.Errorf("state in %s is compressed by %s, which this task cannot read", b.h, b.h.Compression))
	}
	out, err := t.cfg.Decoder.Append(dst, stored, b.h.Compression, b.left)
	if err != nil {
		return dst, stream.Permanent(fmt.Errorf("state in %s is damaged: %w; start from another checkpoint", b.h, err))
	}
	b.left -= int64(len(out) - len(dst))
	return out, nil
}

// block is key groups that were read together.
type block struct {
	first  int    // key group
	data   []byte // of all of them
	ends   []int  // of each in data
	stored []byte // what was read, to be used again
	err    error
}

// restoreKeyed gives the operator the key groups of k. They are read beside the decoding, some ahead of it.
func (t *Task) restoreKeyed(ctx context.Context, s stream.KeyedStateful, k checkpoint.Keyed) error {
	written := make([]stream.StateSchema, len(k.States))
	for i, st := range k.States {
		written[i] = stream.StateSchema(st)
	}
	ctx, cancel := context.WithCancel(ctx)
	var reader sync.WaitGroup
	defer reader.Wait()
	defer cancel()
	blocks, used := make(chan block, readAhead), make(chan block, readAhead+2)
	reader.Go(func() {
		defer close(blocks)
		if err := t.readKeyed(ctx, k, blocks, used); err != nil {
			select {
			case blocks <- block{err: err}:
			case <-ctx.Done():
			}
		}
	})
	for b := range blocks {
		if b.err != nil {
			return b.err
		}
		from := 0
		for i, to := range b.ends {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := s.RestoreGroup(b.first+i, written, b.data[from:to:to]); err != nil {
				return err
			}
			from = to
		}
		used <- b // there is room for every block
	}
	return context.Cause(ctx)
}

// readKeyed sends the key groups of k in their order. It uses again the memory of blocks that come back.
func (t *Task) readKeyed(ctx context.Context, k checkpoint.Keyed, blocks chan<- block, used <-chan block) error {
	r, err := t.cfg.Files.Open(ctx, t.cfg.Restore.Dir, k.Handle)
	if err != nil {
		return err
	}
	defer r.Close()
	if len(k.GroupCRC) == 0 {
		if err := r.Verify(ctx); err != nil {
			return err
		}
	}
	raw := rawBudget{h: k.Handle, left: k.Handle.RawLength}
	for g := k.Range.Start; g < k.Range.End; {
		var b block
		select {
		case b = <-used:
		default:
		}
		b.first, g = g, blockEnd(&k, g)
		if err := t.readBlock(ctx, r, &k, &b, g, &raw); err != nil {
			return err
		}
		select {
		case blocks <- b:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// blockEnd is the end of the key groups that are read together with the group first.
func blockEnd(k *checkpoint.Keyed, first int) int {
	i := first - k.Range.Start
	end := first + 1
	for end < k.Range.End && k.Offsets[end+1-k.Range.Start]-k.Offsets[i] <= readBlock {
		end++
	}
	return end
}

// readBlock reads the key groups from b.first up to end, and verifies them.
func (t *Task) readBlock(ctx context.Context, r StateReader, k *checkpoint.Keyed, b *block, end int, raw *rawBudget) error {
	at := k.Offsets[b.first-k.Range.Start]
	n := int(k.Offsets[end-k.Range.Start] - at)
	if cap(b.stored) < n {
		b.stored = make([]byte, n)
	}
	b.stored = b.stored[:n]
	groups := job.KeyGroupRange{Start: b.first, End: end}
	if err := r.Read(ctx, b.stored, at, func() error { return k.VerifyGroups(b.stored, groups) }); err != nil {
		return err
	}
	b.data, b.ends = b.data[:0], b.ends[:0]
	if k.Handle.Compression == checkpoint.Uncompressed {
		b.data = b.stored
	}
	for g := b.first; g < end; g++ {
		from, to := k.Offsets[g-k.Range.Start]-at, k.Offsets[g+1-k.Range.Start]-at
		if k.Handle.Compression == checkpoint.Uncompressed {
			b.ends = append(b.ends, int(to))
			continue
		}
		var err error
		if b.data, err = raw.append(t, b.data, b.stored[from:to]); err != nil {
			return err
		}
		b.ends = append(b.ends, len(b.data))
	}
	return nil
}
