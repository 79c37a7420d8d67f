package hub

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// request is a GET request: to the hub's API, or for a file.
type request struct {
	url    string
	from   int64 // offset in the file; the constant api for API requests
	ref    Ref   // the dataset, for messages; may be zero
	accept []int // statuses to accept besides 2xx
}

// api is the value of request.from for API requests.
const api = -1

// newClient returns a client that follows redirects, for renamed repositories and for files
// on a CDN, and sends the token only to the hub.
func newClient(base http.RoundTripper, hub *url.URL, token string) *http.Client {
	if base == nil {
		if t, ok := http.DefaultTransport.(*http.Transport); ok {
			base = t.Clone() // so that Close closes only the connections of this client
		} else {
			base = http.DefaultTransport
		}
	}
	return &http.Client{Transport: &tokenTransport{base: base, hub: origin(hub), token: token}, CheckRedirect: checkRedirect}
}

func checkRedirect(next *http.Request, before []*http.Request) error {
	if len(before) >= 10 {
		return redirectError("redirected ten times")
	}
	if before[0].URL.Scheme == "https" && next.URL.Scheme != "https" {
		return redirectError("redirected from https to " + printable(next.URL.Scheme))
	}
	return nil
}

// redirectError says why the client does not follow a redirect.
type redirectError string

func (e redirectError) Error() string { return string(e) }

// tokenTransport adds the token to requests to the hub. net/http would also send an
// Authorization header to subdomains and other ports.
type tokenTransport struct {
	base       http.RoundTripper
	hub, token string // hub is the origin that receives the token
}

// RoundTrip implements http.RoundTripper.
func (t *tokenTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Del("Authorization")
	r.Header.Del("Referer") // it may contain a signed URL
	if t.token != "" && origin(r.URL) == t.hub {
		r.Header.Set("Authorization", "Bearer "+t.token)
	}
	return t.base.RoundTrip(r)
}

// CloseIdleConnections is called by http.Client.CloseIdleConnections.
func (t *tokenTransport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// origin returns scheme, host and port in a normalized form.
func origin(u *url.URL) string {
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

var errStalled = errors.New("no data received")

// get makes one request. The error is a *transientError if a retry may succeed, the cause of
// ctx if that ended, and otherwise an *Error. The caller must close the body.
func (h *Hub) get(ctx context.Context, q request) (*http.Response, error) {
	inner, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(h.stallTimeout, func() { cancel(errStalled) })
	stop := func() { timer.Stop(); cancel(nil) }

	req, err := http.NewRequestWithContext(inner, http.MethodGet, q.url, nil)
	if err != nil {
		stop()
		return nil, &Error{kind: ErrResponse, Text: "the hub's address cannot be used: " + printable(h.host)}
	}
	req.Header.Set("User-Agent", "mini (github.com/minibench/mini)")
	if q.from >= 0 { // a file: avoid compression, so that offsets are valid
		req.Header.Set("Accept-Encoding", "identity")
	}
	if q.from > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", q.from))
	}
	resp, err := h.client.Do(req)
	if err != nil {
		err = h.networkError(ctx, inner, err)
		stop()
		return nil, err
	}
	h.reached.Store(true)
	if resp.StatusCode/100 == 2 || slices.Contains(q.accept, resp.StatusCode) {
		resp.Body = &stallBody{ReadCloser: resp.Body, h: h, host: resp.Request.URL.Host, outer: ctx, inner: inner, timer: timer, stop: stop}
		return resp, nil
	}
	defer stop()
	defer resp.Body.Close() //nolint:errcheck // the body is not needed
	if q.from >= 0 && origin(resp.Request.URL) != h.origin {
		return nil, h.storeError(resp)
	}
	return nil, h.statusError(resp, q.ref)
}

// stallBody is a response body whose Read fails if no data arrives for Hub.stallTimeout.
type stallBody struct {
	io.ReadCloser
	h            *Hub
	host         string          // of the server
	outer, inner context.Context //nolint:containedctx // the body belongs to one request
	timer        *time.Timer
	stop         func()
}

// Read implements io.Reader.
func (b *stallBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.timer.Reset(b.h.stallTimeout)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.h.networkError(b.outer, b.inner, err)
		if transient, ok := errors.AsType[*transientError](err); ok {
			reason := printable(cause(transient.err.err))
			transient.err.Text = fmt.Sprintf("the connection to %s was lost: %s", printable(b.host), reason)
			transient.err.Hint = "check the network, and run the command again; it resumes the download"
		}
	}
	return n, err
}

// Close implements io.Closer.
func (b *stallBody) Close() error {
	b.stop()
	return b.ReadCloser.Close()
}

// networkError converts an error of the network. outer is the caller's context, inner that
// of the request.
func (h *Hub) networkError(outer, inner context.Context, err error) error {
	if outer.Err() != nil {
		return context.Cause(outer)
	}
	if errors.Is(context.Cause(inner), errStalled) {
		err = fmt.Errorf("%w for %s", errStalled, h.stallTimeout)
	}
	server := "the hub at " + printable(h.host)
	if u, ok := errors.AsType[*url.Error](err); ok {
		if _, ok := errors.AsType[redirectError](u); ok {
			u.URL = "" // no request was sent to this URL
		}
		if host := h.store(u.URL); host != "" {
			server = "the hub's file store at " + host
		}
		err = u.Err // the URL may be signed
	}
	if cert, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		e := unreachable(server, cert.Err)
		e.Hint = "if a proxy intercepts TLS, put its certificate in the file of SSL_CERT_FILE; check HF_ENDPOINT"
		return e
	}
	op, _ := errors.AsType[*net.OpError](err)
	return &transientError{err: unreachable(server, err), dial: op != nil && op.Op == "dial"}
}

// store returns the host of a URL to which the hub redirected; "" for the hub itself. The
// rest of the URL is confidential.
func (h *Hub) store(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || origin(u) == h.origin {
		return ""
	}
	return printable(u.Host)
}

func (h *Hub) unreachable(err error) *Error {
	return unreachable("the hub at "+printable(h.host), err)
}

func unreachable(server string, err error) *Error {
	return &Error{
		kind: ErrUnreachable, err: err,
		Text: fmt.Sprintf("%s cannot be reached: %s", server, printable(cause(err))),
		Hint: "check the network, proxies and HF_ENDPOINT, or use a local file: --subset FILE",
	}
}

// cause returns the innermost message of a network error.
func cause(err error) string {
	if d, ok := errors.AsType[*net.DNSError](err); ok {
		if d.IsNotFound {
			return "no such host"
		}
		return "name resolution failed: " + d.Err
	}
	if s, ok := errors.AsType[syscall.Errno](err); ok {
		return s.Error()
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		return op.Err.Error()
	}
	return err.Error()
}
