package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/dialect"
	"github.com/minibench/mini/model/raw"
)

// Exchange is one model request of the agent and its answer.
type Exchange struct {
	IsCount bool // it only counts tokens, and costs nothing
	Dialect string
	Path    string
	Headers map[string]string // that tell the thread
	// Request is the request as the provider got it, Messages its conversation.
	Request  *dialect.Body
	Messages []model.Message
	HasTools bool
	Stream   bool
	// RequestedModel is the name in the agent's request.
	RequestedModel string
	Edits          []string // what was changed in the request
	Start          time.Time
	Duration       time.Duration
	Reply          model.Reply
	Err            error // why there is no usable reply
	Cancelled      bool  // the agent did not wait for the answer

	// What the agent had not asked for.
	hidesUsage   bool
	hiddenTokens []string
}

// maxCounts bounds the requests of an attempt that count tokens.
const maxCounts = 1000

// countTimeout bounds such a request with its retries.
const countTimeout = time.Minute

// serveModel answers a model request, or one that counts tokens.
func (b *Bridge) serveModel(w http.ResponseWriter, r *http.Request, t route) {
	body, release, status := b.readBody(w, r)
	defer release()
	if status != 0 {
		refuse(w, t.dialect, status, "the request cannot be read; the limit is 64 MiB, without a content encoding")
		return
	}
	answer, isRepeat := b.answers.begin(r, body)
	if isRepeat && answer.replay(r.Context(), w) {
		return
	}
	if isRepeat { // the first request failed or was cancelled
		answer = b.answers.replace(r, body)
	}
	out := &answerWriter{w: w, dialect: t.dialect, copy: answer}
	ok := false
	defer func() { answer.end(ok) }()
	x, err := b.parse(r, t, body)
	if err != nil {
		b.report("RequestRefused", "RequestRefused: "+err.Error(), b.config.Warn)
		out.fail(http.StatusBadRequest, t.dialect.Problem(http.StatusBadRequest, err.Error()))
		return
	}
	if !b.speaks(t.dialect) {
		out.fail(http.StatusNotFound, t.dialect.Problem(http.StatusNotFound, "the model's provider does not speak this dialect ("+t.dialect.Name()+")"))
		return
	}
	if x.IsCount && !b.mayCount() {
		out.fail(http.StatusBadRequest, t.dialect.Problem(http.StatusBadRequest, fmt.Sprintf("an attempt counts tokens at most %d times; estimate them", maxCounts)))
		return
	}
	if err := b.config.Begin(x.IsCount); err != nil {
		out.fail(http.StatusBadRequest, t.dialect.Problem(http.StatusBadRequest, "attempt limit reached: "+err.Error()))
		return
	}
	ok = b.exchange(r, out, x, b.providerPath(r, t))
}

func (b *Bridge) mayCount() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counts++
	return b.counts <= maxCounts
}

// exchange sends a request to the provider, records it, and ends the answer. It reports
// whether the agent got a usable answer.
func (b *Bridge) exchange(r *http.Request, out *answerWriter, x *Exchange, path string) bool {
	ctx, done := b.waits.track(r.Context())
	defer done()
	d := dialect.ByName(x.Dialect)
	request := &raw.Exchange{Dialect: d, Path: path, Header: providerHeaders(d, r.Header), Body: x.Request.Bytes(), Send: out.send}
	estimate := raw.Estimate(request.Body)
	if x.IsCount {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, countTimeout)
		defer cancel()
		request.Dialect, estimate = countDialect{d}, nil
	}
	if b.asksTokens(d) {
		request.Dialect = dialect.WithTokens(d)
	}
	request.Edit = func(data []byte) []byte {
		if x.hidesUsage && dialect.IsUsageOnly(data) {
			return nil
		}
		return dialect.RemoveTokens(data, x.hiddenTokens)
	}
	if x.Stream {
		defer out.keepAlive()()
	}
	x.Reply, x.Err = b.config.Model.Query(raw.WithExchange(ctx, request), estimate)
	x.Duration = time.Since(x.Start)
	x.Cancelled = x.Err != nil && r.Context().Err() != nil
	usable := x.Err == nil || !x.Cancelled && isRefusal(x.Err) && (request.Answer != nil || request.Rest != nil)
	if err := b.config.Record(*x); err != nil {
		out.fail(http.StatusInternalServerError, d.Problem(http.StatusInternalServerError, "the exchange cannot be recorded"))
		return false
	}
	switch {
	case x.Cancelled:
	case usable && request.Streamed:
		out.finish(request.Rest)
	case usable:
		out.whole(request.Answer)
	case x.IsCount: // agents then estimate
		out.fail(http.StatusNotFound, d.Problem(http.StatusNotFound, "the provider does not count tokens"))
	default:
		out.fail(failure(d, request, x.Err))
	}
	return usable
}

// isRefusal reports whether an answer is complete, although it is an error for mini: the
// agent has to see it.
func isRefusal(err error) bool {
	e, ok := errors.AsType[*model.Error](err)
	return ok && (e.Status == model.ContentRefused || e.Status == model.ContextWindowExceeded)
}

// failure returns the response for an error of the provider: its own, if there was one.
func failure(d dialect.Dialect, x *raw.Exchange, err error) (status int, body []byte) {
	if x.ErrorStatus != 0 && json.Valid(x.ErrorBody) {
		return x.ErrorStatus, x.ErrorBody
	}
	status = http.StatusBadGateway
	switch e, ok := errors.AsType[*model.Error](err); {
	case ok && e.HTTPStatus >= http.StatusBadRequest:
		status = e.HTTPStatus
	case ok && e.Status == model.BadRequest: // the agent must not ask again
		status = http.StatusBadRequest
	}
	return status, d.Problem(status, err.Error())
}

// parse reads and edits a request. Its error is for the agent.
func (b *Bridge) parse(r *http.Request, t route, body []byte) (*Exchange, error) {
	d := t.dialect
	if b.asksTokens(d) {
		d = dialect.WithTokens(d)
	}
	request, dropped, err := dialect.ParseRequest(d, body, b.config.AllowServerTools)
	if err != nil {
		return nil, err
	}
	x := &Exchange{
		IsCount: t.kind == kindCount, Dialect: t.dialect.Name(), Path: r.URL.Path, Headers: threadHeaders(r.Header), Request: request, Start: time.Now(),
		HasTools: dialect.HasTools(request), Stream: t.kind == kindModel && string(request.Get("stream")) == "true", RequestedModel: request.Text("model"),
	}
	for _, name := range dropped {
		x.Edits = append(x.Edits, "field dropped: "+name)
		b.report("FieldDropped", "FieldDropped: the field "+name+" of the agent's requests ("+x.Dialect+") is not sent to the provider", b.config.Warn)
	}
	if x.Messages, err = t.dialect.Messages(request); err != nil {
		return nil, err
	}
	if !b.config.AllowServerTools {
		for _, tool := range dialect.RemoveServerTools(t.dialect, request) {
			x.Edits = append(x.Edits, "tool removed: "+tool)
		}
	}
	if t.model != "" {
		x.RequestedModel, x.Stream = t.model, t.path == ":streamGenerateContent"
	} else if name := b.config.ModelName; x.RequestedModel != name {
		quoted, _ := json.Marshal(name) // strings always encode
		request.Set("model", quoted)
		x.Edits = append(x.Edits, "model replaced")
	}
	if x.Dialect == "chat" && x.Stream && dialect.AddUsage(request) {
		x.hidesUsage = true
		x.Edits = append(x.Edits, "stream_options.include_usage added")
	}
	switch {
	case b.asksTokens(d):
		x.hiddenTokens = dialect.AddTokens(request)
		for _, name := range x.hiddenTokens {
			x.Edits = append(x.Edits, name+" added")
		}
	case b.config.Tokens && !x.IsCount:
		b.report("TokensUnavailable", "TokensUnavailable: requests in the dialect "+x.Dialect+" get no token ids, which only chat completions have; the journal has none of them", b.config.Warn)
	}
	return x, nil
}

func (b *Bridge) asksTokens(d dialect.Dialect) bool { return b.config.Tokens && dialect.HasTokens(d) }

// readBody reads a request's body. status is that of the refusal, or 0. The caller must
// call release at the end of the request: only a few requests may be large at once.
func (b *Bridge) readBody(w http.ResponseWriter, r *http.Request) (body []byte, release func(), status int) {
	release = func() {}
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil, release, http.StatusUnsupportedMediaType
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, largeBody))
	if err == nil && len(body) == largeBody {
		select {
		case b.large <- struct{}{}:
			release = func() { <-b.large }
		case <-r.Context().Done():
			return nil, release, http.StatusBadRequest
		}
		var rest []byte
		rest, err = io.ReadAll(io.LimitReader(r.Body, maxBody+1-largeBody))
		body = append(body, rest...)
	}
	switch {
	case err != nil:
		return nil, release, http.StatusBadRequest
	case len(body) <= maxBody:
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // the answer may take long
		return body, release, 0
	}
	_, _ = io.CopyN(io.Discard, r.Body, maxDiscard) // the end of the body is usual
	return nil, release, http.StatusRequestEntityTooLarge
}

// countDialect reads answers that count tokens, which cost nothing.
type countDialect struct{ dialect.Dialect }

// Reply implements dialect.Dialect.
func (countDialect) Reply(body []byte, _ model.Price) (model.Reply, error) {
	if !json.Valid(body) {
		return model.Reply{}, errors.New("read count: the answer is not JSON")
	}
	return model.Reply{Raw: body}, nil
}
