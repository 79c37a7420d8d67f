package anthropic

import (
	"context"
	"fmt"
	"iter"
	"net/http"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/transport"
)

// Model is one model on one server. It is safe for concurrent use.
type Model struct {
	client *transport.Client
	config Config
}

var _ model.Model = (*Model)(nil)

// New returns a Model. It sends nothing.
func New(c Config) (*Model, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configure model: %w", err)
	}
	fields, beta, err := c.fields()
	if err != nil {
		return nil, fmt.Errorf("configure model: %w", err)
	}
	return &Model{config: c, client: transport.New(transport.Client{
		URL: c.baseURL() + "/v1/messages", Header: c.header(beta), ExtraFields: fields, Redact: transport.NewRedactor(c.key()),
		KeyHint: c.KeyHint,
		Timeout: c.Timeout, IdleTimeout: c.IdleTimeout, HTTP: c.HTTPClient,
	})}, nil
}

// APIVersion is the API version of all requests.
const APIVersion = "2023-06-01"

func (c Config) header(beta string) http.Header {
	header := http.Header{}
	header.Set("Anthropic-Version", APIVersion)
	for name, value := range c.Headers {
		header.Set(name, value)
	}
	if beta != "" {
		header.Set("Anthropic-Beta", beta)
	}
	if key := c.key(); key != "" {
		header.Set("X-Api-Key", key)
	}
	return header
}

// Close closes the idle connections.
func (m *Model) Close() error { return m.client.Close() }

// Format implements fmt.Formatter; see Config.Format.
func (m *Model) Format(f fmt.State, verb rune) { m.config.Format(f, verb) }

// Query implements model.Model with one request. With an error, the Reply may
// hold the cost of an unusable answer.
func (m *Model) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	request, err := m.request(messages)
	if err != nil {
		return model.Reply{}, err
	}
	reply, err := m.client.Query(ctx, request, func(resp *transport.Response) (model.Reply, error) {
		return resp.Read(ctx, m.config.Price, parseReply, readStream)
	})
	// Do not report the token limit: tokens read from the cache, which are most of
	// a conversation, do not count towards this API's token limits.
	reply.RateLimits.TokensPerMinute = 0
	return reply, err
}

// readStream reads a streamed response, without the keys in the redactor.
func readStream(events iter.Seq2[[]byte, error], keys transport.Redactor, deltas *transport.DeltaWriter, price model.Price) (model.Reply, error) {
	raw, usage, err := receive(events, deltas)
	if err == nil {
		return parseReply(keys.Bytes(raw), price)
	}
	reply := model.Reply{Usage: usage}
	if usage != (model.Usage{}) {
		setCost(&reply, price)
	}
	return reply, err
}

// ReadReply reads a message object of a request that another client wrote. With an error,
// the reply has the usage that is known.
func ReadReply(body []byte, price model.Price) (model.Reply, error) { return parseReply(body, price) }

// ReadStream is ReadReply for the data of the events of a streamed answer.
func ReadStream(events iter.Seq2[[]byte, error], price model.Price) (model.Reply, error) {
	return readStream(events, transport.Redactor{}, nil, price)
}

// unexpected returns the error of a response that is not from this API: a
// temporary failure, or a different kind of server.
func unexpected(format string, args ...any) error {
	return transport.UnexpectedResponse("check the base URL (model.base_url), and that the server speaks Anthropic's API", format, args...)
}
