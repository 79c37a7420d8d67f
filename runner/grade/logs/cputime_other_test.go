//go:build !unix

package logs_test

import (
	"testing"
	"time"
)

var started = time.Now()

// cpuTime is the clock's, where the processors' is not known.
func cpuTime(*testing.T) time.Duration { return time.Since(started) }
