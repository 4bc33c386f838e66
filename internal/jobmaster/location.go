package jobmaster

import (
	"strings"
)

// A location is the path of a directory as people write it: an absolute path or a URL.

// isLocation tells a location from a path relative to the checkpoint directory.
func isLocation(s string) bool { return strings.HasPrefix(s, "/") || strings.Contains(s, "://") }

func joinLocation(parent, name string) string { return strings.TrimRight(parent, "/") + "/" + name }

// splitLocation parts the last element from its parent.
func splitLocation(s string) (parent, name string) {
	s = strings.TrimRight(s, "/")
	at := strings.LastIndex(s, "/")
	if at <= 0 {
		return "/", s[at+1:]
	}
	return s[:at], s[at+1:]
}

// relativeTo gives the path of a location below root, if it is there.
func relativeTo(root, location string) (string, bool) {
	rest, ok := strings.CutPrefix(plainPath(location), strings.TrimRight(plainPath(root), "/")+"/")
	return strings.Trim(rest, "/"), ok && strings.Trim(rest, "/") != ""
}

// plainPath takes the scheme off a file URL.
func plainPath(s string) string {
	if rest, ok := strings.CutPrefix(s, "file://"); ok {
		return rest
	}
	return s
}
