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

// request is one GET: of the hub's API, or of a file.
type request struct {
	url    string
	from   int64 // first byte that is wanted of a file; api for none
	ref    Ref   // what it is about, for messages; may be zero
	accept []int // statuses besides 2xx that are answers, not errors
}

// api is the from of a request that is not for a file.
const api = -1

// newClient follows redirects, for a renamed repository and for files that
// live on a CDN, and shows the token to the hub alone.
func newClient(base http.RoundTripper, hub *url.URL, token string) *http.Client {
	if base == nil {
		if t, ok := http.DefaultTransport.(*http.Transport); ok {
			base = t.Clone() // its idle connections are then ours to close
		} else {
			base = http.DefaultTransport
		}
	}
	return &http.Client{Transport: &bearer{base: base, hub: origin(hub), token: token}, CheckRedirect: checkRedirect}
}

func checkRedirect(next *http.Request, before []*http.Request) error {
	if len(before) >= 10 {
		return misled("redirected ten times")
	}
	if before[0].URL.Scheme == "https" && next.URL.Scheme != "https" {
		return misled("redirected from https to " + shown(next.URL.Scheme))
	}
	return nil
}

// misled is a redirect that is not followed, whose fault is the sender's.
type misled string

func (m misled) Error() string { return string(m) }

// bearer adds the token to requests that go to the hub. net/http would keep an
// Authorization header across ports and to subdomains; here none is set before
// the host is known.
type bearer struct {
	base       http.RoundTripper
	hub, token string
}

// RoundTrip implements http.RoundTripper.
func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Del("Authorization")
	r.Header.Del("Referer") // the URL before a redirect may be a signed one
	if b.token != "" && origin(r.URL) == b.hub {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.base.RoundTrip(r)
}

// CloseIdleConnections is what http.Client looks for.
func (b *bearer) CloseIdleConnections() {
	if c, ok := b.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// origin is scheme, host and port, in one way of writing.
func origin(u *url.URL) string {
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

var errStalled = errors.New("nothing came any more")

// get makes one request. What may pass by itself is a *fault, the rest an
// *Error; a context that ended is its cause. The body must be closed.
func (h *Hub) get(ctx context.Context, q request) (*http.Response, error) {
	inner, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(h.stall, func() { cancel(errStalled) })
	stop := func() { timer.Stop(); cancel(nil) }

	req, err := http.NewRequestWithContext(inner, http.MethodGet, q.url, nil)
	if err != nil {
		stop()
		return nil, &Error{kind: ErrAnswer, Text: "the hub's address cannot be used: " + shown(h.host)}
	}
	req.Header.Set("User-Agent", "mini (github.com/minibench/mini)")
	if q.from >= 0 { // a file: as it is, for its bytes are counted
		req.Header.Set("Accept-Encoding", "identity")
	}
	if q.from > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", q.from))
	}
	resp, err := h.client.Do(req)
	if err != nil {
		err = h.broken(ctx, inner, err)
		stop()
		return nil, err
	}
	h.reached.Store(true)
	if resp.StatusCode/100 == 2 || slices.Contains(q.accept, resp.StatusCode) {
		resp.Body = &watched{ReadCloser: resp.Body, h: h, host: resp.Request.URL.Host, outer: ctx, inner: inner, timer: timer, stop: stop}
		return resp, nil
	}
	defer stop()
	defer resp.Body.Close() //nolint:errcheck // it is not read to its end
	if q.from >= 0 && origin(resp.Request.URL) != h.origin {
		return nil, h.elsewhere(resp)
	}
	return nil, h.refusal(resp, q.ref)
}

// watched is a body whose reading gives up when nothing comes.
type watched struct {
	io.ReadCloser
	h            *Hub
	host         string          // who sends it
	outer, inner context.Context //nolint:containedctx // those of the one request this is the body of
	timer        *time.Timer
	stop         func()
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if n > 0 {
		w.timer.Reset(w.h.stall)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = w.h.broken(w.outer, w.inner, err)
		if f, ok := errors.AsType[*fault](err); ok {
			f.err.Text = fmt.Sprintf("the connection to %s broke off: %s", shown(w.host), shown(cause(f.err.err)))
			f.err.Hint = "check the network, and run it again, which goes on where it stopped"
		}
	}
	return n, err
}

// Close implements io.Closer.
func (w *watched) Close() error {
	w.stop()
	return w.ReadCloser.Close()
}

// broken sorts a failure of the network.
func (h *Hub) broken(outer, inner context.Context, err error) error {
	if outer.Err() != nil {
		return context.Cause(outer)
	}
	if errors.Is(context.Cause(inner), errStalled) {
		err = fmt.Errorf("%w for %s", errStalled, h.stall)
	}
	who := "the hub at " + shown(h.host)
	if u, ok := errors.AsType[*url.Error](err); ok {
		if _, ok := errors.AsType[misled](u); ok {
			u.URL = "" // it was not asked
		}
		if host := h.store(u.URL); host != "" {
			who = "the hub's file store at " + host
		}
		err = u.Err // the URL may be signed
	}
	if cert, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		e := unreachable(who, cert.Err)
		e.Hint = "a proxy that reads along? Put its certificate into the file of SSL_CERT_FILE; and check HF_ENDPOINT"
		return e
	}
	op, _ := errors.AsType[*net.OpError](err)
	return &fault{err: unreachable(who, err), dial: op != nil && op.Op == "dial"}
}

// store is the host of an address to which the hub has redirected, "" for the
// hub itself. Nothing else of the address may be shown.
func (h *Hub) store(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || origin(u) == h.origin {
		return ""
	}
	return shown(u.Host)
}

func (h *Hub) unreachable(err error) *Error {
	return unreachable("the hub at "+shown(h.host), err)
}

func unreachable(who string, err error) *Error {
	return &Error{
		kind: ErrUnreachable, err: err,
		Text: fmt.Sprintf("%s cannot be reached: %s", who, shown(cause(err))),
		Hint: "check the network, proxies and HF_ENDPOINT; a file of rows works without: --subset FILE",
	}
}

// cause is the innermost text of a network error, which says it best.
func cause(err error) string {
	if d, ok := errors.AsType[*net.DNSError](err); ok {
		if d.IsNotFound {
			return "there is no such host"
		}
		return "its name was not resolved: " + d.Err
	}
	if s, ok := errors.AsType[syscall.Errno](err); ok {
		return s.Error()
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		return op.Err.Error()
	}
	return err.Error()
}
