package hub

import "time"

// Hasten makes the pauses between tries short.
func (h *Hub) Hasten() { h.pause = time.Millisecond }

// Stall sets how long a silent connection is waited for.
func (h *Hub) Stall(d time.Duration) { h.stall = d }

var (
	SplitsOf = splitsOf
	Match    = match
	PauseOf  = pauseOf
	MaxTries = maxTries
)
