package trajectories

import (
	"bytes"
	"encoding/base64"
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
func (b Bytes) MarshalJSON() ([]byte, error) {
	if utf8.Valid(b) {
		return encode(string(b))
	}
	return encode(base64JSON{Base64: b})
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
	*s = Seconds(math.Round(seconds * float64(time.Second))) // without floating-point errors
	return nil
}

// RedactJSON applies redact to all strings of a JSON value, including keys and Bytes in
// base64. If redact does not change the encoded data, RedactJSON returns data without
// decoding it; redact must therefore change escaped and base64 forms of secrets too.
func RedactJSON(data []byte, redact func([]byte) []byte) ([]byte, error) {
	if bytes.Equal(redact(data), data) {
		return data, nil
	}
	// Redact the decoded strings, so that the result is valid JSON.
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return nil, err
	}
	return encode(redactValue(value, redact))
}

func redactValue(v any, redact func([]byte) []byte) any {
	switch v := v.(type) {
	case string:
		return string(redact([]byte(v)))
	case []any:
		for i := range v {
			v[i] = redactValue(v[i], redact)
		}
	case map[string]any:
		if text, ok := v["base64"].(string); ok && len(v) == 1 {
			if raw, err := base64.StdEncoding.DecodeString(text); err == nil {
				return Bytes(redact(raw))
			}
		}
		redacted := make(map[string]any, len(v))
		for key, value := range v {
			redacted[string(redact([]byte(key)))] = redactValue(value, redact)
		}
		return redacted
	}
	return v
}
