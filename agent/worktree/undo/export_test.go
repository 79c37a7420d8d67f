package undo

// SetMaxEntries sets the number of entries of a folder that GitFiles reads.
func SetMaxEntries(n int) (restore func()) {
	before := maxEntries
	maxEntries = n
	return func() { maxEntries = before }
}
