package anthropic

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/transport"
)

// Model asks one model of one server. It is safe for concurrent use.
type Model struct {
	config Config
	fields map[string]json.RawMessage
	header map[string]string
	http   *http.Client
	redact transport.Redactor
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
	c.Timeout, c.Idle = cmp.Or(c.Timeout, DefaultTimeout), cmp.Or(c.Idle, DefaultIdle)
	m := &Model{config: c, fields: fields, header: c.header(beta), http: c.HTTPClient, redact: transport.NewRedactor(c.key())}
	if m.http == nil {
		m.http = &http.Client{Transport: transport.ForManyWorkers()}
	}
	return m, nil
}

// apiVersion is the version of the API that the package speaks.
const apiVersion = "2023-06-01"

// header is what every request's header gets on top of the key.
func (c Config) header(beta string) map[string]string {
	header := map[string]string{"anthropic-version": apiVersion}
	maps.Copy(header, c.Headers)
	if beta != "" {
		header["anthropic-beta"] = beta
	}
	return header
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
		reply := model.Reply{Usage: taken}
		if taken != (model.Usage{}) {
			bill(&reply, m.config.Price)
		}
		return reply, err
	}
	return parseReply(m.redact.Bytes(raw), m.config.Price)
}

func (m *Model) newExchange() *transport.Exchange {
	return &transport.Exchange{Base: m.http.Transport, Fields: m.fields, Headers: m.header, Idle: m.config.Idle, Limit: transport.MaxResponse, Redact: m.redact}
}

// exchange returns the answer as a message object, streamed or not, or beside
// an error what the beginning of one said that it takes.
func (m *Model) exchange(ctx context.Context, x *transport.Exchange, r *request) (json.RawMessage, model.Usage, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, model.Usage{}, fmt.Errorf("write request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.config.baseURL()+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		return nil, model.Usage{}, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if key := m.config.key(); key != "" {
		req.Header.Set("X-Api-Key", key)
	}
	client := &http.Client{Transport: x, CheckRedirect: x.SameServer, Jar: m.http.Jar}
	resp, err := client.Do(req)
	if err != nil {
		return nil, model.Usage{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	// What came decides, and not what was asked for: some servers know one way.
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "text/event-stream" {
		told := m.redact.Pieces(model.Deltas(ctx))
		defer told.End()
		return receive(resp.Body, told)
	}
	raw, err := io.ReadAll(resp.Body)
	return raw, model.Usage{}, err
}

// foreign is an answer that is none of this API: it may be a bad moment, or
// another kind of server.
func foreign(format string, args ...any) error {
	return transport.Foreign("check the base URL (model.base_url), and that the server speaks Anthropic's API", format, args...)
}
