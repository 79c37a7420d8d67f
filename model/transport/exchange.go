// Package transport is the layer under a provider's client library: one
// request to a chat API and what came back, as they really were.
//
// Client libraries leave out what they do not know. An Exchange puts the
// user's fields into the request, keeps the response for the record, and
// turns refusals into *model.Error with what the headers said.
//
//	x := &transport.Exchange{Base: http.DefaultTransport, Fields: fields, Limit: 64 << 20}
//	client := &http.Client{Transport: x}
package transport

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"time"

	"github.com/minibench/mini/model"
)

// Exchange is an http.RoundTripper for one request (and the redirects it
// leads to); it is not safe for concurrent use.
type Exchange struct {
	Base http.RoundTripper // default http.DefaultTransport
	// Fields are put into the request's JSON object, over what is there.
	Fields map[string]json.RawMessage
	// Headers are the user's own; see CheckHeaders. A server that the first one
	// sends its callers on to does not get them.
	Headers map[string]string
	// Idle bounds the silences of an event stream once it has begun; 0 does not.
	Idle time.Duration
	// Limit bounds the response's body, in bytes. A longer one is cut, and
	// reading it ends with ErrTooLong.
	Limit int64
	// Redact takes keys out of refusals and events before parts of them are
	// quoted, where half a key would be left.
	Redact Redactor

	host     string // of the first request
	answered bool   // something came, whatever it was
	body     bytes.Buffer
	last     []byte
	limits   model.Limits
}

// dialTimeout bounds how long a server may take to be there at all: packets
// may be lost some times, and an address where all are is soon told.
const dialTimeout = 15 * time.Second

// ForManyWorkers is a RoundTripper that keeps the connections of a large batch:
// the default keeps two.
func ForManyWorkers() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	t = t.Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 256
	t.DialContext = (&net.Dialer{Timeout: dialTimeout}).DialContext
	return t
}

// ErrTooLong ends the reading of a response that is over the limit.
var ErrTooLong = errors.New("the response is too long")

// Body is what came back, as far as it was read: of a plain answer. An event
// stream is not kept, for its reader puts the parts together; LastEvent is the
// newest of its data lines.
func (x *Exchange) Body() []byte { return x.body.Bytes() }

// LastEvent is the newest data of an event stream.
func (x *Exchange) LastEvent() []byte { return x.last }

// Limits are what the headers of the response say that the provider allows.
func (x *Exchange) Limits() model.Limits { return x.limits }

// RoundTrip implements http.RoundTripper. A status of 400 or more is a
// *model.Error, and so is a web page with any.
func (x *Exchange) RoundTrip(req *http.Request) (*http.Response, error) {
	req, err := x.merge(req)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(req.Context())
	base := x.Base
	if base == nil {
		base = http.DefaultTransport
	}
	resp, err := base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	x.answered = true
	resp.Body = closer{resp.Body, cancel}
	x.limits = limits(resp.Header)
	if resp.StatusCode >= http.StatusBadRequest {
		err := x.refusal(resp)
		_ = resp.Body.Close()
		return nil, err
	}
	x.body.Reset()
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	streams := kind == "text/event-stream"
	if streams && x.Idle > 0 {
		resp.Body = newIdle(resp.Body, x.Idle, cancel)
	}
	limited := bufio.NewReader(&limitedReader{r: resp.Body, left: x.Limit})
	if streams {
		resp.Body = readCloser{newEvents(limited, &x.last, x.Redact), resp.Body}
		return resp, nil
	}
	if first, err := limited.Peek(1); err == nil && first[0] == '<' {
		_ = resp.Body.Close()
		return nil, page(resp.StatusCode)
	}
	resp.Body = readCloser{io.TeeReader(limited, &x.body), resp.Body}
	return resp, nil
}

// merge returns a copy of the request: a RoundTripper may not change its own.
func (x *Exchange) merge(req *http.Request) (*http.Request, error) {
	merged := req.Clone(req.Context())
	if x.host == "" {
		x.host = req.URL.Host
	}
	if req.URL.Host == x.host {
		for name, value := range x.Headers {
			merged.Header.Set(name, value)
		}
	}
	if len(x.Fields) == 0 || req.Body == nil {
		return merged, nil
	}
	defer func() { _ = req.Body.Close() }()
	object := map[string]json.RawMessage{}
	if err := json.NewDecoder(req.Body).Decode(&object); err != nil {
		return nil, fmt.Errorf("merge fields into request: %w", err)
	}
	for name, value := range x.Fields {
		object[name] = value
	}
	body, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("merge fields into request: %w", err)
	}
	merged.Body = io.NopCloser(bytes.NewReader(body))
	merged.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	merged.ContentLength = int64(len(body))
	return merged, nil
}

// closer ends what belongs to a request when its answer is done with.
type closer struct {
	io.ReadCloser
	end context.CancelFunc
}

// Close implements io.Closer.
func (c closer) Close() error {
	defer c.end()
	return c.ReadCloser.Close()
}

type readCloser struct {
	io.Reader
	io.Closer
}

// limitedReader is an io.LimitedReader that tells an end from a cut.
type limitedReader struct {
	r    io.Reader
	left int64
}

func (l *limitedReader) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, ErrTooLong
	}
	n, err := l.r.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}
