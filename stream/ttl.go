package stream

// sweeper is a table whose entries expire.
type sweeper interface {
	// sweep cleans up a bounded part, if it is time for that, and says when to call it again; now says that there is more.
	sweep(now Timestamp) (next Timestamp)
}
