package trajectories

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
)

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
