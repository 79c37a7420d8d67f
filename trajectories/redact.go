package trajectories

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
)

// RedactJSON applies redact to all strings of a JSON value. It returns data itself if
// nothing changes, which is the common case.
func RedactJSON(data []byte, redact func([]byte) []byte) ([]byte, error) {
	if bytes.Equal(redact(data), data) {
		return data, nil
	}
	// Redact each string, since Bytes in base64 may contain a key too.
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return encode(redactValue(v, redact))
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
		clean := make(map[string]any, len(v))
		for key, value := range v {
			clean[string(redact([]byte(key)))] = redactValue(value, redact)
		}
		return clean
	}
	return v
}
