package trajectories

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
)

// RedactJSON returns a JSON value without what redact takes out of its texts.
// Where redact finds nothing, which is nearly always, that is data itself.
func RedactJSON(data []byte, redact func([]byte) []byte) ([]byte, error) {
	if bytes.Equal(redact(data), data) {
		return data, nil
	}
	// Text by text: a key may stand in Bytes that are in base64.
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
