package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/minibench/mini/model/fake"
)

// localServers starts model servers like those that users run on their own machines.
// It returns the HOST:PORT of each, by the name of the variable for scripts. A server
// rejects every other key than its own.
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

// newLocal starts a model server that requires key, or no key if it is empty.
func newLocal(t *testing.T, key string, models ...string) string {
	t.Helper()
	completions := newFake(t, strings.Repeat(fmt.Sprintf("- %q\n", conversation[2]), 4), fake.Config{Models: models[:1]})
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
			_ = json.NewEncoder(w).Encode(map[string]any{"data": list})
		default:
			completions.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}
