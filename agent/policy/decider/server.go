package decider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/minibench/mini/agent/policy"
)

// Server is a decider at a URL.
type Server struct {
	URL string
	// Header and Value are the name and value of an additional header; an empty
	// Header means none. Value is a secret and does not appear in errors.
	Header, Value string
	// Timeout bounds the answer; 0 means DefaultTimeout.
	Timeout time.Duration
}

var _ policy.Decider = Server{}

// Ask implements policy.Decider. It does not follow redirects, so that
// questions go only to the configured URL.
func (s Server) Ask(ctx context.Context, q policy.Question) (policy.Answer, error) {
	question, err := json.Marshal(q)
	if err != nil {
		return policy.Answer{}, fmt.Errorf("encode question: %w", err)
	}
	limit := s.Timeout
	if limit <= 0 {
		limit = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(question))
	if err != nil {
		return policy.Answer{}, errors.New("invalid URL")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/plain")
	if s.Header != "" {
		req.Header.Set(s.Header, s.Value)
	}
	client := &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	var data []byte
	if err == nil {
		defer resp.Body.Close() //nolint:errcheck // read only
		data, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return policy.Answer{}, fmt.Errorf("%s: no answer within %v", s.URL, limit)
	case err != nil:
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return policy.Answer{}, fmt.Errorf("ask %s: %w", s.URL, err)
	case resp.StatusCode != http.StatusOK:
		return policy.Answer{}, fmt.Errorf("%s: HTTP status %d", s.URL, resp.StatusCode)
	}
	a, err := parseAnswer(data)
	if err != nil {
		return policy.Answer{}, fmt.Errorf("%s: %w", s.URL, err)
	}
	return a, nil
}
