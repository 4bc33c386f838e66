package task

import (
	"bytes"
	"path"
	"strings"
)

// origin finds in a stack the line of code that panicked: the first file below the panic that is not the runtime's. It is "file.go:12", or empty.
func origin(stack []byte) string {
	_, below, found := bytes.Cut(stack, []byte("\npanic("))
	if !found {
		return ""
	}
	for line := range strings.Lines(string(below)) {
		line = strings.TrimSpace(line)
		file, _, ok := strings.Cut(line, " +0x")
		if !ok || strings.Contains(file, "/runtime/") {
			continue
		}
		return path.Join(path.Base(path.Dir(file)), path.Base(file))
	}
	return ""
}
