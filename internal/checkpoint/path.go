package checkpoint

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/weirstream/weir/internal/job"
)

// MetadataFile is the name of the file that makes a directory a completed checkpoint.
const MetadataFile = "_metadata"

const (
	dirPrefix       = "chk-"
	savepointPrefix = "savepoint-"
	stateSuffix     = ".state"
	segmentSuffix   = ".segment"
	shortJobBytes   = 8
	// maxLabelBytes keeps the names of state files below the 255 bytes that file systems allow.
	maxLabelBytes = 150
)

// JobDir is the directory of a job's checkpoints below the checkpoint directory.
func JobDir(j job.ID) string { return escape(string(j)) }

// Dir is the directory of one checkpoint below the checkpoint directory: "<job>/chk-<n>".
func Dir(j job.ID, id ID) string {
	return JobDir(j) + "/" + dirPrefix + strconv.FormatInt(int64(id), 10)
}

// ParseDir is the inverse of Dir.
func ParseDir(dir string) (job.ID, ID, bool) {
	parent, name, ok := strings.Cut(dir, "/")
	digits, isChk := strings.CutPrefix(name, dirPrefix)
	j, escaped := unescape(parent)
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || !isChk || !escaped || err != nil || n < 1 || Dir(job.ID(j), ID(n)) != dir {
		return "", 0, false
	}
	return job.ID(j), ID(n), true
}

// SavepointDir is the name of a savepoint's directory below the directory that the user gave: "savepoint-<job short>-<random>". random
// comes from the caller, because two savepoints of one job may be taken into one directory.
func SavepointDir(j job.ID, random string) string {
	return savepointPrefix + escape(string(j[:min(len(j), shortJobBytes)])) + "-" + random
}

// IsSavepointDir reports whether name, the last element of a path, is one that SavepointDir gives.
func IsSavepointDir(name string) bool {
	rest, ok := strings.CutPrefix(name, savepointPrefix)
	return ok && strings.Contains(rest, "-")
}

// StateFile is the name of the file in the checkpoint's directory that holds a task's state. It is different for every attempt, so that
// a task that should be dead never overwrites what its successor wrote.
func StateFile(a job.AttemptID, id ID) string {
	return fmt.Sprintf("%s-%d-a%d-c%d%s", label(string(a.Task.Vertex)), a.Task.Subtask, a.Attempt, id, stateSuffix)
}

// AttemptDir is the directory of what an attempt has on the disk of its executor, below a directory of its job.
func AttemptDir(a job.AttemptID) string {
	return fmt.Sprintf("%s-%d-a%d", label(string(a.Task.Vertex)), a.Task.Subtask, a.Attempt)
}

// StateFileName is what the name of a state file says.
type StateFileName struct {
	Vertex  string // escaped, and shortened if it was very long
	Subtask int
	Attempt int
	ID      ID
}

// ParseStateFile reads a name that StateFile gave.
func ParseStateFile(name string) (StateFileName, bool) {
	rest, ok := strings.CutSuffix(name, stateSuffix)
	parts := strings.Split(rest, "-")
	n := len(parts)
	if !ok || n < 4 {
		return StateFileName{}, false
	}
	subtask, err1 := strconv.Atoi(parts[n-3])
	attempt, err2 := strconv.Atoi(strings.TrimPrefix(parts[n-2], "a"))
	id, err3 := strconv.ParseInt(strings.TrimPrefix(parts[n-1], "c"), 10, 64)
	if err1 != nil || err2 != nil || err3 != nil {
		return StateFileName{}, false
	}
	out := StateFileName{Vertex: strings.Join(parts[:n-3], "-"), Subtask: subtask, Attempt: attempt, ID: ID(id)}
	if fmt.Sprintf("%s-%d-a%d-c%d%s", out.Vertex, out.Subtask, out.Attempt, out.ID, stateSuffix) != name {
		return StateFileName{}, false
	}
	return out, true
}

// SegmentFile is the name of a file in the checkpoint's directory that holds state of several tasks of an executor. incarnation is of the process of
// the executor and n counts its segments, so that no name is used twice.
func SegmentFile(executor job.ExecutorID, incarnation string, n int64, id ID) string {
	return fmt.Sprintf("%s-%s-s%d-c%d%s", label(string(executor)), escape(incarnation), n, id, segmentSuffix)
}

// IsSegmentFile reports whether name is one that SegmentFile gives.
func IsSegmentFile(name string) bool {
	rest, ok := strings.CutSuffix(name, segmentSuffix)
	parts := strings.Split(rest, "-")
	n := len(parts)
	if !ok || n < 4 {
		return false
	}
	number, err1 := strconv.ParseInt(strings.TrimPrefix(parts[n-2], "s"), 10, 64)
	id, err2 := strconv.ParseInt(strings.TrimPrefix(parts[n-1], "c"), 10, 64)
	return err1 == nil && err2 == nil && fmt.Sprintf("s%d-c%d", number, id) == parts[n-2]+"-"+parts[n-1]
}

// IsStateFile reports whether name is that of a file with state in a checkpoint's directory.
func IsStateFile(name string) bool {
	_, state := ParseStateFile(name)
	return state || IsSegmentFile(name)
}

// label is the escaped name, shortened to fit into a file name; a hash keeps shortened names apart.
func label(name string) string {
	e := escape(name)
	if len(e) <= maxLabelBytes {
		return e
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	return fmt.Sprintf("%s~%016x", e[:maxLabelBytes-17], h.Sum64())
}

// escape makes any name one element of a path: letters, digits, "_", "-" and dots that do not lead stay, other bytes become %XX.
func escape(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; plain(c) && (c != '.' || i > 0) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func unescape(name string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] != '%' {
			b.WriteByte(name[i])
			continue
		}
		if i+2 >= len(name) {
			return "", false
		}
		c, err := strconv.ParseUint(name[i+1:i+3], 16, 8)
		if err != nil {
			return "", false
		}
		b.WriteByte(byte(c))
		i += 2
	}
	return b.String(), true
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}
