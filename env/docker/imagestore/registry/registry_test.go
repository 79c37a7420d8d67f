package registry

import (
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"":                              0,
		"7":                             7 * time.Second,
		"-7":                            0,
		"soon":                          0,
		"Sat, 21 Nov 2026 10:01:00 GMT": time.Minute,
		"Sat, 21 Nov 2026 09:00:00 GMT": 0,
		"1795255260":                    time.Minute, // a Unix time, as sent by Docker Hub
		"99999999":                      maxRetryAfter,
		"99999999999999999999":          0,
	} {
		if got := parseRetryAfter(value, now); got != want {
			t.Errorf("Retry-After %q: %s, want %s", value, got, want)
		}
	}
}
