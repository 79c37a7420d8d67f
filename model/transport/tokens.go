package transport

// Tokens is a count of a server's, as one that can be added up and paid for,
// whatever the server says.
func Tokens[N int | int64](n N) int64 { return min(max(0, int64(n)), 1<<40) }
