package task

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// files are state files in memory. Unless together is set no piece may be with those of other tasks.
type files struct {
	j        *journal
	mu       sync.Mutex
	made     map[string][]byte
	hooks    map[string]func() error // create, write, commit, append, commit-appended
	together bool
	budget   int // bytes that Grow grants

	attempt   job.AttemptID
	bytesRead int
}

func (f *files) hook(name string) error {
	if h := f.hooks[name]; h != nil {
		return h()
	}
	return nil
}

func (f *files) Begin(dir string, id checkpoint.ID) SnapshotFiles {
	return &snapshotFiles{files: f, dir: dir, id: id}
}

// snapshotFiles are those of one snapshot.
type snapshotFiles struct {
	*files
	dir  string
	id   checkpoint.ID
	held int
}

func (s *snapshotFiles) Create(context.Context) (StateFile, error) {
	if err := s.hook("create"); err != nil {
		return nil, err
	}
	return &file{files: s.files, dir: s.dir, name: checkpoint.StateFile(s.attempt, s.id)}, nil
}

func (s *snapshotFiles) Grow(n int) bool {
	ok := s.held+n <= s.budget
	if ok {
		s.held += n
	}
	return ok
}

func (s *snapshotFiles) Shrink() { s.held = 0 }

const sharedFile = "shared.segment"

func (s *snapshotFiles) Append(_ context.Context, data []byte) (string, int64, bool, error) {
	if !s.together {
		return "", 0, false, nil
	}
	s.held = 0
	err := s.hook("append")
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	name := s.dir + "/" + sharedFile
	offset := len(s.files.made[name])
	s.files.made[name] = append(s.files.made[name], data...)
	return sharedFile, int64(offset), err == nil, err
}

func (s *snapshotFiles) Commit(context.Context) error { return s.hook("commit-appended") }

func (s *snapshotFiles) Settle(_ context.Context, keep bool) error {
	if s.held > 0 {
		return errors.New("memory was not given back")
	}
	if keep {
		return nil
	}
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	s.j.add("remove(%d)", s.id)
	delete(s.files.made, s.dir+"/"+checkpoint.StateFile(s.attempt, s.id))
	return nil
}

func (f *files) Open(_ context.Context, dir string, h checkpoint.Handle) (StateReader, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	data := h.Inline
	if !h.IsInline() {
		all, ok := f.made[dir+"/"+h.Path]
		if !ok || h.Offset+h.Length > int64(len(all)) {
			return nil, fmt.Errorf("file %s/%s is missing or short", dir, h.Path)
		}
		data = all[h.Offset : h.Offset+h.Length]
	}
	return &stateReader{f, h, data}, nil
}

// read returns all stored bytes of a handle, verified.
func (f *files) read(dir string, h checkpoint.Handle) ([]byte, error) {
	r, err := f.Open(context.Background(), dir, h)
	if err != nil {
		return nil, err
	}
	return r.(*stateReader).data, r.Verify(context.Background())
}

// stateReader reads from memory, and counts the bytes.
type stateReader struct {
	files  *files
	handle checkpoint.Handle
	data   []byte
}

func (r *stateReader) Read(_ context.Context, data []byte, offset int64, check func() error) error {
	n := copy(data, r.data[offset:])
	r.files.mu.Lock()
	r.files.bytesRead += n
	r.files.mu.Unlock()
	return check()
}

func (r *stateReader) Verify(context.Context) error { return r.handle.Verify(r.data) }
func (r *stateReader) Close()                       {}

func (f *files) names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.made))
}

type file struct {
	files     *files
	dir, name string
	data      []byte
	done      bool
}

func (f *file) Name() string { return f.name }

func (f *file) Write(p []byte) (int, error) {
	if err := f.files.hook("write"); err != nil {
		return 0, err
	}
	f.data = append(f.data, p...)
	return len(p), nil
}

func (f *file) Commit() error {
	if err := f.files.hook("commit"); err != nil {
		return err
	}
	f.done = true
	f.files.mu.Lock()
	defer f.files.mu.Unlock()
	f.files.made[f.dir+"/"+f.name] = f.data
	return nil
}

func (f *file) Abort() {
	if !f.done {
		f.files.j.add("abort-file")
	}
}
