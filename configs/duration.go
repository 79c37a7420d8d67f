package configs

import (
	"time"
)

// Duration converts seconds to a time.Duration.
func Duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
