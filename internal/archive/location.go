package archive

import (
	"strings"
)

// A location is the path of a directory as people write it: an absolute path or a URL.

// IsLocation tells a location from a path relative to the checkpoint directory.
func IsLocation(s string) bool { return strings.HasPrefix(s, "/") || strings.Contains(s, "://") }

// Join is the location of what is called name in parent.
func Join(parent, name string) string { return strings.TrimRight(parent, "/") + "/" + name }

// Split parts the last element from its parent.
func Split(s string) (parent, name string) {
	s = strings.TrimRight(s, "/")
	at := strings.LastIndex(s, "/")
	if at <= 0 {
		return "/", s[at+1:]
	}
	return s[:at], s[at+1:]
}

// relativeTo gives the path of a location below root, if it is there.
func relativeTo(root, location string) (string, bool) {
	rest, ok := strings.CutPrefix(Plain(location), strings.TrimRight(Plain(root), "/")+"/")
	return strings.Trim(rest, "/"), ok && strings.Trim(rest, "/") != ""
}

// Plain takes the scheme off a file URL.
func Plain(s string) string {
	if rest, ok := strings.CutPrefix(s, "file://"); ok {
		return rest
	}
	return s
}
