package checkpoint

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/location"
)

// SharedDirName is the name of the directory of a job's shared files, beside those of its checkpoints.
const SharedDirName = "shared"

// SharedFile is an immutable file of a state backend. Several checkpoints of a job may refer to the same one.
type SharedFile struct {
	Name string // the backend's own; it says nothing about where the file is
	// Path is "shared/<file>", in the directory beside that of the checkpoint, or "<file>", in the checkpoint's own directory, as in a savepoint,
	// which shares nothing. Either way a job's directory, or a savepoint's, can be moved as a whole.
	Path   string
	Size   int64
	CRC32C uint32 // of the whole file
}

// Shared gives the name of a file in the job's shared directory; false: it is in the directory of its checkpoint.
func (f SharedFile) Shared() (name string, ok bool) {
	return strings.CutPrefix(f.Path, SharedDirName+"/")
}

// In is where the file is, when dir is the directory of its checkpoint, as a storage path or a location.
func (f SharedFile) In(dir string) string {
	if _, shared := f.Shared(); shared {
		parent, _ := location.Split(dir)
		return location.Join(parent, f.Path)
	}
	return location.Join(dir, f.Path)
}

// SharedPath is the path of a file in the job's shared directory.
func SharedPath(name string) string { return SharedDirName + "/" + name }

// SharedDir is the directory of a job's shared files below the checkpoint directory.
func SharedDir(j job.ID) string { return JobDir(j) + "/" + SharedDirName }

// ParseSharedPath finds the job of a path below the checkpoint directory that is a file of the job's shared directory.
func ParseSharedPath(p string) (j job.ID, name string, ok bool) {
	at := strings.LastIndexByte(p, '/')
	if at < 0 {
		return "", "", false
	}
	j, ok = ParseSharedDir(p[:at])
	return j, p[at+1:], ok
}

// ParseSharedDir is the inverse of SharedDir.
func ParseSharedDir(dir string) (job.ID, bool) {
	parent, ok := strings.CutSuffix(dir, "/"+SharedDirName)
	id, escaped := unescape(parent)
	if !ok || !escaped || SharedDir(job.ID(id)) != dir {
		return "", false
	}
	return job.ID(id), true
}

const sharedSuffix = ".shared"

// SharedFileName is the name of a file that an attempt uploads, the n-th that it does. No two uploads have the same name: no attempt of a task is used twice,
// over leaders too, and none counts twice to the same n. It says nothing of what the backend calls the file, since that is used again by the
// next attempt for other content.
func SharedFileName(a job.AttemptID, id ID, n int64) string {
	return fmt.Sprintf("%s-%d-a%d-c%d-n%d%s", label(string(a.Task.Vertex)), a.Task.Subtask, a.Attempt, id, n, sharedSuffix)
}

// ParseSharedFile reads a name that SharedFileName gave: the checkpoint that the file was uploaded for.
func ParseSharedFile(name string) (StateFileName, bool) {
	rest, ok := strings.CutSuffix(name, sharedSuffix)
	at := strings.LastIndex(rest, "-n")
	if !ok || at < 0 {
		return StateFileName{}, false
	}
	if n, err := strconv.ParseInt(rest[at+2:], 10, 64); err != nil || n < 0 || strconv.FormatInt(n, 10) != rest[at+2:] {
		return StateFileName{}, false
	}
	return ParseStateFile(rest[:at] + stateSuffix)
}

// Validate checks that the file cannot be anywhere but in its checkpoint's directory or in the shared one beside it, nor be restored to anywhere
// but below the directory that it is restored to.
func (f SharedFile) Validate() error {
	name, _ := f.Shared()
	if name == "" {
		name = f.Path
	}
	switch {
	case !isFileName(f.Name):
		return fmt.Errorf("name %q is not that of a file", f.Name)
	case !isFileName(name):
		return fmt.Errorf("path %q is neither that of a file in the checkpoint's directory nor %s", f.Path, SharedPath("<file>"))
	case f.Size < 0:
		return fmt.Errorf("file %s has %d bytes", f.Path, f.Size)
	}
	return checkTexts(f.Name, f.Path)
}

// isFileName reports whether s is one element of a path.
func isFileName(s string) bool {
	return len(s) <= MaxFileNameBytes && s != "." && s != SharedDirName && fs.ValidPath(s) && !strings.ContainsAny(s, "/\\\x00")
}

func (k *Keyed) validateFiles() error {
	if len(k.Files) > MaxSharedFiles {
		return fmt.Errorf("%d files, at most %d are possible", len(k.Files), MaxSharedFiles)
	}
	if len(k.Offsets) > 0 || k.Handle.Size() > 0 || !k.Handle.IsInline() {
		return fmt.Errorf("state in files of backend %q has %s too", k.Backend, k.Handle)
	}
	if err := checkTexts(k.Backend); err != nil {
		return err
	}
	names := make(map[string]bool, len(k.Files))
	for _, f := range k.Files {
		if err := f.Validate(); err != nil {
			return err
		}
		if names[f.Name] {
			return fmt.Errorf("file %s occurs twice", f.Name)
		}
		names[f.Name] = true
	}
	return nil
}

func (k *Keyed) fileBytes() (n int64) {
	for _, f := range k.Files {
		n += f.Size
	}
	return n
}

// SharedFiles are the names of the files in the job's shared directory that the state refers to; one may occur more than once.
func (s *SubtaskState) SharedFiles() []string {
	var out []string
	for i := range s.Operators {
		if k := s.Operators[i].Keyed; k != nil {
			for _, f := range k.Files {
				if name, ok := f.Shared(); ok {
					out = append(out, name)
				}
			}
		}
	}
	return out
}

// SharedFiles are the names of the files in the job's shared directory that md refers to, sorted, each once.
func (md *Metadata) SharedFiles() []string {
	var out []string
	for i := range md.Vertices {
		for n := range md.Vertices[i].Subtasks {
			out = append(out, md.Vertices[i].Subtasks[n].SharedFiles()...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// CheckShared reports a shared file that md refers to and that is not among the names in the directory of the shared files.
func (md *Metadata) CheckShared(names []string) error {
	there := make(map[string]bool, len(names))
	for _, name := range names {
		there[name] = true
	}
	for _, name := range md.SharedFiles() {
		if !there[name] {
			return fmt.Errorf("file %s is missing, which checkpoints share; a checkpoint can be moved only with the directory %q beside it", SharedPath(name), SharedDirName)
		}
	}
	return nil
}

// BackendFiles are the files of state backends that md refers to, shared or not; one may occur more than once.
func (md *Metadata) BackendFiles() []SharedFile {
	var out []SharedFile
	for i := range md.Vertices {
		for n := range md.Vertices[i].Subtasks {
			for _, op := range md.Vertices[i].Subtasks[n].Operators {
				if op.Keyed != nil {
					out = append(out, op.Keyed.Files...)
				}
			}
		}
	}
	return out
}
