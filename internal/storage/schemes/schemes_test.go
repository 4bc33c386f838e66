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
		{"", "no checkpoint directory is given; name a directory, a file:// URL or an s3:// URL"},
		{"s3://", "checkpoint directory s3://: location s3://: it names no bucket; write s3://BUCKET/PREFIX"},
		{"s3://b/a//c", `checkpoint directory s3://b/a//c: location s3://b/a//c: the prefix "a//c" is not a clean path`},
		{"s3://b/c?secret=x", `checkpoint directory s3://b/c: location s3://b/c: unknown setting "secret"; there are endpoint, region, path-style, profile, part-size-mib`},
		{"s3://b/c?region=x&region=y", "checkpoint directory s3://b/c: location s3://b/c: the setting region is given 2 times"},
		{"s3://b/c?path-style=yes", `checkpoint directory s3://b/c: location s3://b/c: the setting path-style is "yes"; it can be true or false`},
		{"s3://b/c?part-size-mib=4", `checkpoint directory s3://b/c: location s3://b/c: the setting part-size-mib is "4"; it can be 5 to 512`},
		{"s3://b/c?endpoint=http://user:secret@host", "checkpoint directory s3://b/c: location s3://b/c: the endpoint is not of the form http://HOST[:PORT] or https://HOST[:PORT]"},
		{
			"s3://key:secret@b/c", "checkpoint directory s3://***@b/c: an s3:// location has no user and no password; " +
				"set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use a shared credentials file",
		},
		{"gs://bucket", `checkpoint directory gs://bucket: unknown scheme "gs"; name a directory, a file:// URL or an s3:// URL`},
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
