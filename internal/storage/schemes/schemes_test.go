package schemes_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/storage/schemes"
)

func TestOpen_Locations(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ location, want string }{
		{dir + "/new/deep", ""},
		{"file://" + dir + "/with%20space", ""},
		{"file://localhost" + dir + "/x", ""},
		{"", "no checkpoint directory is given; name a directory or a file:// URL"},
		{"s3://bucket/x", "checkpoint directory s3://bucket/x: s3 storage is not built in yet; name a directory or a file:// URL"},
		{"gs://bucket", `checkpoint directory gs://bucket: unknown scheme "gs"; name a directory or a file:// URL`},
		{"file://relative/x", "checkpoint directory file://relative/x is not of the form file:///absolute/path"},
		{"file://", "checkpoint directory file:// is not of the form file:///absolute/path"},
		{dir + "/file", "checkpoint directory " + dir + "/file is not writable: " + dir + "/file is a file and not a directory; choose another directory, or let this user write there"},
		{dir + "/file/x", "checkpoint directory " + dir + "/file/x is not writable: not a directory; choose another directory, or let this user write there"},
	} {
		s, err := schemes.New().Open(t.Context(), c.location)
		if c.want == "" {
			if err == nil {
				err = s.WriteFile(t.Context(), "f", nil, storage.CreateOnly)
			}
			if err != nil {
				t.Errorf("%q: %v", c.location, err)
			}
		} else if err == nil || err.Error() != c.want {
			t.Errorf("%q: error is\n%v, want\n%s", c.location, err, c.want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "with space", "f")); err != nil {
		t.Error(err)
	}
}

func TestFind_MakesNothing(t *testing.T) {
	dir := t.TempDir()
	for _, location := range []string{dir + "/none", "file://" + dir + "/none"} {
		if _, err := schemes.New().Find(t.Context(), location); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("%s: %v", location, err)
		}
	}
	if _, err := os.Stat(dir + "/none"); err == nil {
		t.Error("looking has made the directory")
	}
	if _, err := schemes.OpenExisting(t.Context(), dir); err != nil {
		t.Error(err)
	}
}
