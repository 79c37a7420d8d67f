package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/transport"
)

// maxResponse bounds an answer, in bytes.
const maxResponse = 64 << 20

// Model asks one model of one server. It is safe for concurrent use.
type Model struct {
	config  Config
	fields  map[string]json.RawMessage
	options []option.RequestOption
	http    *http.Client
	redact  transport.Redactor
}

var _ model.Model = (*Model)(nil)

// New checks the configuration; nothing is sent.
func New(c Config) (*Model, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configure model: %w", err)
	}
	fields, beta, err := c.fields()
	if err != nil {
		return nil, fmt.Errorf("configure model: %w", err)
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Idle == 0 {
		c.Idle = DefaultIdle
	}
	m := &Model{config: c, fields: fields, options: c.options(beta), http: c.HTTPClient, redact: transport.NewRedactor(c.key())}
	if m.http == nil {
		m.http = &http.Client{Transport: transport.ForManyWorkers()}
	}
	return m, nil
}

// options are those of every request. The client library would look around in
// the environment for keys, profiles and tracers, and try again on its own.
func (c Config) options(beta string) []option.RequestOption {
	options := []option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithoutOpenTelemetry(), option.WithMaxRetries(0),
		option.WithBaseURL(c.baseURL()),
	}
	if key := c.key(); key != "" {
		options = append(options, option.WithAPIKey(key))
	}
	for name, value := range c.Headers {
		options = append(options, option.WithHeader(name, value))
	}
	if beta != "" {
		options = append(options, option.WithHeader("anthropic-beta", beta))
	}
	return options
}

// Close ends the idle connections.
func (m *Model) Close() error {
	m.http.CloseIdleConnections()
	return nil
}

// Format implements fmt.Formatter; see Config.Format.
func (m *Model) Format(f fmt.State, verb rune) { m.config.Format(f, verb) }

// Query implements model.Model, with one request. A refused answer may come
// with what it cost.
func (m *Model) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	within, cancel := context.WithTimeout(ctx, m.config.Timeout)
	defer cancel()
	x := m.newExchange()
	reply, err := m.ask(within, x, messages)
	// Only the requests: to this API's limits of tokens a prompt that its cache
	// has does not count, while in a conversation it is most of what is used.
	reply.Limits.Requests = x.Limits().Requests
	reply.Tries = 1
	if err == nil {
		return reply, nil
	}
	if ctx.Err() != nil {
		return reply, context.Cause(ctx)
	}
	if _, ok := errors.AsType[*model.Error](err); !ok {
		if err = x.Failed(err); within.Err() != nil {
			err = transport.Late(m.config.Timeout)
		}
	}
	return reply, m.redact.Error(err)
}

func (m *Model) ask(ctx context.Context, x *transport.Exchange, messages []model.Message) (model.Reply, error) {
	request, err := m.request(messages)
	if err != nil {
		return model.Reply{}, err
	}
	raw, taken, err := m.exchange(ctx, x, request)
	if err != nil {
		var reply model.Reply
		if reply.Usage = usageOf(taken); reply.Usage != (model.Usage{}) {
			bill(&reply, m.config.Price)
		}
		return reply, err
	}
	return parseReply(m.redact.Bytes(raw), m.config.Price)
}

func (m *Model) newExchange() *transport.Exchange {
	base := m.http.Transport
	if base == nil {
		base = http.DefaultTransport
	}
	return &transport.Exchange{Base: base, Fields: m.fields, Idle: m.config.Idle, Limit: maxResponse, Redact: m.redact}
}

// exchange returns the answer as a message object, streamed or not, or beside
// an error what the beginning of one said that it takes.
func (m *Model) exchange(ctx context.Context, x *transport.Exchange, request sdk.MessageNewParams) (json.RawMessage, sdk.Usage, error) {
	options := []option.RequestOption{
		option.WithHTTPClient(&http.Client{Transport: x, CheckRedirect: x.SameServer, Jar: m.http.Jar}),
	}
	if m.config.Stream {
		options = append(options, option.WithJSONSet("stream", true))
	}
	var resp *http.Response
	client := sdk.NewClient(m.options...)
	if err := client.Post(ctx, "v1/messages", request, &resp, options...); err != nil {
		return nil, sdk.Usage{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	// What came decides, and not what was asked for: some servers know one way.
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "text/event-stream" {
		told := m.redact.Pieces(model.Deltas(ctx))
		defer told.End()
		return receive(resp.Body, told)
	}
	raw, err := io.ReadAll(resp.Body)
	return raw, sdk.Usage{}, err
}

// broken is an answer that makes no sense; asking again may help.
func broken(format string, args ...any) error {
	return &model.Error{Status: model.ProviderError, Retryable: true, Err: fmt.Errorf(format, args...)}
}

// foreign is an answer that is none of this API: it may be a bad moment, or
// another kind of server.
func foreign(format string, args ...any) error {
	return &model.Error{
		Status: model.ProviderError, Retryable: true, Suspect: true, Err: fmt.Errorf(format, args...),
		Hint: "check the base URL (model.base_url), and that the server speaks Anthropic's API",
	}
}
