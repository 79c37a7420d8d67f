package trajectories

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
	"unicode/utf8"
)

// Bytes is data that is usually text. Its JSON encoding is a string if it is valid
// UTF-8, otherwise {"base64": "..."}, so that no byte is lost.
type Bytes []byte

type base64JSON struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON implements json.Marshaler.
func (b Bytes) MarshalJSON() ([]byte, error) { return encode(b.jsonValue()) }

// jsonValue returns a value without a MarshalJSON method that has the same JSON
// encoding as b.
func (b Bytes) jsonValue() any {
	if utf8.Valid(b) {
		return string(b)
	}
	return base64JSON{Base64: b}
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *Bytes) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		var encoded base64JSON
		if err := json.Unmarshal(data, &encoded); err != nil {
			return fmt.Errorf("bytes: %w", err)
		}
		*b = encoded.Base64
		return nil
	}
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("bytes: %w", err)
	}
	*b = Bytes(s)
	return nil
}

// Seconds is a duration whose JSON encoding is a number of seconds.
type Seconds time.Duration

// MarshalJSON implements json.Marshaler.
func (s Seconds) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(s).Seconds())
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Seconds) UnmarshalJSON(data []byte) error {
	var seconds float64
	if err := json.Unmarshal(data, &seconds); err != nil {
		return fmt.Errorf("seconds: %w", err)
	}
	*s = newSeconds(seconds)
	return nil
}

// newSeconds converts f, in seconds. It rounds to nanoseconds, which removes floating-point
// errors.
func newSeconds(f float64) Seconds { return Seconds(math.Round(f * float64(time.Second))) }
