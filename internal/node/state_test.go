package node

import (
	"errors"
	"testing"
)

func TestAvailableMemory_IsTheLeastThatIsKnown(t *testing.T) {
	const v1, v2, machine = "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max", "/proc/meminfo"
	for _, c := range []struct {
		files map[string]string
		want  int64
	}{
		{nil, assumedMemory},
		{map[string]string{machine: "MemFree: 12 kB\nMemTotal:    1000 kB\n"}, 1000 << 10},
		{map[string]string{machine: "MemTotal: 1000 kB\n", v2: "max\n"}, 1000 << 10},
		{map[string]string{machine: "MemTotal: 1000 kB\n", v2: "4096\n"}, 4096},
		{map[string]string{machine: "MemTotal: 1000 kB\n", v1: "9223372036854771712\n"}, 1000 << 10},
		{map[string]string{machine: "nonsense", v1: "x"}, assumedMemory},
	} {
		got := availableMemory(func(file string) ([]byte, error) {
			if text, ok := c.files[file]; ok {
				return []byte(text), nil
			}
			return nil, errors.New("no such file")
		})
		if got != c.want {
			t.Errorf("of %q it is %d, want %d", c.files, got, c.want)
		}
	}
}
