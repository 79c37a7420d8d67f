package hub_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/datasets/hub"
)

// answers is a hub without a network, for tests with a fake clock.
type answers func(*http.Request) (*http.Response, error)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := a(r)
	if resp != nil {
		resp.Request = r
		if resp.Body == nil {
			resp.Body = io.NopCloser(strings.NewReader(""))
		}
		if resp.Header == nil {
			resp.Header = http.Header{}
		}
	}
	return resp, err
}

func limited(header, value string) *http.Response {
	return &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{header: {value}}}
}

func TestRetryWaits(t *testing.T) {
	tests := []struct {
		name, header, value string
		times               int
		want                string
		wait                time.Duration
	}{
		{"seconds", "Retry-After", "30", 1, "is not a dataset", 30 * time.Second},
		{"the hub's own header", "Ratelimit", `"api";r=0;t=120`, 1, "is not a dataset", 120 * time.Second},
		{"nothing said", "X", "", 1, "is not a dataset", time.Second},
		{"too long", "Retry-After", "86400", 1, "limits requests", 0},
		{"too often", "Retry-After", "10", 2, "limits requests", 10 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				n := 0
				h, err := hub.New(hub.Config{Endpoint: "http://hub.test", Dir: dir, Transport: answers(func(*http.Request) (*http.Response, error) {
					if n++; n <= tt.times {
						return limited(tt.header, tt.value), nil
					}
					return &http.Response{StatusCode: 404, Header: http.Header{"X-Error-Code": {"RepoNotFound"}}}, nil
				})})
				must(t, err)
				start := time.Now()
				_, err = h.Fetch(t.Context(), hub.Ref{Repo: repo})
				if waited := time.Since(start); err == nil || !strings.Contains(err.Error(), tt.want) || waited != tt.wait {
					t.Errorf("%v after %s", err, waited)
				}
			})
		})
	}
}

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat)
		for _, tt := range []struct {
			header, value string
			want          time.Duration
		}{
			{"Retry-After", "7", 7 * time.Second},
			{"Retry-After", at, 90 * time.Second},
			{"Retry-After", "-7", 0},
			{"Retry-After", "soon", 0},
			{"Retry-After", "99999999999999999999", 0},
			{"RateLimit", `"resolvers";r=0;t=55`, 55 * time.Second},
			{"RateLimit", `"resolvers";r=0;t=x`, 0},
		} {
			h := http.Header{}
			h.Set(tt.header, tt.value)
			if got := hub.RetryAfterOf(h); got != tt.want {
				t.Errorf("%s: %s is %s, want %s", tt.header, tt.value, got, tt.want)
			}
		}
	})
}

func TestRetryWaitCanBeCancelled(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h, err := hub.New(hub.Config{Endpoint: "http://hub.test", Dir: dir, Transport: answers(func(*http.Request) (*http.Response, error) {
			return limited("Retry-After", "300"), nil
		})})
		must(t, err)
		enough := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, enough)
		defer cancel()
		start := time.Now()
		_, err = h.Fetch(ctx, hub.Ref{Repo: repo})
		if !errors.Is(err, enough) || time.Since(start) != time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}
