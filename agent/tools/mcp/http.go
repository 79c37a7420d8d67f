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
	sess := &session{afterClose: transport.CloseIdleConnections}
	return s.handshake(ctx, &sdk.StreamableClientTransport{
		Endpoint: s.config.URL, HTTPClient: client, MaxRetries: 1, DisableStandaloneSSE: true, MaxEventSize: maxFrame,
	}, sess)
}

// sameHostOnly returns a CheckRedirect function that allows up to 3 redirects
// within the host and scheme of base.
func sameHostOnly(base *url.URL) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if len(via) > 3 {
			return errors.New("refuse redirect: more than 3 redirects")
		}
		if req.URL.Host != base.Host || req.URL.Scheme != base.Scheme {
			return fmt.Errorf("refuse redirect to %.80s: the host or scheme differs", req.URL.Host)
		}
		return nil
	}
}

// authTransport adds the token to requests to the server's host and bounds all
// responses.
type authTransport struct {
	next        http.RoundTripper
	host, token string
}

// RoundTrip implements http.RoundTripper.
func (t *authTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.token != "" && req.URL.Host == t.host {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+t.token)
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = &limitedBody{resp.Body, 4 * maxFrame}
	return resp, nil
}

// limitedBody is a response body whose Read fails after remaining bytes.
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
