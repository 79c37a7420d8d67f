// Package raw passes requests that another agent wrote to a provider, and the answers
// back, in the provider's own dialect. A Model takes the request from the context of Query
// instead of the messages, so that the same retries, rate limits and limits of failures
// apply as to any other model:
//
//	x := &raw.Exchange{Dialect: d, Path: "/v1/messages", Body: body, Stream: true, Send: send}
//	reply, err := m.Query(raw.WithExchange(ctx, x), raw.Estimate(body))
package raw

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/anthropic"
	"github.com/minibench/mini/model/dialect"
	"github.com/minibench/mini/model/transport"
)

// Exchange is one request of an agent and its answer.
type Exchange struct {
	Dialect dialect.Dialect
	// Path is the path and query of the request below the base URL. Those of Messages and
	// Gemini begin with a version, which the base URL then does not count with.
	Path   string
	Header http.Header // to pass on
	Body   []byte
	// Send sends an event of a streamed answer to the agent. An error ends the exchange.
	Send func(event []byte) error
	// Edit returns what the agent gets of an event or of a whole answer, nil for nothing; may be nil.
	Edit func(data []byte) []byte

	// The answer. Of a streamed one, Rest are the events from the terminal one on, which
	// Send has not got: the caller records the exchange first.
	Streamed bool
	Rest     []byte
	Answer   []byte // an answer that is not streamed
	// ErrorStatus and ErrorBody are those of the last error response; 0 if there is none.
	ErrorStatus int
	ErrorBody   []byte
	sent        bool
}

// Sent reports whether the agent has received a part of the answer.
func (x *Exchange) Sent() bool { return x.sent }

type exchangeKey struct{}

// WithExchange returns the context for Query of a Model, or of what wraps it.
func WithExchange(ctx context.Context, x *Exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

// Estimate returns messages with as many tokens as a body, for the rate limiter.
func Estimate(body []byte) []model.Message { return []model.Message{{Content: string(body)}} }

// Config configures a Model.
type Config struct {
	BaseURL string
	Key     string
	KeyHint string // of errors about the key; "" means the general one
	Headers map[string]string
	Price   model.Price
	// Timeout bounds a request, IdleTimeout the time between two parts of a stream; 0
	// means the defaults of package transport.
	Timeout, IdleTimeout time.Duration
	HTTPClient           *http.Client // for tests; may be nil
}

// Model passes exchanges to one server. It is safe for concurrent use.
type Model struct {
	config Config
	client *transport.Client
}

var _ model.Model = (*Model)(nil)

// New returns a Model. It sends nothing.
func New(c Config) *Model {
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	return &Model{config: c, client: transport.New(transport.Client{
		Timeout: c.Timeout, IdleTimeout: c.IdleTimeout, Redact: transport.NewRedactor(c.Key), KeyHint: c.KeyHint, HTTP: c.HTTPClient,
	})}
}

// Format implements fmt.Formatter. It never prints the key.
func (m *Model) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "{requests to %s}", m.config.BaseURL)
}

// Query implements model.Model with one request, that of WithExchange. An answer of which
// the agent has received a part is not asked for again.
func (m *Model) Query(ctx context.Context, _ []model.Message) (model.Reply, error) {
	x, ok := ctx.Value(exchangeKey{}).(*Exchange)
	if !ok {
		return model.Reply{}, errors.New("query model: the request has no exchange")
	}
	c := *m.client
	c.URL, c.Header = m.url(x), m.header(x)
	x.ErrorStatus, x.ErrorBody, x.Answer, x.Rest = 0, nil, nil, nil
	c.OnError = func(status int, body []byte) { x.ErrorStatus, x.ErrorBody = status, body }
	reply, err := c.Query(ctx, x.Body, func(resp *transport.Response) (model.Reply, error) {
		if x.Streamed = resp.IsStream(); x.Streamed {
			return x.Dialect.Stream(x.forward(resp.Events()), m.config.Price)
		}
		body, err := resp.JSON()
		if err != nil {
			return model.Reply{}, err
		}
		x.Answer = x.edit(body)
		return x.Dialect.Reply(body, m.config.Price)
	})
	if x.Dialect.Name() == "messages" {
		reply.RateLimits.TokensPerMinute = 0 // tokens from the cache do not count towards it
	}
	if e, ok := errors.AsType[*model.Error](err); ok && x.sent && e.Retryable {
		final := *e
		final.Retryable = false
		err = &final
	}
	return reply, err
}

func (m *Model) url(x *Exchange) string {
	base := m.config.BaseURL
	if strings.HasPrefix(x.Path, "/v1") { // also /v1beta
		base = strings.TrimSuffix(strings.TrimSuffix(base, "/v1"), "/v1beta")
	}
	return base + x.Path
}

// header returns the headers of a request: those of the agent, the user's, and the key.
func (m *Model) header(x *Exchange) http.Header {
	h := x.Header.Clone()
	if h == nil {
		h = http.Header{}
	}
	if x.Dialect.Name() == "messages" {
		h.Set("Anthropic-Version", anthropic.APIVersion)
	}
	for name, value := range m.config.Headers {
		h.Set(name, value)
	}
	if m.config.Key == "" {
		return h
	}
	switch x.Dialect.Name() {
	case "messages":
		h.Set("X-Api-Key", m.config.Key)
	case "gemini":
		h.Set("X-Goog-Api-Key", m.config.Key)
	default:
		h.Set("Authorization", "Bearer "+m.config.Key)
	}
	return h
}

// forward sends events to the agent before it yields them. It withholds an error that is
// the first event, because the request may be repeated, and the end of the answer.
func (x *Exchange) forward(events iter.Seq2[[]byte, error]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		x.Rest = nil
		for data, err := range events {
			if shown := x.edit(data); err == nil && shown != nil && (x.sent || !dialect.IsError(data)) {
				if x.Rest != nil || x.Dialect.IsTerminal(data) {
					x.Rest = append(x.Rest, x.event(shown)...)
				} else {
					x.sent = true
					err = x.Send(x.event(shown))
				}
			}
			if !yield(data, err) {
				return
			}
		}
	}
}

func (x *Exchange) edit(data []byte) []byte {
	if x.Edit == nil {
		return data
	}
	return x.Edit(data)
}

// event returns an event with its name, if the dialect has names.
func (x *Exchange) event(data []byte) []byte {
	var out []byte
	if x.Dialect.HasEventNames() {
		if name := dialect.EventName(data); name != "" {
			out = append(append(append(out, "event: "...), name...), '\n')
		}
	}
	return append(append(append(out, "data: "...), data...), "\n\n"...)
}
