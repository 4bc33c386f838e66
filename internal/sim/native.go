package sim

import (
	"context"
	"encoding/binary"
	"fmt"
	"path"
	"slices"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/retention"
)

// backendName is that of the simulated state backend.
const backendName = "lsm"

// lsm is keyed state in immutable files, as a backend has it that holds more than fits into memory: each snapshot writes what has changed into a new
// file, and from time to time all files become one. Its names begin anew with each attempt, behind those that it was restored from: so two
// attempts give the same name to different files.
type lsm struct {
	t     *simTask
	files []lsmFile // oldest first; what is in a later one counts
	next  int
	dirty map[int]bool // keys that have changed since the latest file
}

type lsmFile struct {
	name string
	data []byte
}

// newLSM returns nil for a job whose state is in memory.
func newLSM(t *simTask) *lsm {
	if !t.s.cfg.Native {
		return nil
	}
	return &lsm{t: t, dirty: map[int]bool{}}
}

// set changes a count.
func (o *keyedOp) set(key, count int) {
	o.counts[key] = count
	if o.files != nil {
		o.files.dirty[key] = true
	}
}

// capture gives the files that hold all counts.
func (l *lsm) capture(counts map[int]int) []lsmFile {
	if len(l.files) > 0 && l.t.s.chance(0.15) {
		l.files, l.dirty = nil, map[int]bool{}
		for key := range counts {
			l.dirty[key] = true
		}
	}
	var data []byte
	for key := range l.t.load.keys {
		if l.dirty[key] {
			data = binary.AppendUvarint(binary.AppendUvarint(data, uint64(key)), uint64(counts[key]))
		}
	}
	if len(data) > 0 {
		l.next++
		l.files = append(l.files, lsmFile{fmt.Sprintf("%06d.sst", l.next), data})
		clear(l.dirty)
	}
	return append([]lsmFile{}, l.files...)
}

// restoreFiles takes over the files of one old subtask as they are, and of several, or a part, the counts.
func (o *keyedOp) restoreFiles(op checkpoint.OperatorRestore) error {
	for _, k := range op.Keyed {
		counts := map[int]int{}
		var files []lsmFile
		for _, f := range k.Files {
			data, err := o.t.fetch(f)
			if err != nil {
				return err
			}
			files = append(files, lsmFile{f.Name, data})
			decodeCounts(data, func(key, count int) { counts[key] = count })
		}
		whole := len(op.Keyed) == 1 && !k.Clipped
		for key := range o.t.load.keys {
			if k.Range.Contains(groupOf(key)) && counts[key] > 0 {
				o.set(key, counts[key])
			}
		}
		if whole {
			o.files.files = files
			clear(o.files.dirty)
			if n := len(files); n > 0 {
				_, _ = fmt.Sscanf(files[n-1].name, "%d", &o.files.next)
			}
		}
	}
	return nil
}

// fetch reads a file of the restored checkpoint and verifies it.
func (t *simTask) fetch(f checkpoint.SharedFile) ([]byte, error) {
	data, err := t.s.store.ReadFile(context.Background(), f.In(t.restore.Dir), 1<<20)
	if err != nil {
		return nil, err
	}
	if int64(len(data)) != f.Size || checkpoint.Checksum(data) != f.CRC32C {
		t.s.violate("I3", "%s restores %s from %s, which is another file", t.attempt, f.Name, f.Path)
	}
	return data, nil
}

func (p *snapshot) isNative() bool { return p.part.files != nil && p.cp.Format != job.FormatCanonical }

// writeFiles uploads, one after the other, what the base does not have, and acknowledges.
func (p *snapshot) writeFiles(state checkpoint.SubtaskState) {
	t, operator := p.t, string(p.t.attempt.Task.Vertex)
	k := &checkpoint.Keyed{Range: t.keyGroups(), Backend: backendName}
	var upload func(rest []lsmFile)
	upload = func(rest []lsmFile) {
		if p.stopped {
			p.failed(errStopped)
			return
		}
		if len(rest) == 0 {
			if p.cp.Format == job.FormatNone {
				t.record.Refers(p.id(), operator, k.Files)
			}
			state.Operators = append(state.Operators, checkpoint.OperatorState{Operator: operator, Keyed: k})
			p.acknowledge(state)
			return
		}
		f := rest[0]
		if known, ok := p.inBase(operator, f); ok {
			t.s.faults["shared file used again"]++
			k.Files = append(k.Files, known)
			upload(rest[1:])
			return
		}
		p.beside("upload", func() {
			file, err := p.upload(f)
			if err != nil {
				p.failed(err)
				return
			}
			k.Files = append(k.Files, file)
			upload(rest[1:])
		})
	}
	upload(p.part.files)
}

func (p *snapshot) inBase(operator string, f lsmFile) (checkpoint.SharedFile, bool) {
	if p.cp.Base == 0 || p.cp.Format != job.FormatNone {
		return checkpoint.SharedFile{}, false
	}
	p.t.record.Based(checkpoint.ID(p.cp.Base))
	return p.t.record.Find(checkpoint.ID(p.cp.Base), operator, f.name, int64(len(f.data)))
}

func (p *snapshot) upload(f lsmFile) (checkpoint.SharedFile, error) {
	p.t.uploaded++
	out := checkpoint.SharedFile{
		Name: f.name, Path: checkpoint.SharedFileName(p.t.attempt, p.id(), p.t.uploaded), Size: int64(len(f.data)), CRC32C: checkpoint.Checksum(f.data),
	}
	if p.cp.Format == job.FormatNone {
		out.Path = checkpoint.SharedPath(out.Path)
	}
	p.paths = append(p.paths, out.Path)
	w, err := p.t.s.store.Create(context.Background(), out.In(p.cp.Dir))
	if err != nil {
		return out, err
	}
	defer w.Abort()
	if _, err := w.Write(f.data); err != nil {
		return out, err
	}
	return out, w.Commit()
}

// removeUploads deletes what the snapshot has uploaded, and nothing that it found in its base.
func (p *snapshot) removeUploads() {
	p.t.record.Over(p.id())
	for _, name := range p.paths {
		if err := p.t.s.store.Remove(context.Background(), checkpoint.SharedFile{Path: name}.In(p.cp.Dir)); err != nil {
			p.t.s.note("      shared file left behind: %v", err)
		}
	}
}

// readCounts reads the keyed state of one subtask, in either form, without faults.
func (s *Sim) readCounts(dir string, k *checkpoint.Keyed) (map[int]int, error) {
	counts := map[int]int{}
	into := func(key, count int) { counts[key] = count }
	if !k.IsNative() {
		data, err := s.readState(dir, k.Handle)
		decodeCounts(data, into)
		return counts, err
	}
	for _, f := range k.Files {
		data, err := s.readShared(dir, f)
		if err != nil {
			return nil, err
		}
		decodeCounts(data, into)
	}
	return counts, nil
}

// readShared reads a file of a backend, without faults, and sees that it is the one that was written.
func (s *Sim) readShared(dir string, f checkpoint.SharedFile) (data []byte, err error) {
	s.quietly(func() { data, err = s.store.ReadFile(context.Background(), f.In(dir), 1<<20) })
	if err == nil && (int64(len(data)) != f.Size || checkpoint.Checksum(data) != f.CRC32C) {
		err = fmt.Errorf("%s is another file than the one that was written as %s", f.Path, f.Name)
	}
	return data, err
}

// checkShared is I3 for the files of backends.
func (s *Sim) checkShared(dir string, md *checkpoint.Metadata) error {
	for _, v := range md.Vertices {
		for _, sub := range v.Subtasks {
			for _, op := range sub.Operators {
				if op.Keyed == nil {
					continue
				}
				for _, f := range op.Keyed.Files {
					if _, err := s.readShared(dir, f); err != nil {
						return fmt.Errorf("%s of %s: %w", f.Name, op.Operator, err)
					}
				}
			}
		}
	}
	return nil
}

// sharedBy reports whether metadata refers to a file as a shared one.
func sharedBy(facts *retention.SweepFacts, file string) bool {
	for dir, md := range facts.Metadata {
		if name := path.Base(file); path.Join(path.Dir(dir), checkpoint.SharedPath(name)) == file && slices.Contains(md.SharedFiles(), name) {
			return true
		}
	}
	return false
}

// anyFormat is that of a savepoint.
func (s *Sim) anyFormat() job.SavepointFormat {
	if !s.cfg.Native {
		return job.FormatNone
	}
	return job.FormatCanonical + job.SavepointFormat(s.rng.IntN(2))
}
