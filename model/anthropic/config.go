// Package anthropic talks to servers with Anthropic's Messages API: Anthropic
// itself, and gateways and servers that speak it.
//
// It keeps what the provider keeps: thinking goes back with its signature, in
// its place; each request marks where the provider's cache may begin again, so
// that a step pays for what is new. Plain and streamed answers give the same
// Reply. One Query is one request: who asks again decides about that.
//
//	m, err := anthropic.New(anthropic.Config{Name: "claude-sonnet-4-5", APIKey: os.Getenv("ANTHROPIC_API_KEY")})
//	reply, err := m.Query(ctx, []model.Message{{Role: model.User, Content: "hello"}})
package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/transport"
)

// What the zero values of Config mean.
const (
	DefaultBaseURL = "https://api.anthropic.com"
	DefaultTimeout = 10 * time.Minute
	DefaultIdle    = 2 * time.Minute
	// DefaultMaxTokens is below what every current model may write, and more
	// than a step needs.
	DefaultMaxTokens = 16_384
)

// The values of Config.Cache.
const (
	CacheMinutes = "5m" // what is written into the cache stays for five minutes
	CacheHour    = "1h" // for an hour, at a higher price; for slow steps
	CacheOff     = "off"
)

// Config says which model is asked, where, and how. Printed in any way, it
// says only whether there is a key, and of headers only the names.
type Config struct {
	// Name of the model, as the server knows it.
	Name string
	// BaseURL ends where "/v1/messages" begins, or with its "/v1"; default
	// DefaultBaseURL.
	BaseURL string
	// APIKey is sent as x-api-key; empty for servers that want none.
	APIKey string `json:"-" yaml:"-"`
	// MaxTokens bounds one answer, thinking included: the API wants to be told.
	// Default is DefaultMaxTokens, on top of the budget for thinking where
	// Kwargs give one.
	MaxTokens int64
	// Kwargs go into the body of every request, whatever they are: temperature
	// (0 too), top_k, thinking, metadata, stop_sequences, tool_choice... They
	// win over what mini would send. "betas", a list of names, become the
	// header for them. "model", "messages", "system" and "stream" are refused,
	// for they have a place of their own, "tools" where Tools are given, and
	// keys everywhere. With a "cache_control" of one's own mini sets none.
	Kwargs map[string]any
	// Headers go with every request. Keys are no headers here.
	Headers map[string]string `json:"-" yaml:"-"`
	// Stream asks for the answer in parts. Connections then do not idle while
	// a model thinks, which some proxies cut.
	Stream bool
	// Timeout bounds one request, from its start to the last byte of the
	// answer; default DefaultTimeout.
	Timeout time.Duration
	// Idle bounds the silences of a stream that has begun; default DefaultIdle.
	Idle time.Duration
	// Price of the tokens. Where it is not known, neither is the cost
	// (model.Usage.Unpriced).
	Price model.Price
	// Tools that the model may call.
	Tools []model.Definition
	// Cache says how long the provider keeps what a next step sends again:
	// CacheMinutes (default), CacheHour or CacheOff.
	Cache string
	// HTTPClient is for proxies and tests; its Timeout is not used. Default is
	// one that keeps a connection for every worker.
	HTTPClient *http.Client `json:"-" yaml:"-"`
}

// Validate returns the first thing that is wrong, as a sentence for the user.
func (c Config) Validate() error {
	if err := c.endpoint().Validate("/messages"); err != nil {
		return err
	}
	for _, tool := range c.Tools {
		if tool.Name == "" || !json.Valid(tool.Parameters) {
			return fmt.Errorf("tool %q: want a name and a JSON Schema", tool.Name)
		}
	}
	switch {
	case c.Timeout < 0 || c.Idle < 0 || c.MaxTokens < 0:
		return errors.New("timeouts and tokens cannot be negative")
	case !slices.Contains([]string{"", CacheMinutes, CacheHour, CacheOff}, c.Cache):
		return fmt.Errorf("cache %q: want %s, %s or %s", c.Cache, CacheMinutes, CacheHour, CacheOff)
	}
	_, _, err := c.fields()
	return err
}

// baseURL is without the "/v1" that all requests begin with.
func (c Config) baseURL() string {
	if c.BaseURL == "" {
		return DefaultBaseURL
	}
	return strings.TrimSuffix(strings.TrimRight(c.BaseURL, "/"), "/v1")
}

func (c Config) endpoint() transport.Endpoint {
	return transport.Endpoint{
		Name: c.Name, BaseURL: c.baseURL(), Key: c.key(), Stream: c.Stream, Kwargs: c.Kwargs, Headers: c.Headers,
	}
}

// key is without the line feed that comes with keys read from files.
func (c Config) key() string { return strings.TrimSpace(c.APIKey) }

// Format implements fmt.Formatter, for every verb: the key is never printed.
func (c Config) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, c.endpoint()) }

// String is what is printed.
func (c Config) String() string { return fmt.Sprint(c) }
