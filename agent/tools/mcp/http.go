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

// openHTTP opens a session with a server at a URL.
func (s *Server) openHTTP(ctx context.Context) (*session, error) {
	base, err := url.Parse(s.config.URL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, errors.New("the URL must begin with http:// or https://")
	}
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		transport = &http.Transport{Proxy: http.ProxyFromEnvironment}
	}
	transport = transport.Clone()
	client := &http.Client{Transport: &authTransport{next: transport, host: base.Host, token: s.config.Token}, CheckRedirect: sameHostOnly(base)}
	l := &session{afterClose: transport.CloseIdleConnections}
	return s.handshake(ctx, &sdk.StreamableClientTransport{
		Endpoint: s.config.URL, HTTPClient: client, MaxRetries: 1, DisableStandaloneSSE: true, MaxEventSize: maxFrame,
	}, l)
}

// sameHostOnly returns a CheckRedirect function that refuses other hosts.
func sameHostOnly(base *url.URL) func(*http.Request, []*http.Request) error {
	return func(r *http.Request, before []*http.Request) error {
		if r.URL.Host != base.Host || r.URL.Scheme != base.Scheme || len(before) > 3 {
			return fmt.Errorf("refuse redirect to %.80s: the host or scheme differs", r.URL.Host)
		}
		return nil
	}
}

// authTransport adds the token to requests to the server and bounds the
// responses.
type authTransport struct {
	next        http.RoundTripper
	host, token string
}

// RoundTrip implements http.RoundTripper.
func (c *authTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.token != "" && r.URL.Host == c.host {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = &limitedBody{resp.Body, 4 * maxFrame}
	return resp, nil
}

// limitedBody is a response body that fails when it is too long.
type limitedBody struct {
	io.ReadCloser
	remaining int64
}

var errTooLong = fmt.Errorf("the server's answer is longer than %d MB", 4*maxFrame>>20)

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.remaining <= 0 {
		return 0, errTooLong
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.remaining)])
	b.remaining -= int64(n)
	return n, err
}
