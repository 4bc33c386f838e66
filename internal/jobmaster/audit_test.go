package jobmaster

import (
	"context"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/inspect/inspecttest"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/storage/storagetest"
)

// audit finds what is wrong with the files that a test leaves, when nothing is written any more. See package inspecttest.
func (s *memory) audit(ctx context.Context, t *testing.T, f inspecttest.Facts) {
	t.Helper()
	files := storagetest.NewMem()
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, data := range s.files {
		name = strings.TrimLeft(strings.TrimPrefix(name, "file:"), "/")
		if err := files.WriteFile(ctx, name, data, storage.CreateOnly); err != nil {
			t.Fatal(err)
		}
	}
	if err := inspecttest.Audit(ctx, files, f); err != nil {
		t.Errorf("storage audit: %v", err)
	}
}
