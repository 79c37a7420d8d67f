// Package localservers finds model servers that users run on their own machines. It knows their
// usual addresses and their names on the command line, and lists their models. It sends no
// prompts.
//
//	server, err := localservers.Parse("ollama")
//	results := localservers.ProbeAll(ctx, localservers.KnownServers())
package localservers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Server is the address of a model server.
type Server struct {
	// Name is the name of the server program, e.g. "Ollama"; empty if unknown.
	Name string
	// BaseURL is the address of the OpenAI-compatible API, including /v1.
	BaseURL string
	// KeyEnv is the environment variable with the key of the server. It is never the variable of
	// a provider's key: any process that listens on the port would receive the key.
	KeyEnv string
}

// String returns the name and address for display.
func (s Server) String() string {
	if s.Name == "" {
		return s.BaseURL
	}
	return s.Name + " at " + s.BaseURL
}

// Model is a model of a server.
type Model struct {
	Name          string
	ContextWindow int64 // context window in tokens; 0 if unknown
}

// ProbeResult is the result of probing a server.
type ProbeResult struct {
	Server
	Models []Model
	Err    error // nil if there are models
}

const (
	localKeyEnv  = "LOCAL_API_KEY"
	loopback     = "127.0.0.1"
	probeTimeout = 10 * time.Second
	maxList      = 4 << 20 // bytes
	maxName      = 300     // of a model's name, in bytes
)

// KnownServers returns common servers at their default addresses on this machine; Ollama at the
// address in OLLAMA_HOST, if that is set.
func KnownServers() []Server {
	return []Server{
		{"Ollama", ollamaURL(), localKeyEnv},
		{"vLLM", "http://" + loopback + ":8000/v1", "VLLM_API_KEY"},
		{"llama.cpp", "http://" + loopback + ":8080/v1", "LLAMA_API_KEY"},
	}
}

// ollamaURL returns the base URL for OLLAMA_HOST: a host with or without scheme, port and path;
// the path is ignored. A wildcard address tells the Ollama server where to listen; clients use
// the loopback address instead.
func ollamaURL() string {
	const port = "11434"
	text := strings.TrimSpace(os.Getenv("OLLAMA_HOST"))
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		scheme, rest = "http", text
	}
	hostPort, _, _ := strings.Cut(rest, "/")
	host, p, err := net.SplitHostPort(hostPort)
	if err != nil {
		host, p = strings.Trim(hostPort, "[]"), port
	}
	switch {
	case host == "" || host == "0.0.0.0" || host == "::":
		host = loopback
	case p == "":
		p = port
	}
	u := url.URL{Scheme: scheme, Host: net.JoinHostPort(host, p), Path: "/v1"}
	return u.String()
}

// Parse parses the name of a known server, or an address: a URL with or without /v1,
// HOST:PORT, or a port of this machine.
func Parse(text string) (Server, error) {
	normalized := strings.NewReplacer(".", "", "-", "", "_", "", " ", "").Replace(strings.ToLower(text))
	for _, s := range KnownServers() {
		if strings.ReplaceAll(strings.ToLower(s.Name), ".", "") == normalized {
			return s, nil
		}
	}
	address := text
	if n, err := strconv.ParseUint(text, 10, 16); err == nil && n > 0 {
		address = net.JoinHostPort(loopback, text)
	}
	if !strings.Contains(address, "://") {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return Server{}, fmt.Errorf("unknown server %.60q: use ollama, vllm, llama.cpp, or an address like http://127.0.0.1:8000", text)
		}
		address = "http://" + address
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return Server{}, errors.New("invalid address: use one like http://127.0.0.1:8000") // do not quote it: it may contain a password
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return Server{}, errors.New("invalid address: remove the user name, password and query, since the address is written to files")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return Server{}, fmt.Errorf("invalid address %.60q: use one like http://127.0.0.1:8000", text)
	}
	if u.Path = strings.TrimRight(u.Path, "/"); u.Path == "" {
		u.Path = "/v1"
	}
	for _, s := range KnownServers() {
		if s.BaseURL == u.String() {
			return s, nil
		}
	}
	return Server{"", u.String(), localKeyEnv}, nil
}

// ProbeAll probes servers concurrently and returns the results in the same order.
func ProbeAll(ctx context.Context, servers []Server) []ProbeResult {
	results := make([]ProbeResult, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() { results[i] = Probe(ctx, s) })
	}
	wg.Wait()
	return results
}

// Probe requests the models of a server, with the key in s.KeyEnv if that is set.
func Probe(ctx context.Context, s Server) ProbeResult {
	r := ProbeResult{Server: s}
	r.Models, r.Err = probeModels(ctx, s)
	return r
}

// ErrUnreachable means that no server responds at an address.
var ErrUnreachable = errors.New("no server responds")

func probeModels(ctx context.Context, s Server) ([]Model, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	status, models, err := API{BaseURL: s.BaseURL, Key: os.Getenv(s.KeyEnv)}.ListModels(ctx)
	switch {
	case errors.Is(err, errNotAList):
		return nil, errors.New("not a model server")
	case err != nil:
		return nil, fmt.Errorf("%w: %s", ErrUnreachable, ErrorReason(err, probeTimeout))
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return nil, fmt.Errorf("the server requires a key (%d): export %s=..., or name another variable with -c model.api_key_env=NAME", status, s.KeyEnv)
	case status != http.StatusOK:
		return nil, fmt.Errorf("the server has no list of models (%d)", status)
	case len(models) == 0:
		return nil, errors.New("the server has no models; load one first")
	}
	return models, nil
}

// errNotAList means that a server responded, but not with a list of models.
var errNotAList = errors.New("the response is not a list of models")

// API is the API of a provider of models, on any machine.
type API struct {
	BaseURL     string // with /v1
	IsAnthropic bool   // it has Anthropic's API, else OpenAI's
	Key         string // "" if there is none
}

// ListModels requests {"data": [{"id": NAME}]} from the API. A status other than 200 returns no
// models and no error. Redirects are not followed: the key is for this server.
func (a API) ListModels(ctx context.Context) (status int, models []Model, err error) {
	address, err := url.Parse(a.BaseURL)
	if err != nil {
		return 0, nil, err
	}
	address = address.JoinPath("models")
	if a.IsAnthropic {
		address.RawQuery = "limit=1000" // the default is 20
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return 0, nil, err
	}
	switch key := strings.TrimSpace(a.Key); {
	case a.IsAnthropic:
		req.Header.Set("Anthropic-Version", "2023-06-01")
		if key != "" {
			req.Header.Set("X-Api-Key", key)
		}
	case key != "":
		req.Header.Set("Authorization", "Bearer "+key)
	}
	client := &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	if resp.StatusCode != http.StatusOK {
		return resp.StatusCode, nil, nil
	}
	var answer struct {
		Data []struct {
			ID  string `json:"id"`
			Max int64  `json:"max_model_len"` // vLLM only
		} `json:"data"`
	}
	if json.NewDecoder(io.LimitReader(resp.Body, maxList)).Decode(&answer) != nil {
		return resp.StatusCode, nil, errNotAList
	}
	for _, m := range answer.Data {
		if m.ID != "" && len(m.ID) <= maxName && !slices.ContainsFunc(models, func(known Model) bool { return known.Name == m.ID }) {
			models = append(models, Model{m.ID, max(0, m.Max)})
		}
	}
	return resp.StatusCode, models, nil
}

// HasAnswered reports whether a server responded to ListModels, which returned err.
func HasAnswered(err error) bool { return err == nil || errors.Is(err, errNotAList) }

// ErrorReason explains a connection error without the address, which may contain a secret.
func ErrorReason(err error, timeout time.Duration) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	name, unresolved := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no response within %v", timeout)
	case unresolved && name.IsNotFound:
		return "no such host"
	case unresolved:
		return "its name cannot be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case strings.Contains(err.Error(), "invalid proxy address"):
		return "the proxy address is not a URL"
	}
	return err.Error()
}

// HasModel reports whether a list contains a model. Anthropic lists names with dates and accepts names without,
// Gemini lists models/NAME, Ollama NAME:latest, and OpenRouter accepts NAME:VARIANT.
func (a API) HasModel(names []string, model string) bool {
	base, _, _ := strings.Cut(model, ":")
	return slices.ContainsFunc(names, func(name string) bool {
		return slices.Contains([]string{model, base, "models/" + model, model + ":latest"}, name) ||
			a.IsAnthropic && strings.HasPrefix(name, model+"-20")
	})
}

// FindModel returns the model with a name. Ollama accepts names without the tag "latest".
func (r ProbeResult) FindModel(name string) (m Model, ok bool) {
	for _, m := range r.Models {
		if m.Name == name || m.Name == name+":latest" {
			return m, true
		}
	}
	return Model{}, false
}

// TextModels returns the models that write text, going by their names; all models if none is left.
func (r ProbeResult) TextModels() []Model { return TextModels(r.Models) }

// otherModels are parts of the names of models that do not write text.
var otherModels = []string{"embed", "rerank", "whisper", "tts", "transcribe", "dall-e", "image", "moderation", "realtime", "audio"}

// TextModels returns the models that write text, going by their names; all models if none is left.
func TextModels(models []Model) []Model {
	text := slices.DeleteFunc(slices.Clone(models), func(m Model) bool {
		return slices.ContainsFunc(otherModels, func(part string) bool { return strings.Contains(strings.ToLower(m.Name), part) })
	})
	if len(text) == 0 {
		return models
	}
	return text
}
