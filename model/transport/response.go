package transport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"

	"github.com/minibench/mini/model"
)

// Response is a successful HTTP response.
type Response struct {
	body       io.ReadCloser
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
		if first, err := in.Peek(1); err == nil && first[0] == '<' {
			return webPageError(resp.StatusCode)
		}
	}
	r.body = struct {
		io.Reader
		io.Closer
	}{in, resp.Body}
	return nil
}

// IsStream reports whether the response is an event stream. Some servers ignore
// whether the request asks for one.
func (r *Response) IsStream() bool { return r.isStream }

// JSON returns the whole body without keys.
func (r *Response) JSON() ([]byte, error) {
	body, err := io.ReadAll(r.body)
	return r.redact.Bytes(body), err
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

// Events returns the data of a stream's events, each of which must be on one line. Event
// names are ignored, since some proxies drop them, and so are comments, which keep
// connections alive.
func Events(body io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for in := bufio.NewReader(body); ; {
			line, err := in.ReadBytes('\n')
			if err != nil && !errors.Is(err, io.EOF) {
				yield(nil, fmt.Errorf("read stream: %w", err))
				return
			}
			data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
			if data = bytes.TrimSpace(data); ok && len(data) > 0 && !yield(data, nil) || err != nil {
				return
			}
		}
	}
}

// ErrResponseTooLarge means that a response reaches Client.MaxResponseBytes.
var ErrResponseTooLarge = errors.New("response is too large")

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

// ClampTokens bounds a server's token count to a range that is safe to add and
// multiply.
func ClampTokens[N int | int64](n N) int64 { return min(max(0, int64(n)), 1<<40) }

// MalformedResponse returns the error of an invalid response; a retry may help.
func MalformedResponse(format string, args ...any) error {
	return &model.Error{Status: model.ProviderError, Retryable: true, Err: fmt.Errorf(format, args...)}
}

// UnexpectedResponse returns the error of a response that is not from the API: a
// temporary failure, or a different kind of server.
func UnexpectedResponse(hint, format string, args ...any) error {
	return &model.Error{Status: model.ProviderError, Retryable: true, MaybeMisconfigured: true, Err: fmt.Errorf(format, args...), Hint: hint}
}
