package doctor

import "math"

// Free is what this user may still write to the disk of a folder, in bytes; false
// where that cannot be told.
func Free(dir string) (int64, bool) {
	n, err := free(dir)
	return int64(min(n, math.MaxInt64)), err == nil
}
