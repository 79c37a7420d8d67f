package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// visit begins a session with a server behind a URL.
func (s *Server) visit(ctx context.Context) (*link, error) {
	at, err := url.Parse(s.config.URL)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, errors.New("its URL is none of http or https")
	}
	plain, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		plain = &http.Transport{Proxy: http.ProxyFromEnvironment}
	}
	plain = plain.Clone()
	client := &http.Client{Transport: &courier{next: plain, host: at.Host, token: s.config.Token}, CheckRedirect: stay(at)}
	l := &link{after: plain.CloseIdleConnections}
	return s.handshake(ctx, &sdk.StreamableClientTransport{
		Endpoint: s.config.URL, HTTPClient: client, MaxRetries: 1, DisableStandaloneSSE: true, MaxEventSize: maxFrame,
	}, l)
}

// stay refuses to be sent to another host.
func stay(at *url.URL) func(*http.Request, []*http.Request) error {
	return func(r *http.Request, before []*http.Request) error {
		if r.URL.Host != at.Host || r.URL.Scheme != at.Scheme || len(before) > 3 {
			return fmt.Errorf("the server sends its callers elsewhere (to %.80s), and mini does not go", r.URL.Host)
		}
		return nil
	}
}

// courier puts the token on requests to the server itself, and bounds what comes
// back.
type courier struct {
	next        http.RoundTripper
	host, token string
}

// RoundTrip implements http.RoundTripper.
func (c *courier) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.token != "" && r.URL.Host == c.host {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = &bounded{resp.Body, 4 * maxFrame}
	return resp, nil
}

// bounded is a body that ends with an error where it is too long.
type bounded struct {
	io.ReadCloser
	left int64
}

var errTooLong = fmt.Errorf("the server's answer is longer than %d MB", 4*maxFrame>>20)

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
