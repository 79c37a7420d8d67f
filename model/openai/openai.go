package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"

	api "github.com/sashabaranov/go-openai"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/transport"
)

// Model is one model on one server. It is safe for concurrent use.
type Model struct {
	client *transport.Client
	config Config
	// noStream reports that the server rejected streaming.
	noStream atomic.Bool
	// needsReasoning reports that the server requires earlier thinking.
	needsReasoning atomic.Bool
}

var _ model.Model = (*Model)(nil)

// New returns a Model. It sends nothing.
func New(c Config) (*Model, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configure model: %w", err)
	}
	fields, err := c.fields()
	if err != nil {
		return nil, fmt.Errorf("configure model: %w", err)
	}
	header := http.Header{}
	for name, value := range c.Headers {
		header.Set(name, value)
	}
	if key := c.key(); key != "" {
		header.Set("Authorization", "Bearer "+key)
	}
	return &Model{config: c, client: transport.New(transport.Client{
		URL: strings.TrimRight(c.baseURL(), "/") + "/chat/completions", Header: header, ExtraFields: fields, Redact: transport.NewRedactor(c.key()),
		Timeout: c.Timeout, IdleTimeout: c.IdleTimeout, HTTP: c.HTTPClient,
	})}, nil
}

// Close closes the idle connections.
func (m *Model) Close() error { return m.client.Close() }

// Format implements fmt.Formatter; see Config.Format.
func (m *Model) Format(f fmt.State, verb rune) { m.config.Format(f, verb) }

// Query implements model.Model with one request. With an error, the Reply may
// hold the cost of an unusable answer.
func (m *Model) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	reasoning := m.config.SendReasoning || m.needsReasoning.Load()
	r := request{
		Model: m.config.Name, Messages: outgoing(messages, reasoning), Tools: toolsOf(m.config.Tools),
		Stream: m.config.Stream && !m.noStream.Load(),
	}
	if r.Stream {
		r.StreamOptions = &api.StreamOptions{IncludeUsage: true}
	}
	reply, err := m.client.Query(ctx, r, func(a *transport.Response) (model.Reply, error) { return m.read(ctx, a) })
	e, ok := errors.AsType[*model.Error](err)
	switch {
	case !ok:
	case r.Stream && cannotStream(e):
		m.noStream.Store(true)
		err = retryChanged(e, "the server cannot stream; leave out model.stream")
	case !reasoning && wantsReasoning(e):
		m.needsReasoning.Store(true)
		err = retryChanged(e, "the server wants the model's earlier thinking; set model.send_reasoning")
	}
	return reply, err
}

func (m *Model) read(ctx context.Context, a *transport.Response) (model.Reply, error) {
	if !a.IsStream() {
		raw, err := a.JSON()
		if err != nil {
			return model.Reply{}, err
		}
		return parseReply(raw, m.config.Price)
	}
	deltas := m.client.Redact.DeltaWriter(model.DeltaListener(ctx))
	defer deltas.Close()
	raw, err := receive(a.Events(), deltas)
	if err == nil {
		return parseReply(m.client.Redact.Bytes(raw), m.config.Price)
	}
	if raw == nil {
		return model.Reply{}, err
	}
	// Usage of the incomplete response. Most servers report it only at the end.
	reply, _ := parseReply(raw, m.config.Price) // err is known
	return model.Reply{Usage: reply.Usage, Cost: reply.Cost}, err
}

// retryChanged returns the error of a rejected request if the next one differs.
func retryChanged(e *model.Error, hint string) *model.Error {
	return &model.Error{Status: e.Status, Code: e.Code, Retryable: true, RetryNow: true, Err: e.Err, Hint: hint}
}

// receive assembles a streamed response, complete or not, and sends its texts to
// deltas.
func receive(events iter.Seq2[[]byte, error], deltas *transport.DeltaWriter) (json.RawMessage, error) {
	f := accumulator{deltas: deltas}
	for data, err := range events {
		switch {
		case err != nil:
			return f.partialJSON(), err
		case string(data) == "[DONE]":
			return f.json()
		}
		var failure struct {
			Error json.RawMessage `json:"error"`
		}
		if json.Unmarshal(data, &failure) == nil && present(failure.Error) {
			return nil, transport.Classify(0, transport.ParseErrorDetail(data))
		}
		if err := f.add(data); err != nil {
			return f.partialJSON(), err
		}
	}
	return f.json()
}

// streaming matches how servers name streaming, but not "upstream".
var streaming = lazyregexp.New(`(?i)\bstream(s|ed|ing|_options)?\b`)

// cannotStream reports whether the server rejected streaming.
func cannotStream(e *model.Error) bool {
	asked := e.Status == model.BadRequest || e.Code == http.StatusNotImplemented
	return asked && e.Err != nil && streaming.MatchString(e.Err.Error())
}

// lacking matches how servers ask for the thinking of earlier replies.
var lacking = lazyregexp.New(`(?i)\b(missing|lacks?|requires?|expects?)\b.*reasoning_content|reasoning_content.*\b(missing|required|must be)\b`)

// wantsReasoning reports whether the server rejected a request because earlier
// thinking was missing, as DeepSeek and Kimi do in thinking mode with tools.
func wantsReasoning(e *model.Error) bool {
	return e.Status == model.BadRequest && e.Err != nil && lacking.MatchString(e.Err.Error())
}
