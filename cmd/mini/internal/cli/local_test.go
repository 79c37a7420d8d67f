package cli_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// localServers are servers as people run them on their own machines, by the names
// of the variables that scripts find their HOST:PORT in. They refuse every key
// that is not theirs.
func localServers(t *testing.T) map[string]string {
	t.Helper()
	vars := map[string]string{}
	for name, s := range map[string]struct {
		models []string
		key    string
	}{
		"LOCAL":       {models: []string{"qwen3:latest", "nomic-embed-text:latest"}},
		"LOCAL_MANY":  {models: []string{"a", "b", "c"}},
		"LOCAL_KEYED": {models: []string{"keyed"}, key: "k-1"},
	} {
		vars[name] = newLocal(t, s.key, s.models...)
	}
	return vars
}

func newLocal(t *testing.T, key string, models ...string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want := ""
		if key != "" {
			want = "Bearer " + key
		}
		switch auth := r.Header.Get("Authorization"); {
		case auth != want:
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/v1/models":
			var list []any
			for _, m := range models {
				list = append(list, map[string]any{"id": m, "max_model_len": 32768})
			}
			write(w, map[string]any{"data": list})
		case r.URL.Path == "/v1/chat/completions":
			var req struct{ Model string }
			if err := json.NewDecoder(r.Body).Decode(&req); err != nil || req.Model != models[0] {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			write(w, map[string]any{
				"model":   req.Model,
				"choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "content": conversation[2]}, "finish_reason": "stop"}},
				"usage":   usage,
			})
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}
