package location

import "testing"

func TestSplit_AndJoin_AreEachOthersInverse(t *testing.T) {
	for _, c := range []struct{ in, parent, name string }{
		{"/a/b", "/a", "b"},
		{"/b", "/", "b"},
		{"file:///a/b", "file:///a", "b"},
		{"file:///b", "file:///", "b"},
		{"j/chk-1", "j", "chk-1"},
		{"s3://bucket/a/b", "s3://bucket/a", "b"},
		{"s3://bucket/a", "s3://bucket", "a"},
		{"s3://bucket/a/b?endpoint=http://h:1/x&region=r", "s3://bucket/a?endpoint=http://h:1/x&region=r", "b"},
		{"s3://bucket/a?region=r", "s3://bucket?region=r", "a"},
		{"/odd?name/b", "/odd?name", "b"},
		{"b", "", "b"},
	} {
		if parent, name := Split(c.in); parent != c.parent || name != c.name {
			t.Errorf("split %s: %s and %s", c.in, parent, name)
		}
		if got := Join(c.parent, c.name); got != c.in {
			t.Errorf("join %s and %s: %s", c.parent, c.name, got)
		}
		if got := Base(c.in); got != c.name {
			t.Errorf("base of %s: %s", c.in, got)
		}
	}
}

func TestSplit_TakesSlashesAtTheEnd(t *testing.T) {
	for in, want := range map[string][2]string{
		"/a/b/": {"/a", "b"}, "s3://bucket/a/b/?region=r": {"s3://bucket/a?region=r", "b"}, "s3://bucket": {"s3://bucket", ""},
		"s3://bucket/?region=r": {"s3://bucket?region=r", ""},
	} {
		if parent, name := Split(in); parent != want[0] || name != want[1] {
			t.Errorf("split %s: %s and %s", in, parent, name)
		}
	}
}

func TestBelow(t *testing.T) {
	for _, c := range []struct{ root, in, want string }{
		{"file:///chk", "/chk/j/chk-1", "j/chk-1"},
		{"/chk/", "file:///chk/j/chk-1/", "j/chk-1"},
		{"/", "/j", "j"},
		{"/chk", "/chkother/j", ""},
		{"/chk", "/chk", ""},
		{"/chk", "j/chk-1", ""},
		{"s3://b/chk?endpoint=http://h:1", "s3://b/chk/j/chk-1?endpoint=http://h:1", "j/chk-1"},
		{"s3://b/chk?endpoint=http://h:1", "s3://b/chk/j/chk-1?region=r&endpoint=http://h:1/", "j/chk-1"},
		{"s3://b/chk?endpoint=http://h:1", "s3://b/chk/j/chk-1", "j/chk-1"},
		{"s3://b/chk", "s3://b/chk/j/chk-1?endpoint=http://h:1", "j/chk-1"},
		{"s3://b/chk?endpoint=http://h:1", "s3://b/chk/j/chk-1?endpoint=http://h:2", ""},
		{"s3://b", "s3://b/j", "j"},
		{"s3://b/chk", "s3://other/chk/j", ""},
		{"s3://b/chk", "/b/chk/j", ""},
	} {
		if got, ok := Below(c.root, c.in); got != c.want && ok || ok != (c.want != "") {
			t.Errorf("%s below %s: %q, %t", c.in, c.root, got, ok)
		}
	}
}

func TestSame(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"/a/b", "file:///a/b/", true}, {"j/chk-1", "j/chk-1/", true}, {"/a", "/b", false},
		{"s3://b/a?region=x", "s3://b/a", true}, {"s3://b/a?endpoint=http://x", "s3://b/a?endpoint=http://y", false},
	} {
		if got := Same(c.a, c.b); got != c.want {
			t.Errorf("%s and %s: %t", c.a, c.b, got)
		}
	}
}

func TestRedacted_HidesWhatMayBeASecret(t *testing.T) {
	for in, want := range map[string]string{
		"s3://key:se/cr@et@bucket/a?token=x": "s3://***@bucket/a", "s3://bucket/a?endpoint=http://k:s@h": "s3://bucket/a",
		"/data/a@b/c": "/data/a@b/c", "file:///a@b": "file:///a@b",
	} {
		if got := Redacted(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
