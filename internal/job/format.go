package job

// SavepointFormat says how the state in a savepoint is written.
type SavepointFormat int

// The formats.
const (
	// FormatNone: it is no savepoint. A backend that has files of its own shares them between checkpoints.
	FormatNone SavepointFormat = iota
	// FormatCanonical: in the form that every state backend reads.
	FormatCanonical
	// FormatNative: a backend's files as they are, copied into the savepoint's own directory; only the same backend reads them. State in memory
	// has one form, and is the same in both.
	FormatNative
)

// String is the lower-case name of the format.
func (f SavepointFormat) String() string {
	switch f {
	case FormatNone:
		return "none"
	case FormatCanonical:
		return "canonical"
	case FormatNative:
		return "native"
	}
	return "unknown"
}

// ParseSavepointFormat reads a name that String gives; FormatNone is not one that anybody can ask for.
func ParseSavepointFormat(name string) (SavepointFormat, bool) {
	for _, f := range []SavepointFormat{FormatCanonical, FormatNative} {
		if f.String() == name {
			return f, true
		}
	}
	return FormatNone, false
}
