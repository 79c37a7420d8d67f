package bridge

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/model/dialect"
)

type kind int

const (
	kindUnknown kind = iota
	kindRoot
	kindModels
	kindModel
	kindCount // counts tokens
)

// route is what a request is for.
type route struct {
	kind    kind
	dialect dialect.Dialect // nil if unknown
	path    string          // at the provider, without the model's name for Gemini
	model   string          // in the path, for Gemini
}

// routeOf finds the route of a request. Paths work with and without their version.
func routeOf(r *http.Request) route {
	path := strings.TrimRight(r.URL.Path, "/")
	for _, version := range []string{"/v1beta", "/v1"} {
		path = strings.TrimPrefix(path, version)
	}
	switch {
	case path == "" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		return route{kind: kindRoot}
	case path == "/models" && r.Method == http.MethodGet:
		return route{kind: kindModels, dialect: guessDialect(r)}
	case r.Method != http.MethodPost:
		return route{dialect: guessDialect(r)}
	}
	switch path {
	case "/chat/completions":
		return route{kindModel, dialect.ByName("chat"), path, ""}
	case "/responses":
		return route{kindModel, dialect.ByName("responses"), path, ""}
	case "/messages":
		return route{kindModel, dialect.ByName("messages"), "/v1/messages", ""}
	case "/messages/count_tokens":
		return route{kindCount, dialect.ByName("messages"), "/v1/messages/count_tokens", ""}
	}
	gemini := dialect.ByName("gemini")
	name, method, found := strings.Cut(strings.TrimPrefix(path, "/models/"), ":")
	switch {
	case !found || !strings.HasPrefix(path, "/models/") || strings.Contains(name, "/"):
	case method == "generateContent" || method == "streamGenerateContent":
		return route{kindModel, gemini, ":" + method, name}
	case method == "countTokens":
		return route{kindCount, gemini, ":" + method, name}
	}
	return route{dialect: guessDialect(r)}
}

// guessDialect guesses the dialect of a request from the header with its key.
func guessDialect(r *http.Request) dialect.Dialect {
	switch {
	case r.Header.Get("Anthropic-Version") != "" || r.Header.Get("X-Api-Key") != "":
		return dialect.ByName("messages")
	case r.Header.Get("X-Goog-Api-Key") != "" || r.URL.Query().Get("key") != "":
		return dialect.ByName("gemini")
	}
	return dialect.ByName("chat")
}

// listModels answers with the run's model.
func (b *Bridge) listModels(w http.ResponseWriter, r *http.Request) {
	name := b.config.ModelName
	body := map[string]any{"object": "list", "data": []any{map[string]any{
		"id": name, "object": "model", "type": "model", "display_name": name, "created": 0, "owned_by": "mini",
	}}, "has_more": false, "first_id": name, "last_id": name}
	if guessDialect(r).Name() == "gemini" {
		body = map[string]any{"models": []any{map[string]any{
			"name": "models/" + name, "displayName": name, "supportedGenerationMethods": []string{"generateContent", "countTokens"},
		}}}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // the agent may be gone
}

// providerPath returns the path and query of a request at the provider.
func (b *Bridge) providerPath(r *http.Request, t route) string {
	if t.dialect.Name() != "gemini" {
		return t.path
	}
	path := "/v1beta/models/" + strings.TrimPrefix(b.config.ModelName, "models/") + t.path
	if r.URL.Query().Get("alt") == "sse" {
		path += "?alt=sse"
	}
	return path
}

// speaks reports whether the provider speaks a dialect.
func (b *Bridge) speaks(d dialect.Dialect) bool { return slices.Contains(b.config.Dialects, d.Name()) }

const maxBetas = 1000 // bytes

// betas matches the names of beta features.
var betas = lazyregexp.New(`^[a-z0-9-]+( *, *[a-z0-9-]+)*$`)

// providerHeaders returns the headers of the agent that the provider gets: the names of
// beta features, whose fields are refused without them.
func providerHeaders(d dialect.Dialect, in http.Header) http.Header {
	names := strings.Join(in.Values("Anthropic-Beta"), ",")
	if d.Name() != "messages" || len(names) > maxBetas || !betas.MatchString(names) {
		return nil
	}
	return http.Header{"Anthropic-Beta": {names}}
}

// threadHeaders returns the headers that tell which conversation of the agent a request
// belongs to.
func threadHeaders(in http.Header) map[string]string {
	out := map[string]string{}
	for _, name := range []string{"X-Claude-Code-Session-Id", "X-Claude-Code-Agent-Id", "Session-Id", "Thread-Id", "X-Openai-Subagent"} {
		if value := in.Get(name); value != "" {
			out[strings.ToLower(name)] = value[:min(len(value), 200)]
		}
	}
	return out
}
