// Package openai talks to every server with OpenAI's chat completion API:
// OpenAI, OpenRouter, DeepSeek, vLLM, SGLang, llama.cpp, Ollama and others.
//
// It asks in text, without tools: what an agent of mini wants from a model is
// a message with a bash block. Plain and streamed answers give the same Reply.
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

// What the zero values of Config mean.
const (
	DefaultBaseURL = "https://api.openai.com/v1"
	DefaultTimeout = 10 * time.Minute
	DefaultIdle    = 2 * time.Minute
)

// Config says which model is asked, where, and how. Printed in any way, it
// says only whether there is a key, and of headers only the names.
type Config struct {
	// Name of the model, as the server knows it. It is sent as it is: no name
	// gets a treatment of its own.
	Name string
	// BaseURL ends where "/chat/completions" begins; default DefaultBaseURL.
	BaseURL string
	// APIKey is sent as a bearer token; empty for servers that want none.
	APIKey string `json:"-" yaml:"-"`
	// Kwargs go into the body of every request, whatever they are: temperature
	// (0 too), top_p, top_k, seed, max_tokens, reasoning_effort, provider...
	// They win over what mini would send. "model", "messages" and "stream" are
	// refused, for they have a place of their own, and so are keys.
	Kwargs map[string]any
	// Tools are offered to the model with every request.
	Tools []model.Definition
	// Stream asks for the answer in parts. Connections then do not idle while
	// a model thinks, which some proxies cut. A server that cannot do that is
	// asked plainly from then on.
	Stream bool
	// SendReasoning returns the model's earlier thinking to it as
	// reasoning_content. Few servers ask for that; others refuse it. A server
	// that refuses to go without gets it from then on.
	SendReasoning bool
	// Timeout bounds one request, from its start to the last byte of the
	// answer; default DefaultTimeout.
	Timeout time.Duration
	// Idle bounds the silences of a stream that has begun; default DefaultIdle.
	Idle time.Duration
	// Headers go with every request. Keys are no headers here.
	Headers map[string]string `json:"-" yaml:"-"`
	// Price of the tokens. What the server says a call cost wins over it
	// (usage.cost, as OpenRouter does). Where there is neither, the call counts
	// as one whose cost is not known.
	Price model.Price
	// HTTPClient is for proxies and tests; its Timeout is not used. Default is
	// one that keeps a connection for every worker.
	HTTPClient *http.Client `json:"-" yaml:"-"`
}

// Validate returns the first thing that is wrong, as a sentence for the user.
func (c Config) Validate() error {
	if err := c.endpoint().Validate("/chat/completions"); err != nil {
		return err
	}
	if c.Timeout < 0 || c.Idle < 0 {
		return errors.New("timeouts cannot be negative")
	}
	_, err := c.fields()
	return err
}

// fields is what every request's body gets on top.
func (c Config) fields() (map[string]json.RawMessage, error) {
	fields, err := transport.Fields(c.Kwargs, "model", "messages", "stream")
	if err != nil {
		return nil, err
	}
	name, err := json.Marshal(c.Name)
	if err != nil {
		return nil, fmt.Errorf("model name: %w", err)
	}
	fields["model"] = name
	return fields, nil
}

func (c Config) baseURL() string { return cmp.Or(c.BaseURL, DefaultBaseURL) }

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
