package hub

import "time"

// Hasten makes the pauses between tries short.
func (h *Hub) Hasten() { h.pause = time.Millisecond }

// Stall sets how long a silent connection is waited for.
func (h *Hub) Stall(d time.Duration) { h.stall = d }

var (
	SplitsOf = splitFiles
	PauseOf  = retryAfter
	MaxTries = maxTries
)

// MaxPatterns is how many patterns of a card are looked for.
const MaxPatterns = maxPatterns

// Match looks for one pattern.
func Match(pattern string, names []string) []string {
	return newMatcher(names).match(pattern)
}
