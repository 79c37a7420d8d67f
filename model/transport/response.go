package transport

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minibench/mini/model"
)

// Response is a successful HTTP response.
type Response struct {
	body       io.Reader
	isStream   bool
	started    bool // a part of the response has arrived
	rateLimits model.RateLimits
	redact     Redactor
}

// open checks the response; cancel ends the request.
func (r *Response) open(resp *http.Response, c *Client, cancel context.CancelFunc) error {
	r.started, r.rateLimits = true, rateLimits(resp.Header)
	if resp.StatusCode >= http.StatusBadRequest {
		return c.statusError(resp)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	r.isStream = kind == "text/event-stream"
	if r.isStream {
		resp.Body = newIdleReader(resp.Body, c.IdleTimeout, cancel)
	}
	in := bufio.NewReader(&limitedReader{r: resp.Body, left: c.MaxResponseBytes})
	if !r.isStream {
		start, _ := in.Peek(len("data:"))
		if len(start) > 0 && start[0] == '<' {
			return webPageError(resp.StatusCode)
		}
		r.isStream = string(start) == "data:" // of a server that sends another type
	}
	r.body = in
	return nil
}

// IsStream reports whether the response is an event stream. Some servers ignore
// whether the request asks for one.
func (r *Response) IsStream() bool { return r.isStream }

// JSON returns the whole body without keys.
func (r *Response) JSON() ([]byte, error) {
	body, err := readAll(r.body)
	return r.redact.Bytes(body), err
}

// Read reads the answer of one API: a whole one with whole, the events of a stream with
// stream, which sends deltas to the listener in ctx.
func (r *Response) Read(ctx context.Context, price model.Price, whole func([]byte, model.Price) (model.Reply, error),
	stream func(iter.Seq2[[]byte, error], Redactor, *DeltaWriter, model.Price) (model.Reply, error),
) (model.Reply, error) {
	if !r.isStream {
		body, err := r.JSON()
		if err != nil {
			return model.Reply{}, err
		}
		return whole(body, price)
	}
	deltas := r.redact.DeltaWriter(model.DeltaListener(ctx))
	defer deltas.Close()
	return stream(r.Events(), r.redact, deltas, price)
}

// readAll is like io.ReadAll, but a body that is too large costs its limit in memory, not a
// multiple. An error may come without the part that was read.
func readAll(in io.Reader) ([]byte, error) {
	const size = 1 << 20
	first, err := io.ReadAll(io.LimitReader(in, size))
	if err != nil || len(first) < size {
		return first, err
	}
	for chunks := [][]byte{first}; ; {
		chunk := make([]byte, size)
		n, err := io.ReadFull(in, chunk)
		chunks = append(chunks, chunk[:n])
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return bytes.Join(chunks, nil), nil
		case err != nil:
			return nil, err
		}
	}
}

// Events returns the data of a stream's events without keys.
func (r *Response) Events() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for data, err := range Events(r.body) {
			if !yield(r.redact.Bytes(data), err) {
				return
			}
		}
	}
}

// Events returns the data of the events of a stream, as the HTML standard reads event
// streams. Event names are ignored, since some proxies drop them, and so are comments,
// which keep connections alive. Some servers leave out the blank line between events, so
// a line with a complete JSON value is an event of its own.
func Events(body io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		in := lineReader{in: bufio.NewReader(body)}
		if start, _ := in.in.Peek(len(byteOrderMark)); string(start) == byteOrderMark {
			_, _ = in.in.Discard(len(byteOrderMark)) // cannot fail: these bytes are buffered
		}
		var data []byte
		lines := 0
		dispatch := func() bool {
			event := bytes.TrimSpace(data)
			data, lines = nil, 0
			return len(event) == 0 || yield(event, nil)
		}
		for {
			line, err := in.next()
			if err != nil && !errors.Is(err, io.EOF) {
				yield(nil, fmt.Errorf("read stream: %w", err))
				return
			}
			name, value, _ := bytes.Cut(line, []byte(":"))
			if string(name) == "data" {
				if lines == 1 && (json.Valid(data) || string(bytes.TrimSpace(data)) == "[DONE]") && !dispatch() {
					return
				}
				data = append(append(data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
				lines++
			}
			if (len(line) == 0 || err != nil) && !dispatch() || err != nil {
				return
			}
		}
	}
}

const byteOrderMark = "\ufeff"

// lineReader reads lines that end with \n, \r or \r\n. It returns a line that ends with
// \r at once, since the next byte may arrive much later.
type lineReader struct {
	in    *bufio.Reader
	endCR bool // the last line ended with \r
}

// next returns the next line without its end.
func (r *lineReader) next() (line []byte, err error) {
	for {
		b, err := r.in.ReadByte()
		wasCR := r.endCR
		r.endCR = b == '\r' && err == nil
		switch {
		case err != nil:
			return line, err
		case b == '\n' && wasCR:
		case b == '\n' || b == '\r':
			return line, nil
		default:
			line = append(line, b)
		}
	}
}

// ErrResponseTooLarge means that a response reaches Client.MaxResponseBytes.
var ErrResponseTooLarge = errors.New("the response is too large: the limit is 64 MiB")

// limitedReader is like io.LimitedReader, but fails at the limit.
type limitedReader struct {
	r    io.Reader
	left int64
}

func (l *limitedReader) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, ErrResponseTooLarge
	}
	n, err := l.r.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

// maxToolCalls bounds the tool calls of an answer. More come from a model that repeats
// itself, and each would be recorded and run.
const maxToolCalls = 1000

// CheckToolCalls returns an error for an answer with too many tool calls.
func CheckToolCalls(n int) error {
	if n <= maxToolCalls {
		return nil
	}
	return &model.Error{Status: model.ProviderError, Err: fmt.Errorf("the answer has more than %d tool calls or numbered parts", maxToolCalls)}
}

// MalformedResponse returns the error of an invalid response; a retry may help.
func MalformedResponse(format string, args ...any) error {
	return &model.Error{Status: model.ProviderError, Retryable: true, Err: fmt.Errorf(format, args...)}
}

// UnexpectedResponse returns the error of a response that is not from the API: a
// temporary failure, or a different kind of server.
func UnexpectedResponse(hint, format string, args ...any) error {
	return &model.Error{Status: model.ProviderError, Retryable: true, MaybeMisconfigured: true, Err: fmt.Errorf(format, args...), Hint: hint}
}

// idleReader ends a stream in which no data arrives for too long. Before the
// first byte only the timeout of the request applies: the server may be queueing
// or thinking.
type idleReader struct {
	io.ReadCloser
	limit   time.Duration
	timer   *time.Timer // nil before the first byte
	cancel  context.CancelFunc
	stalled atomic.Bool
}

// newIdleReader wraps the body of a response; cancel ends the request.
func newIdleReader(body io.ReadCloser, limit time.Duration, cancel context.CancelFunc) *idleReader {
	return &idleReader{ReadCloser: body, limit: limit, cancel: cancel}
}

// Read implements io.Reader. The timer runs only while a Read waits for the
// server.
func (i *idleReader) Read(p []byte) (int, error) {
	if i.timer != nil {
		i.timer.Reset(i.limit)
	}
	n, err := i.ReadCloser.Read(p)
	switch {
	case i.timer != nil:
		i.timer.Stop()
	case n > 0:
		i.timer = time.AfterFunc(i.limit, i.stall)
		i.timer.Stop()
	}
	if err != nil && err != io.EOF && i.stalled.Load() {
		err = &model.Error{
			Status: model.ProviderError, Retryable: true,
			Err:  fmt.Errorf("stream stalled: no data for %v", i.limit),
			Hint: "raise model.stream_idle for a server that pauses longer",
		}
	}
	return n, err
}

func (i *idleReader) stall() {
	i.stalled.Store(true)
	i.cancel()
}

// Close implements io.Closer.
func (i *idleReader) Close() error {
	if i.timer != nil {
		i.timer.Stop()
	}
	defer i.cancel()
	return i.ReadCloser.Close()
}

// Unmarshal is json.Unmarshal for a response. A value of another type than v has is left
// out, and the rest is read: servers differ in fields that mini can do without. Callers
// check the fields that they need.
func Unmarshal(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// IsPresent reports whether a field of a response has a value that is not empty. Some
// servers send empty values where others leave out the field.
func IsPresent(field json.RawMessage) bool {
	return !slices.Contains([]string{"", "null", "false", "0", `""`, "{}", "[]"}, string(field))
}

// Number is a number in a response. A number in a string counts, too; other values are 0.
type Number float64

// UnmarshalJSON implements json.Unmarshaler.
func (n *Number) UnmarshalJSON(data []byte) error {
	f, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64)
	if err != nil || f != f {
		f = 0
	}
	*n = Number(f)
	return nil
}

// Tokens returns the number as a token count in a range that is safe to add and multiply.
func (n Number) Tokens() int64 { return int64(min(max(0, n), 1<<40)) }

// Text is a text in a response. A JSON value of another type is its JSON, and null is "".
type Text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(data []byte) error {
	*t = Text(asText(data))
	return nil
}
