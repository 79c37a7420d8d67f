package hub

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// newClient returns a client that follows redirects, for renamed repositories and for files
// on a CDN, and sends the token only to the hub.
func newClient(base http.RoundTripper, hub *url.URL, token string) *http.Client {
	if base == nil {
		base = http.DefaultTransport
		if t, ok := base.(*http.Transport); ok {
			base = t.Clone() // so that Close closes only the connections of this client
		}
	}
	return &http.Client{Transport: &tokenTransport{base: base, hub: origin(hub), token: token}, CheckRedirect: checkRedirect}
}

func checkRedirect(next *http.Request, before []*http.Request) error {
	if len(before) >= 10 {
		return errors.New("redirected ten times")
	}
	if before[0].URL.Scheme == "https" && next.URL.Scheme != "https" {
		return fmt.Errorf("redirected from https to %s", printable(next.URL.Scheme))
	}
	return nil
}

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

// maxWait is the longest delay that a server may ask for before the second try. The hub
// limits requests in any five minutes.
const maxWait = 6 * time.Minute

// get makes a GET request and calls read with the response. If either fails in a way that may
// pass, it does both once more.
func (h *Hub) get(ctx context.Context, ref Ref, address string, read func(*http.Response) error) error {
	err := h.try(ctx, ref, address, read)
	e, ok := errors.AsType[*Error](err)
	if !ok || !e.retry || e.after > maxWait {
		return err
	}
	wait := cmp.Or(e.after, h.retryDelay)
	h.progress(Progress{Stage: Retrying, Repo: ref.Repo, Err: e, Wait: wait})
	select {
	case <-time.After(wait):
		return h.try(ctx, ref, address, read)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errStalled = errors.New("no data received")

// try makes one request. The error is the cause of ctx if that ended, and otherwise an *Error.
func (h *Hub) try(ctx context.Context, ref Ref, address string, read func(*http.Response) error) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := time.AfterFunc(h.stallTimeout, func() { cancel(errStalled) })
	defer stall.Stop()
	req, err := http.NewRequestWithContext(inner, http.MethodGet, address, nil)
	if err != nil {
		return &Error{Text: "the hub's address cannot be used: " + printable(h.host)}
	}
	req.Header.Set("User-Agent", "mini (github.com/minibench/mini)")
	req.Header.Set("Accept-Encoding", "identity") // the checksum is that of the file as it is
	resp, err := h.client.Do(req)
	host := ""
	if err == nil {
		defer resp.Body.Close() //nolint:errcheck // the rest of the body is not needed
		if resp.StatusCode/100 != 2 {
			return h.statusError(resp, ref)
		}
		host = resp.Request.URL.Host
		resp.Body = io.NopCloser(&stallReader{r: resp.Body, timer: stall, timeout: h.stallTimeout})
		err = read(resp)
	}
	if _, ok := errors.AsType[*Error](err); err == nil || ok {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(context.Cause(inner), errStalled) {
		err = fmt.Errorf("%w for %s", errStalled, h.stallTimeout)
	}
	if host == "" {
		return h.requestError(err)
	}
	return &Error{
		Text: fmt.Sprintf("the connection to %s was lost: %s", printable(host), printable(cause(err))),
		Hint: "check the network, and run the command again", retry: true,
	}
}

// stallReader delays a timer as long as there is data.
type stallReader struct {
	r       io.Reader
	timer   *time.Timer
	timeout time.Duration
}

// Read implements io.Reader.
func (s *stallReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if n > 0 {
		s.timer.Reset(s.timeout)
	}
	return n, err
}

// requestError converts the error of a request without a response.
func (h *Hub) requestError(err error) *Error {
	server := "the hub at " + printable(h.host)
	if u, ok := errors.AsType[*url.Error](err); ok {
		if to, parseErr := url.Parse(u.URL); parseErr == nil && to.Host != "" && origin(to) != h.origin {
			server = "the hub's file store at " + printable(to.Host)
		}
		err = u.Err // the URL may be signed
	}
	if cert, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		e := unreachable(server, cert.Err)
		e.Hint, e.retry = "if a proxy intercepts TLS, put its certificate in the file of SSL_CERT_FILE; check HF_ENDPOINT", false
		return e
	}
	return unreachable(server, err)
}

func unreachable(server string, err error) *Error {
	return &Error{
		Text: fmt.Sprintf("%s cannot be reached: %s", server, printable(cause(err))),
		Hint: "check the network, proxies and HF_ENDPOINT, or use a local file: --subset FILE", retry: true,
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
