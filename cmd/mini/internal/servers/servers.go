// Package servers knows the servers of models that people run on their own
// machines: where each usually is, which models it has, and how it is named on
// the command line. It asks for lists of models, which costs nothing.
//
//	place, err := servers.Parse("ollama")
//	found := servers.Find(ctx, servers.Known())
package servers

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

// Place is where a server is looked for.
type Place struct {
	// Name is that of its program, as "Ollama"; empty where only the address is
	// known.
	Name string
	// BaseURL is that of its OpenAI-compatible API, with the /v1.
	BaseURL string
	// KeyEnv is the variable with the key of such a server, should it want one.
	// It is never that of a provider: whoever has the port would be shown it.
	KeyEnv string
}

// String is the place for people.
func (p Place) String() string {
	if p.Name == "" {
		return p.BaseURL
	}
	return p.Name + " at " + p.BaseURL
}

// Model is one that a server has.
type Model struct {
	Name   string
	Window int64 // tokens of prompt and reply together; 0 where the server does not say
}

// Found is what came of asking at a place.
type Found struct {
	Place
	Models []Model
	Err    error // why there is nothing of use; nil where there are models
}

const (
	ownKey   = "LOCAL_API_KEY"
	loopback = "127.0.0.1"
	askTime  = 3 * time.Second
	maxList  = 4 << 20 // bytes
	maxName  = 300     // of a model, in bytes
)

// Known are the places where the usual servers are on this machine.
func Known() []Place {
	return []Place{
		{"Ollama", ollama(), ownKey},
		{"vLLM", "http://" + loopback + ":8000/v1", "VLLM_API_KEY"},
		{"llama.cpp", "http://" + loopback + ":8080/v1", "LLAMA_API_KEY"},
	}
}

// ollama is where its own tools look for it: OLLAMA_HOST, in any of the forms
// that they take. The addresses that mean all of a machine's are for its server.
func ollama() string {
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

// Parse reads what somebody calls a server: the name of a known one, or its
// address: a URL, with or without the /v1, HOST:PORT, or a port of this machine.
func Parse(text string) (Place, error) {
	plain := strings.NewReplacer(".", "", "-", "", "_", "", " ", "").Replace(strings.ToLower(text))
	for _, p := range Known() {
		if strings.ReplaceAll(strings.ToLower(p.Name), ".", "") == plain {
			return p, nil
		}
	}
	address := text
	if n, err := strconv.ParseUint(text, 10, 16); err == nil && n > 0 {
		address = net.JoinHostPort(loopback, text)
	}
	if !strings.Contains(address, "://") {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return Place{}, fmt.Errorf("%.60q is no server; there are ollama, vllm and llama.cpp, or an address as http://127.0.0.1:8000", text)
		}
		address = "http://" + address
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return Place{}, errors.New("that is no address; one looks like http://127.0.0.1:8000") // it may hold a password
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return Place{}, errors.New("user names, passwords and queries have no place in the address, which is written to files")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return Place{}, fmt.Errorf("%.60q is no address; one looks like http://127.0.0.1:8000", text)
	}
	if u.Path = strings.TrimRight(u.Path, "/"); u.Path == "" {
		u.Path = "/v1"
	}
	for _, p := range Known() {
		if p.BaseURL == u.String() {
			return p, nil
		}
	}
	return Place{"", u.String(), ownKey}, nil
}

// Find asks at all places, side by side, and returns them in their order.
func Find(ctx context.Context, places []Place) []Found {
	found := make([]Found, len(places))
	var all sync.WaitGroup
	for i, p := range places {
		all.Go(func() { found[i] = Ask(ctx, p) })
	}
	all.Wait()
	return found
}

// Ask asks a server for its models, with the key for it, if that is set.
func Ask(ctx context.Context, p Place) Found {
	f := Found{Place: p}
	f.Models, f.Err = list(ctx, p)
	return f
}

// ErrNobody is that nobody answers at a place at all.
var ErrNobody = errors.New("nothing answers there")

func list(ctx context.Context, p Place) ([]Model, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.BaseURL+"/models", nil)
	if err != nil {
		return nil, errors.New("that is no address")
	}
	if key := strings.TrimSpace(os.Getenv(p.KeyEnv)); p.KeyEnv != "" && key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrNobody, reason(err))
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	switch {
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return nil, fmt.Errorf("it wants a key (%d): export %s=..., or name another variable with -c model.api_key_env=NAME", resp.StatusCode, p.KeyEnv)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("what answers there has no list of models (%d)", resp.StatusCode)
	}
	var answer struct {
		Data []struct {
			ID  string `json:"id"`
			Max int64  `json:"max_model_len"` // as vLLM says it
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxList)).Decode(&answer); err != nil {
		return nil, errors.New("what answers there is no server of models")
	}
	var models []Model
	for _, m := range answer.Data {
		if m.ID != "" && len(m.ID) <= maxName && !slices.ContainsFunc(models, func(known Model) bool { return known.Name == m.ID }) {
			models = append(models, Model{m.ID, max(0, m.Max)})
		}
	}
	if len(models) == 0 {
		return nil, errors.New("it answers, and has no model; load one there first")
	}
	return models, nil
}

// reason is why nobody answers, without the address.
func reason(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("nothing within %v", askTime)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection is refused"
	}
	return err.Error()
}

// Named is the model that is meant by a name; ok is false where there is none.
// Ollama takes names without the tag "latest".
func (f Found) Named(name string) (m Model, ok bool) {
	for _, m := range f.Models {
		if m.Name == name || m.Name == name+":latest" {
			return m, true
		}
	}
	return Model{}, false
}

// Talking are the models but for those that make no text, by their names.
func (f Found) Talking() []Model {
	var talking []Model
	for _, m := range f.Models {
		if name := strings.ToLower(m.Name); !strings.Contains(name, "embed") && !strings.Contains(name, "rerank") {
			talking = append(talking, m)
		}
	}
	if len(talking) == 0 {
		return f.Models
	}
	return talking
}
