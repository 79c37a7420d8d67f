// Package anthropic is a model.Model for servers with Anthropic's Messages API.
//
// It sends signed thinking back unchanged, and marks cache points in each request
// so that a step pays the full price only for new tokens. Streamed and plain
// responses give the same Reply. Query sends one request; package retry repeats
// failed ones.
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

// Defaults of Config.
const (
	DefaultBaseURL = "https://api.anthropic.com"
	// DefaultMaxTokens is below the limit of every current model, and more than
	// a step needs.
	DefaultMaxTokens = 16_384
)

// Values of Config.Cache, the lifetime of cache entries.
const (
	CacheMinutes = "5m" // five minutes
	CacheHour    = "1h" // one hour, at a higher price; for slow steps
	CacheOff     = "off"
)

// Config configures a Model. Its printed form shows whether a key is set, but not
// the key, and only the names of headers.
type Config struct {
	// Name of the model, sent unchanged.
	Name string
	// BaseURL is the URL before "/v1/messages", with or without "/v1"; default
	// DefaultBaseURL.
	BaseURL string
	// APIKey is sent as x-api-key; empty for servers without keys.
	APIKey string `json:"-" yaml:"-"`
	// KeyHint is the hint of errors about the key; "" means the general one.
	KeyHint string
	// MaxTokens bounds one answer, including thinking; the API requires it.
	// The default is DefaultMaxTokens plus the thinking budget in Kwargs.
	MaxTokens int64
	// Kwargs are added to the body of every request: temperature (0 is sent,
	// too), top_k, thinking, metadata, stop_sequences, tool_choice and so on.
	// They override mini's own fields. "betas", a list of names, sets the
	// Anthropic-Beta header. With "cache_control", mini sets no cache points.
	// "model", "messages", "system", "stream" and keys are rejected, and so is
	// "tools" if Tools is set.
	Kwargs map[string]any
	// Headers are added to every request. They must not contain keys.
	Headers map[string]string `json:"-" yaml:"-"`
	// Stream requests streamed responses. It avoids idle connections, which
	// some proxies close while a model thinks.
	Stream bool
	// Timeout bounds one request, up to the last byte of the response; default
	// transport.DefaultTimeout.
	Timeout time.Duration
	// IdleTimeout bounds the time between two parts of a stream; default
	// transport.DefaultIdleTimeout.
	IdleTimeout time.Duration
	// Price of the tokens. If it is unknown, calls count as unpriced.
	Price model.Price
	// Tools are the tools that the model may call.
	Tools []model.ToolDefinition
	// Cache is the lifetime of cached prompts: CacheMinutes (default),
	// CacheHour or CacheOff.
	Cache string
	// HTTPClient is for proxies and tests; its Timeout is ignored. The default
	// client keeps up to 256 idle connections, one per worker.
	HTTPClient *http.Client `json:"-" yaml:"-"`
}

// Validate returns the first error in the configuration, for the user.
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
	case c.Timeout < 0 || c.IdleTimeout < 0 || c.MaxTokens < 0:
		return errors.New("timeouts and tokens cannot be negative")
	case !slices.Contains([]string{"", CacheMinutes, CacheHour, CacheOff}, c.Cache):
		return fmt.Errorf("cache %q: want %s, %s or %s", c.Cache, CacheMinutes, CacheHour, CacheOff)
	}
	_, _, err := c.fields()
	return err
}

// baseURL returns the base URL without "/v1".
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

// key returns APIKey without white space at both ends, such as the newline at the end of
// a file.
func (c Config) key() string { return strings.TrimSpace(c.APIKey) }

// Format implements fmt.Formatter. It never prints the key, for any verb.
func (c Config) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, c.endpoint()) }

// String implements fmt.Stringer.
func (c Config) String() string { return fmt.Sprint(c) }

// betasKey is the key in Kwargs that sets the Anthropic-Beta header.
const betasKey = "betas"

// fields returns the fields added to every request's body, and the value of the
// Anthropic-Beta header.
func (c Config) fields() (map[string]json.RawMessage, string, error) {
	reserved := []string{"model", "messages", "system", "stream"}
	if len(c.Tools) > 0 {
		reserved = append(reserved, "tools")
	}
	fields, err := transport.EncodeKwargs(c.Kwargs, reserved...)
	if err != nil {
		return nil, "", err
	}
	header, err := betaHeader(fields[betasKey])
	if err != nil {
		return nil, "", err
	}
	delete(fields, betasKey)
	return fields, header, c.checkBudget(fields)
}

// betaHeader returns the value of the Anthropic-Beta header.
func betaHeader(list json.RawMessage) (string, error) {
	if len(list) == 0 {
		return "", nil
	}
	var names []string
	if err := json.Unmarshal(list, &names); err != nil {
		return "", fmt.Errorf("model kwargs: betas: want a list of names, as [context-1m-2025-08-07]")
	}
	for _, name := range names {
		if !transport.IsHeaderName(name) {
			return "", fmt.Errorf("model kwargs: betas: %q is not a name", name)
		}
	}
	return strings.Join(names, ","), nil
}

// maxTokens returns the max_tokens of a request if Kwargs do not set it.
func (c Config) maxTokens(fields map[string]json.RawMessage) int64 {
	if c.MaxTokens > 0 {
		return c.MaxTokens
	}
	return DefaultMaxTokens + thinkingBudget(fields)
}

// thinkingBudget returns the token budget for thinking; 0 if it is not set or not valid.
func thinkingBudget(fields map[string]json.RawMessage) int64 {
	var thinking struct {
		Budget int64 `json:"budget_tokens"`
	}
	if json.Unmarshal(fields["thinking"], &thinking) != nil {
		return 0
	}
	return max(0, thinking.Budget)
}

// checkBudget returns an error if max_tokens is not a number, or if there is a thinking
// budget that is not below max_tokens: the API would reject the request.
func (c Config) checkBudget(fields map[string]json.RawMessage) error {
	maxTokens := c.maxTokens(fields)
	if raw, ok := fields["max_tokens"]; ok && json.Unmarshal(raw, &maxTokens) != nil {
		return fmt.Errorf("model kwargs: max_tokens: %s is not a number of tokens", raw)
	}
	if b := thinkingBudget(fields); b > 0 && b >= maxTokens {
		return fmt.Errorf("model kwargs: thinking: a budget of %d tokens uses up the max_tokens of %d; raise max_tokens", b, maxTokens)
	}
	return nil
}
