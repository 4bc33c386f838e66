package s3

import (
	"sync"
	"time"
)

// Operation is a kind of request.
type Operation int

// The operations.
const (
	OpPut Operation = iota
	OpGet
	OpHead
	OpList
	OpDelete
	OpUploadBegin
	OpUploadPart
	OpUploadComplete
	OpUploadAbort
	OpUploadList
	operations
)

// String is the label of the metrics.
func (o Operation) String() string {
	return [...]string{
		"put", "get", "head", "list", "delete", "upload-begin", "upload-part", "upload-complete", "upload-abort", "upload-list",
	}[o]
}

// Count is what has been counted of one operation.
type Count struct {
	Operation Operation
	Tries     int64
	Failed    int64 // tries
	Again     int64 // tries that were not the first
	Time      time.Duration
}

// Counts are what a process has asked of object stores since it was started.
type Counts struct {
	Operations   []Count // one for each operation
	BytesRead    int64
	BytesWritten int64
}

// Stats counts requests. It may be used by any number of goroutines.
type Stats struct {
	mu struct {
		sync.Mutex
		counts        [operations]Count
		read, written int64
	}
}

func (s *Stats) add(op Operation, d time.Duration, err error, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.mu.counts[op]
	c.Tries++
	c.Time += d
	if err != nil {
		c.Failed++
	}
	if again {
		c.Again++
	}
}

func (s *Stats) bytes(read, written int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.read += read
	s.mu.written += written
}

// Read gives what was counted so far.
func (s *Stats) Read() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := Counts{BytesRead: s.mu.read, BytesWritten: s.mu.written}
	for op, c := range s.mu.counts {
		c.Operation = Operation(op)
		out.Operations = append(out.Operations, c)
	}
	return out
}
