package archive

import "testing"

func TestLocation(t *testing.T) {
	for _, c := range []struct{ in, parent, name string }{
		{"/a/b", "/a", "b"}, {"/a/b/", "/a", "b"}, {"/b", "/", "b"}, {"file:///a/b", "file:///a", "b"},
	} {
		if parent, name := Split(c.in); parent != c.parent || name != c.name {
			t.Errorf("split %s: %s and %s", c.in, parent, name)
		}
	}
	for _, c := range []struct{ root, in, want string }{
		{"file:///chk", "/chk/j/chk-1", "j/chk-1"}, {"/chk/", "file:///chk/j/chk-1/", "j/chk-1"}, {"/chk", "/chkother/j", ""}, {"/chk", "/chk", ""},
		{"/chk", "j/chk-1", ""},
	} {
		if got, ok := relativeTo(c.root, c.in); got != c.want && ok || ok != (c.want != "") {
			t.Errorf("%s relative to %s: %q, %t", c.in, c.root, got, ok)
		}
	}
}
