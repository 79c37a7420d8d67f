// Package transport sends requests to chat APIs. It adds the user's fields to the
// request, turns HTTP errors into *model.Error, with Retry-After, and redacts keys
// everywhere.
//
//	c := transport.New(transport.Client{URL: base + "/v1/messages", Header: header, Redact: transport.NewRedactor(key)})
//	reply, err := c.Query(ctx, request, func(r *transport.Response) (model.Reply, error) { return parse(r.JSON()) })
package transport

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/minibench/mini/model"
)

// Defaults of Client.
const (
	DefaultTimeout     = 10 * time.Minute
	DefaultIdleTimeout = 2 * time.Minute
	// DefaultMaxResponseBytes is the default of Client.MaxResponseBytes.
	DefaultMaxResponseBytes = 64 << 20
)

// Client sends requests to one endpoint. It is safe for concurrent use.
type Client struct {
	// URL and the values of Header, which includes the key, can have the placeholders of model.Conversation.
	URL    string
	Header http.Header
	// ExtraFields are set in the body of every request and override its own.
	ExtraFields map[string]json.RawMessage
	// Timeout bounds one request, up to the last byte of the response;
	// IdleTimeout bounds the time between two parts of an event stream.
	Timeout, IdleTimeout time.Duration
	// MaxResponseBytes bounds the body of a successful response: reading a body of
	// this length or more fails with ErrResponseTooLarge.
	MaxResponseBytes int64
	// Redact removes keys from responses and errors before they are truncated,
	// since a Redactor does not recognize a part of a key.
	Redact Redactor
	// KeyHint is the hint of errors about the key; "" means the general one.
	KeyHint string
	// OnError gets the body of an error response, without keys; may be nil.
	OnError func(status int, body []byte)
	// HTTP is for proxies and tests; its Timeout is ignored.
	HTTP *http.Client
}

// New returns a Client with defaults set.
func New(c Client) *Client {
	c.Timeout, c.IdleTimeout = cmp.Or(c.Timeout, DefaultTimeout), cmp.Or(c.IdleTimeout, DefaultIdleTimeout)
	c.MaxResponseBytes = cmp.Or(c.MaxResponseBytes, DefaultMaxResponseBytes)
	if c.HTTP == nil {
		c.HTTP = &http.Client{Transport: newTransport()}
	}
	return &c
}

// Close closes the idle connections.
func (c *Client) Close() error {
	c.HTTP.CloseIdleConnections()
	return nil
}

// dialTimeout bounds connecting: long enough for a few lost packets, short enough
// to report a wrong address soon.
const dialTimeout = 15 * time.Second

// newTransport returns a transport that keeps up to 256 idle connections per host, one
// for each worker; the default transport keeps two per host.
func newTransport() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	t = t.Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 256
	t.DialContext = (&net.Dialer{Timeout: dialTimeout}).DialContext
	return t
}

// NewHTTPClient returns an HTTP client for the field HTTP of several Clients. It connects only to addresses that
// check accepts.
func NewHTTPClient(check func(netip.Addr) error) *http.Client {
	t := newTransport()
	if t, ok := t.(*http.Transport); ok {
		t.DialContext = (&net.Dialer{Timeout: dialTimeout, Control: func(_, address string, _ syscall.RawConn) error {
			a, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			return check(a.Addr().Unmap())
		}}).DialContext
	}
	return &http.Client{Transport: t}
}

// printableHeader returns a value for a header: other characters than printable ASCII are escaped.
func printableHeader(value string) string {
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
		return url.PathEscape(value)
	}
	return value
}

// Query sends a request, which must encode to a JSON object or be an encoded one as
// []byte, and reads the response with read. Its errors are *model.Error, the cause of ctx, or an error of
// encoding the request.
func (c *Client) Query(ctx context.Context, request any, read func(*Response) (model.Reply, error)) (model.Reply, error) {
	body, err := c.body(request)
	if err != nil {
		return model.Reply{}, fmt.Errorf("write request: %w", err)
	}
	requestCtx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	response, reply := &Response{redact: c.Redact}, model.Reply{}
	conversation := model.ConversationOf(ctx)
	req, err := http.NewRequestWithContext(requestCtx, http.MethodPost, conversation.Expand(c.URL, url.PathEscape), bytes.NewReader(body))
	if err == nil {
		req.Header = c.Header.Clone()
		for _, values := range req.Header {
			for i, v := range values {
				values[i] = conversation.Expand(v, printableHeader)
			}
		}
		req.Header.Set("Content-Type", "application/json")
		client := &http.Client{Transport: c.HTTP.Transport, CheckRedirect: c.checkRedirect, Jar: c.HTTP.Jar}
		var resp *http.Response
		if resp, err = client.Do(req); err == nil {
			if err = response.open(resp, c, cancel); err == nil {
				reply, err = read(response)
			}
			_ = resp.Body.Close()
		}
	}
	reply.Tries, reply.RateLimits = 1, response.rateLimits
	switch {
	case err == nil:
		return reply, nil
	case ctx.Err() != nil:
		return reply, context.Cause(ctx)
	}
	e, ok := errors.AsType[*model.Error](err)
	switch {
	case ok:
	case errors.Is(requestCtx.Err(), context.DeadlineExceeded):
		e = timeoutError(c.Timeout)
	default:
		e = transportError(err, response.started)
	}
	if c.KeyHint != "" && e.Status == model.AuthenticationError && e.HTTPStatus >= http.StatusUnauthorized && e.HTTPStatus <= http.StatusForbidden {
		e.Hint = c.KeyHint
	}
	return reply, c.Redact.error(e)
}

// body encodes a request and adds the extra fields.
func (c *Client) body(request any) ([]byte, error) {
	if encoded, ok := request.([]byte); ok {
		return encoded, nil
	}
	body, err := json.Marshal(request)
	if err != nil || len(c.ExtraFields) == 0 {
		return body, err
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(body, &object); err != nil {
		return nil, err
	}
	maps.Copy(object, c.ExtraFields)
	return json.Marshal(object)
}

// maxHost bounds the name of a host in an error, in bytes.
const maxHost = 253

// checkRedirect keeps the key on the configured server. net/http would also send
// it to another port, from https to http, and in unknown headers to any host.
func (c *Client) checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	if len(via) >= 10 || req.URL.Host != first.Host || req.URL.Scheme != first.Scheme {
		host := c.Redact.Bytes([]byte(req.URL.Host)) // redact before truncating: a part of a key is not recognized
		return &model.Error{
			Status: model.BadRequest, Err: fmt.Errorf("the server redirects to %s://%s", req.URL.Scheme, host[:min(len(host), maxHost)]),
			Hint: "set the base URL (model.base_url) to the redirect target, if that host may receive the key",
		}
	}
	return nil
}

// EncodeKwargs encodes the user's fields of a request as JSON. It rejects API keys, and
// the fields in reserved, which mini sets.
func EncodeKwargs(kwargs map[string]any, reserved ...string) (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	for name, value := range kwargs {
		switch {
		case slices.Contains(reserved, name):
			return nil, fmt.Errorf("model kwargs: %q is set by mini", name)
		case name == "api_key" || IsSecretHeader(name):
			return nil, fmt.Errorf("model kwargs: %q: set keys in the environment", name)
		}
		b, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("model kwargs: %s: %w", name, err)
		}
		fields[name] = b
	}
	return fields, nil
}
