package hub

import "time"

// Hasten shortens the delay before the second try.
func (h *Hub) Hasten() { h.retryDelay = time.Millisecond }

// Stall sets after how long without data a request is cancelled.
func (h *Hub) Stall(d time.Duration) { h.stallTimeout = d }

var SplitsOf = splitFiles

// MaxPatterns is the maximum number of patterns in a card.
const MaxPatterns = maxPatterns

// Match returns the names that match a pattern.
func Match(pattern string, names []string) []string {
	left := maxPatterns
	return matchFiles(names, "", []string{pattern}, &left)
}
