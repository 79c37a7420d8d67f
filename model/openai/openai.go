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
		KeyHint: c.KeyHint,
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
	reply, err := m.client.Query(ctx, r, func(resp *transport.Response) (model.Reply, error) {
		reply, err := resp.Read(ctx, m.config.Price, parseReply, readStream)
		if err == nil && m.config.Tokens {
			err = TakeTokens(&reply)
		}
		return reply, err
	})
	e, ok := errors.AsType[*model.Error](err)
	switch {
	case !ok:
	case r.Stream && cannotStream(e):
		m.noStream.Store(true)
		err = retryChanged(e, "the server cannot stream; leave out model.stream")
	case !reasoning && requiresReasoning(e):
		m.needsReasoning.Store(true)
		err = retryChanged(e, "the server wants the model's earlier thinking; set model.send_reasoning")
	}
	return reply, err
}

// readStream reads a streamed response, without the keys in the redactor.
func readStream(events iter.Seq2[[]byte, error], keys transport.Redactor, deltas *transport.DeltaWriter, price model.Price) (model.Reply, error) {
	raw, err := receive(events, deltas)
	if err == nil {
		return parseReply(keys.Bytes(raw), price)
	}
	if raw == nil {
		return model.Reply{}, err
	}
	// An incomplete response may report usage, although most servers do so at its end.
	reply, _ := parseReply(raw, price) // it fails because the response is incomplete
	return model.Reply{Usage: reply.Usage, Cost: reply.Cost}, err
}

// retryChanged returns e as an error that is retried without a wait: the next request
// differs from the rejected one.
func retryChanged(e *model.Error, hint string) *model.Error {
	return &model.Error{Status: e.Status, HTTPStatus: e.HTTPStatus, Retryable: true, RetryNow: true, Err: e.Err, Hint: hint}
}

// receive assembles a streamed response and sends its texts to deltas. With an error
// it returns what has arrived so far, or nil if the server reported the error.
func receive(events iter.Seq2[[]byte, error], deltas *transport.DeltaWriter) (json.RawMessage, error) {
	acc := accumulator{deltas: deltas}
	for data, err := range events {
		switch {
		case err != nil:
			return acc.partialJSON(), err
		case string(data) == "[DONE]":
			return acc.json()
		}
		var failure struct {
			Error json.RawMessage `json:"error"`
		}
		if json.Unmarshal(data, &failure) == nil && transport.IsPresent(failure.Error) {
			return nil, transport.Classify(0, transport.ParseErrorDetail(data))
		}
		if err := acc.add(data); err != nil {
			return acc.partialJSON(), err
		}
	}
	return acc.json()
}

// mentionsStream matches the words for streaming in error messages, but not
// "upstream".
var mentionsStream = lazyregexp.New(`(?i)\bstream(s|ed|ing|_options)?\b`)

// cannotStream reports whether the server rejected streaming.
func cannotStream(e *model.Error) bool {
	rejected := e.Status == model.BadRequest || e.HTTPStatus == http.StatusNotImplemented
	return rejected && e.Err != nil && mentionsStream.MatchString(e.Err.Error())
}

// missingReasoning matches error messages that ask for the thinking of earlier replies.
var missingReasoning = lazyregexp.New(`(?i)\b(missing|lacks?|requires?|expects?)\b.*reasoning_content|reasoning_content.*\b(missing|required|must be)\b`)

// requiresReasoning reports whether the server rejected a request because earlier
// thinking was missing, as DeepSeek and Kimi do in thinking mode with tools.
func requiresReasoning(e *model.Error) bool {
	return e.Status == model.BadRequest && e.Err != nil && missingReasoning.MatchString(e.Err.Error())
}
