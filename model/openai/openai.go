package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync/atomic"

	client "github.com/sashabaranov/go-openai"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/transport"
)

// Model asks one model of one server. It is safe for concurrent use.
type Model struct {
	config Config
	fields map[string]json.RawMessage
	http   *http.Client
	redact transport.Redactor
	// plain says that the server was found not to stream.
	plain atomic.Bool
	// reasons says that the server was found to want earlier thinking back.
	reasons atomic.Bool
}

var _ model.Model = (*Model)(nil)

// New checks the configuration; nothing is sent.
func New(c Config) (*Model, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configure model: %w", err)
	}
	fields, err := c.fields()
	if err != nil {
		return nil, fmt.Errorf("configure model: %w", err)
	}
	c.Timeout, c.Idle = cmp.Or(c.Timeout, DefaultTimeout), cmp.Or(c.Idle, DefaultIdle)
	m := &Model{config: c, fields: fields, http: c.HTTPClient, redact: transport.NewRedactor(c.key())}
	if m.http == nil {
		m.http = &http.Client{Transport: transport.ForManyWorkers()}
	}
	return m, nil
}

// Close ends the idle connections.
func (m *Model) Close() error {
	m.http.CloseIdleConnections()
	return nil
}

// Format implements fmt.Formatter; see Config.Format.
func (m *Model) Format(f fmt.State, verb rune) { m.config.Format(f, verb) }

// Query implements model.Model with one request; what is done about a failure
// is the caller's. A refused answer may come with what it cost.
func (m *Model) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	reply, err := m.request(ctx, messages)
	reply.Tries = 1
	return reply, err
}

func (m *Model) request(ctx context.Context, messages []model.Message) (model.Reply, error) {
	reasoning := m.config.SendReasoning || m.reasons.Load()
	sent, more, err := outgoing(messages, reasoning)
	if err != nil {
		return model.Reply{}, err
	}
	whole, err := withAdditions(sent, more)
	if err != nil {
		return model.Reply{}, err
	}
	within, cancel := context.WithTimeout(ctx, m.config.Timeout)
	defer cancel()
	x := m.newExchange(whole)
	streams := m.config.Stream && !m.plain.Load()
	raw, err := m.exchange(within, sent, x, streams)
	if err == nil {
		var reply model.Reply
		reply, err = parseReply(m.redact.Bytes(raw), m.config.Price)
		reply.Limits = x.Limits()
		return reply, m.redact.Error(err)
	}
	reply := taken(raw, m.config.Price)
	reply.Limits = x.Limits()
	if ctx.Err() != nil {
		return reply, context.Cause(ctx)
	}
	e, ok := errors.AsType[*model.Error](err)
	switch {
	case !ok && within.Err() != nil:
		err = transport.Late(m.config.Timeout)
	case !ok:
		err = x.Failed(err)
	case streams && cannotStream(e):
		m.plain.Store(true)
		err = otherwise(e, "the server cannot stream; leave out model.stream")
	case !reasoning && wantsReasoning(e):
		m.reasons.Store(true)
		err = otherwise(e, "the server wants the model's earlier thinking; set model.send_reasoning")
	}
	return reply, m.redact.Error(err)
}

// otherwise is a refusal after which the next request is another one.
func otherwise(e *model.Error, hint string) *model.Error {
	return &model.Error{Status: e.Status, Code: e.Code, Retryable: true, AtOnce: true, Err: e.Err, Hint: hint}
}

// newExchange is for one request. Messages stand for those of the client
// library where they are given.
func (m *Model) newExchange(messages json.RawMessage) *transport.Exchange {
	fields := m.fields
	if messages != nil {
		fields = maps.Clone(fields)
		fields["messages"] = messages
	}
	return &transport.Exchange{Base: m.http.Transport, Fields: fields, Headers: m.config.Headers, Idle: m.config.Idle, Limit: transport.MaxResponse, Redact: m.redact}
}

// exchange returns the answer as a chat.completion object, streamed or not, or
// beside an error what there is of it.
func (m *Model) exchange(ctx context.Context, messages []client.ChatCompletionMessage, x *transport.Exchange, streams bool) (json.RawMessage, error) {
	conf := client.DefaultConfig(m.config.key())
	conf.BaseURL = m.config.baseURL()
	conf.HTTPClient = &http.Client{Transport: x, CheckRedirect: x.SameServer, Jar: m.http.Jar}
	c := client.NewClientWithConfig(conf)

	// The model's name is put in by the Exchange: the client library has rules
	// of its own for names that begin like OpenAI's, which servers do not share.
	request := client.ChatCompletionRequest{Messages: messages, Tools: offered(m.config.Tools)}
	if streams {
		request.StreamOptions = &client.StreamOptions{IncludeUsage: true}
		return receive(ctx, c, request, x, m.redact.Pieces(model.Deltas(ctx)))
	}
	if _, err := c.CreateChatCompletion(ctx, request); err != nil {
		return nil, err
	}
	return x.Body(), nil
}

// receive puts a streamed answer together, as far as it came, and tells of it
// piece by piece.
func receive(ctx context.Context, c *client.Client, request client.ChatCompletionRequest, x *transport.Exchange, told *transport.Pieces) (json.RawMessage, error) {
	stream, err := c.CreateChatCompletionStream(ctx, request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }()
	defer told.End()
	f := fold{told: told}
	for {
		event, err := stream.RecvRaw()
		_, told := errors.AsType[*client.APIError](err)
		switch {
		case told || (err == nil && len(event) == 0): // an error event, understood or not
			return nil, transport.Classify(0, transport.ParseDetail(x.LastEvent()))
		case errors.Is(err, io.EOF) && f.empty():
			return x.Body(), nil // a server that does not stream
		case errors.Is(err, io.EOF):
			return f.json()
		case err != nil:
			return f.part(), err
		}
		if err := f.add(event); err != nil {
			return f.part(), err
		}
	}
}

// streaming is how refusals of a stream name it, and "upstream" does not.
var streaming = lazyregexp.New(`(?i)\bstream(s|ed|ing|_options)?\b`)

// cannotStream says that it is the stream that was refused.
func cannotStream(e *model.Error) bool {
	asked := e.Status == model.BadRequest || e.Code == http.StatusNotImplemented
	return asked && e.Err != nil && streaming.MatchString(e.Err.Error())
}

// lacking is how servers ask for the thinking of earlier answers.
var lacking = lazyregexp.New(`(?i)\b(missing|lacks?|requires?|expects?)\b.*reasoning_content|reasoning_content.*\b(missing|required|must be)\b`)

// wantsReasoning says that it is the missing thinking that was refused: of
// DeepSeek and Kimi, where they think between calls.
func wantsReasoning(e *model.Error) bool {
	return e.Status == model.BadRequest && e.Err != nil && lacking.MatchString(e.Err.Error())
}
