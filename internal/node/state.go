package node

import (
	"bytes"
	"math"
	"os"
	"strconv"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/cached"
	"github.com/weirstream/weir/internal/lsm"
	"github.com/weirstream/weir/internal/workdir"
)

// MinStateMemory is the least memory for state on disk that an executor gets by with, in bytes.
const MinStateMemory = 8 << 20

const (
	// memoryShare is the part of the machine's memory, or of the limit that the process is under, that state on disk may use: 1/memoryShare.
	memoryShare = 4
	// assumedMemory is what a machine is taken to have that does not say.
	assumedMemory = 2 << 30
	// blockShare is the part of that for blocks of files; the rest is for entries.
	blockShare = 3
)

// hostState is what an executor has on the disk of its host.
type hostState struct {
	dir     *workdir.Dir
	blocks  *lsm.Cache
	backend *cached.Backend
	log     *zap.Logger
}

// newHostState returns the directory dataDir and a state backend on it with so much memory; 0: a quarter of what there is.
func newHostState(dataDir string, memory int64, log *zap.Logger) *hostState {
	if memory == 0 {
		memory = max(MinStateMemory, availableMemory(os.ReadFile)/memoryShare)
	}
	blocks := lsm.NewCache(memory / blockShare)
	return &hostState{
		dir: workdir.New(dataDir), blocks: blocks, backend: cached.New(lsm.Disk{Cache: blocks}, memory-memory/blockShare), log: log,
	}
}

// close is called when the executor has ended.
func (h *hostState) close() {
	h.blocks.Close()
	if err := h.dir.Close(); err != nil {
		h.log.Warn("files of tasks left behind", zap.Error(err))
	}
}

// availableMemory is the memory of the machine, or the limit that the process is under, in bytes.
func availableMemory(read func(file string) ([]byte, error)) int64 {
	least := int64(math.MaxInt64)
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		data, err := read(file)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(string(bytes.TrimSpace(data)), 10, 64); err == nil && n > 0 { // "max" is no limit
			least = min(least, n)
		}
	}
	if data, err := read("/proc/meminfo"); err == nil {
		fields := bytes.Fields(data)
		for i := 0; i+1 < len(fields); i++ {
			if n, err := strconv.ParseInt(string(fields[i+1]), 10, 64); err == nil && string(fields[i]) == "MemTotal:" {
				least = min(least, n<<10)
			}
		}
	}
	if least == math.MaxInt64 {
		return assumedMemory
	}
	return least
}
