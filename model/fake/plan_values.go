package fake

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
)

// Duration is a time.Duration that YAML gives as 1m30s, or as seconds.
type Duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	if seconds, err := strconv.ParseFloat(string(text), 64); err == nil && seconds >= 0 && seconds < 1e9 {
		*d = Duration(seconds * float64(time.Second))
		return nil
	}
	parsed, err := time.ParseDuration(string(text))
	if err != nil || parsed < 0 {
		return fmt.Errorf("%.60q is no time: want seconds, or 1m30s", text)
	}
	*d = Duration(parsed)
	return nil
}

// Size is a number of bytes that YAML gives as 100MB, too.
type Size int64

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Size) UnmarshalText(text []byte) error {
	n, err := units.RAMInBytes(string(text))
	if err != nil || n < 0 {
		return fmt.Errorf("%.60q is no size: want bytes, or 100MB", text)
	}
	*s = Size(n)
	return nil
}

// Probability is from 0 to 1; YAML gives it as 5%, too.
type Probability float64

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Probability) UnmarshalText(text []byte) error {
	digits, percent := strings.CutSuffix(string(text), "%")
	f, err := strconv.ParseFloat(digits, 64)
	if percent {
		f /= 100
	}
	if err != nil || !(f >= 0 && f <= 1) {
		return fmt.Errorf("%.60q is no probability: want 5%%, or 0.05", text)
	}
	*p = Probability(f)
	return nil
}
