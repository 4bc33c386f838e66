package task

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// maxStack bounds how many frames are searched for the origin of a panic.
const maxStack = 64

// origin finds the line of code that panicked: the first frame below the panic that is not the runtime's. It is "dir/file.go:12", or empty. It is
// called while the deferred function that has recovered runs.
func origin() string {
	pcs := make([]uintptr, maxStack)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	panicking := false
	for {
		f, more := frames.Next()
		ofRuntime := strings.HasPrefix(f.Function, "runtime.")
		switch {
		case f.Function == "runtime.gopanic":
			panicking = true
		case panicking && !ofRuntime:
			return fmt.Sprintf("%s:%d", path.Join(path.Base(path.Dir(f.File)), path.Base(f.File)), f.Line)
		}
		if !more {
			return ""
		}
	}
}
