// Package openai is a model.Model for servers with OpenAI's chat completion API:
// OpenAI, OpenRouter, DeepSeek, vLLM, SGLang, llama.cpp, Ollama and others.
//
// Streamed and plain responses give the same Reply. Query sends one request;
// package retry repeats failed ones.
//
//	m, err := openai.New(openai.Config{Name: "gpt-5-mini", APIKey: os.Getenv("OPENAI_API_KEY")})
//	reply, err := m.Query(ctx, []model.Message{{Role: model.User, Content: "hello"}})
package openai

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/transport"
)

// DefaultBaseURL is the default of Config.BaseURL.
const DefaultBaseURL = "https://api.openai.com/v1"

// Config configures a Model. Its printed form shows whether a key is set, but not
// the key, and only the names of headers.
type Config struct {
	// Name of the model, sent unchanged. No name is treated specially.
	Name string
	// BaseURL is the URL before "/chat/completions"; default DefaultBaseURL.
	BaseURL string
	// APIKey is sent as a bearer token; empty for servers without keys.
	APIKey string `json:"-" yaml:"-"`
	// KeyHint is the hint of errors about the key; "" means the general one.
	KeyHint string
	// Kwargs are added to the body of every request: temperature (0 is sent,
	// too), top_p, top_k, seed, max_tokens, reasoning_effort, provider and so
	// on. They override mini's own fields, except "model", "messages" and
	// "stream", which are rejected, as are keys.
	Kwargs map[string]any
	// Tools are offered to the model in every request.
	Tools []model.ToolDefinition
	// Stream requests streamed responses. It avoids idle connections, which
	// some proxies close while a model thinks. If the server rejects streaming,
	// later requests are not streamed.
	Stream bool
	// SendReasoning sends the model's earlier thinking back as
	// reasoning_content. Few servers require this field; others reject it. If a
	// server reports that the field is missing, later requests include it.
	SendReasoning bool
	// Tokens asks for the ids and the log probabilities of tokens, in the form of vLLM. A reply without ids
	// is an error.
	Tokens bool
	// Timeout bounds one request, up to the last byte of the response; default
	// transport.DefaultTimeout.
	Timeout time.Duration
	// IdleTimeout bounds the time between two parts of a stream; default
	// transport.DefaultIdleTimeout.
	IdleTimeout time.Duration
	// Headers are added to every request. They must not contain keys.
	Headers map[string]string `json:"-" yaml:"-"`
	// Price of the tokens. A cost that the server reports (usage.cost, as
	// OpenRouter does) overrides it. Without either, calls count as unpriced.
	Price model.Price
	// HTTPClient is for proxies and tests; its Timeout is ignored. The default
	// client keeps up to 256 idle connections, one per worker.
	HTTPClient *http.Client `json:"-" yaml:"-"`
}

// Validate returns the first error in the configuration, for the user.
func (c Config) Validate() error {
	if err := c.endpoint().Validate("/chat/completions"); err != nil {
		return err
	}
	if c.Timeout < 0 || c.IdleTimeout < 0 {
		return errors.New("timeouts cannot be negative")
	}
	_, err := c.fields()
	return err
}

// fields returns the fields added to every request's body.
func (c Config) fields() (map[string]json.RawMessage, error) {
	fields, err := transport.EncodeKwargs(c.Kwargs, "model", "messages", "stream")
	if err != nil || !c.Tokens {
		return fields, err
	}
	for name, value := range TokenFields() {
		if _, isSet := fields[name]; !isSet {
			fields[name] = value
		}
	}
	return fields, nil
}

func (c Config) baseURL() string { return cmp.Or(c.BaseURL, DefaultBaseURL) }

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
