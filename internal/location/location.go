package location

import (
	"net/url"
	"strings"
)

// Is tells a location from a path that is relative to the checkpoint directory.
func Is(s string) bool { return strings.HasPrefix(s, "/") || strings.Contains(s, "://") }

// Scheme is what is in front of "://", or nothing if s is a path.
func Scheme(s string) string {
	scheme, _, ok := strings.Cut(s, "://")
	if !ok {
		return ""
	}
	return scheme
}

// Cut parts a location from the settings at its end, which begin with the question mark. A path and a file URL have none.
func Cut(s string) (dir, settings string) {
	at := strings.IndexByte(s, '?')
	if scheme := Scheme(s); scheme == "" || scheme == "file" || at < 0 {
		return s, ""
	}
	return s[:at], s[at:]
}

// Join is what is called name in parent, which may be a relative path too. An empty parent is the directory that names are relative to.
func Join(parent, name string) string {
	if parent == "" || name == "" {
		return parent + name
	}
	dir, settings := Cut(parent)
	begin := pathBegin(dir)
	return dir[:begin] + strings.TrimRight(dir[begin:], "/") + "/" + name + settings
}

// pathBegin is where the path or, in front of it, the host of a location begins.
func pathBegin(dir string) int {
	if scheme := Scheme(dir); scheme != "" {
		return len(scheme) + len("://")
	}
	return 0
}

// Split parts the last element from its parent. A host or a bucket is no element.
func Split(s string) (parent, name string) {
	dir, settings := Cut(s)
	begin := pathBegin(dir)
	dir = dir[:begin] + strings.TrimRight(dir[begin:], "/")
	at := strings.LastIndex(dir[begin:], "/")
	switch {
	case at < 0 && begin > 0:
		return dir + settings, ""
	case at < 0:
		return "", dir
	case at == 0:
		return dir[:begin+1], dir[begin+1:]
	}
	return dir[:begin+at] + settings, dir[begin+at+1:]
}

// Base is the last element.
func Base(s string) string {
	_, name := Split(s)
	return name
}

// Below gives the path of a location below root, if it is there.
func Below(root, s string) (string, bool) {
	if !agree(root, s) {
		return "", false
	}
	rest, ok := strings.CutPrefix(plain(s), plain(root)+"/")
	rest = strings.Trim(rest, "/")
	return rest, ok && rest != ""
}

// Same tells whether two locations, or two relative paths, name the same directory.
func Same(a, b string) bool { return agree(a, b) && plain(a) == plain(b) }

// plain leaves what tells directories apart, without a slash at its end.
func plain(s string) string {
	s, _ = Cut(s)
	return strings.TrimRight(strings.TrimPrefix(s, "file://"), "/")
}

// endpoint is the setting that says which server is meant. A location without it means the one that the environment names.
const endpoint = "endpoint"

// agree tells whether the settings of two locations may be for one server. The same bucket without an endpoint counts as the same: what is in use
// must never be taken for something else.
func agree(a, b string) bool {
	x, y := setting(a, endpoint), setting(b, endpoint)
	return x == "" || y == "" || x == y
}

func setting(s, key string) string {
	_, settings := Cut(s)
	values, err := url.ParseQuery(strings.TrimPrefix(settings, "?"))
	if err != nil {
		return ""
	}
	return strings.TrimRight(values.Get(key), "/")
}

// Redacted is a location for a message about one that may be wrong: without its settings, and without a user and a password, which do not belong there.
func Redacted(s string) string {
	dir, _ := Cut(s)
	begin := pathBegin(dir)
	if at := strings.LastIndexByte(dir, '@'); begin > 0 && Scheme(dir) != "file" && at >= begin {
		return dir[:begin] + "***" + dir[at:]
	}
	return dir
}
