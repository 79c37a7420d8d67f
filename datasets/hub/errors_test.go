package hub_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/hub"
	"github.com/minibench/mini/datasets/hub/hubtest"
	"github.com/minibench/mini/internal/golden"
	"github.com/minibench/mini/internal/require"
)

const secret = "hf_secret"

// mistakes are the errors of a fetch; testdata/mistakes.txt has their texts.
var mistakes = []struct {
	name  string
	ref   hub.Ref
	token string
	make  func(t *testing.T, s *hubtest.Server, c *hub.Config)
}{
	{"no such dataset", hub.Ref{Repo: "org/nome"}, "", nil},
	{"no such dataset, with a token", hub.Ref{Repo: "org/nome"}, secret, nil},
	{"private", hub.Ref{Repo: repo}, "", func(_ *testing.T, s *hubtest.Server, _ *hub.Config) { s.SetPrivate(repo) }},
	{"gated", hub.Ref{Repo: repo}, "", func(_ *testing.T, s *hubtest.Server, _ *hub.Config) { s.SetGated(repo) }},
	{"gated, with a token", hub.Ref{Repo: repo}, secret, func(_ *testing.T, s *hubtest.Server, _ *hub.Config) { s.SetGated(repo) }},
	{"a wrong token", hub.Ref{Repo: repo}, "hf_secret_but_wrong", nil},
	{"forbidden", hub.Ref{Repo: repo}, secret, func(_ *testing.T, s *hubtest.Server, _ *hub.Config) {
		s.Refuse(1, 403, "X-Error-Message", "Access to this resource is disabled.\u202e\u2028"+strings.Repeat("x", 500))
	}},
	{"no such revision", hub.Ref{Repo: repo, Revision: "v9"}, "", nil},
	{"no such split", hub.Ref{Repo: repo, Split: "train"}, "", nil},
	{"no rows", hub.Ref{Repo: "org/pictures"}, "", func(_ *testing.T, s *hubtest.Server, _ *hub.Config) {
		s.Add("org/pictures", hubtest.Commit(1), map[string][]byte{"a.png": nil, "README.md": []byte("---\nconfigs: 7\n---")})
	}},
	{"offline", hub.Ref{Repo: repo, Split: "dev"}, "", func(_ *testing.T, _ *hubtest.Server, c *hub.Config) { c.Offline = true }},
	{"nobody there", hub.Ref{Repo: repo}, "", func(_ *testing.T, s *hubtest.Server, _ *hub.Config) { s.Close() }},
	{"no such host", hub.Ref{Repo: repo}, "", func(_ *testing.T, _ *hubtest.Server, c *hub.Config) {
		c.Endpoint = "http://hub.invalid"
		c.Transport = answers(func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "hub.invalid", IsNotFound: true}}
		})
	}},
	{"a certificate that nobody vouches for", hub.Ref{Repo: repo}, "", func(t *testing.T, _ *hubtest.Server, c *hub.Config) {
		t.Helper()
		s := httptest.NewUnstartedServer(http.NotFoundHandler())
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.StartTLS()
		t.Cleanup(s.Close)
		c.Endpoint = s.URL
	}},
	{"away from https", hub.Ref{Repo: repo}, secret, func(_ *testing.T, _ *hubtest.Server, c *hub.Config) {
		c.Endpoint = "https://hub.test"
		c.Transport = answers(func(r *http.Request) (*http.Response, error) {
			if r.URL.Scheme != "https" {
				return nil, errors.New("it was followed")
			}
			return &http.Response{StatusCode: http.StatusFound, Header: http.Header{"Location": {"http://hub.test/x?Signature=secret-signature"}}}, nil
		})
	}},
	{"busy for good", hub.Ref{Repo: repo}, "", func(_ *testing.T, s *hubtest.Server, _ *hub.Config) { s.Refuse(99, 502) }},
	{"limited", hub.Ref{Repo: repo}, "", func(_ *testing.T, s *hubtest.Server, _ *hub.Config) { s.RateLimit(1, 3600) }},
	{"a login page", hub.Ref{Repo: repo}, "", func(_ *testing.T, s *hubtest.Server, _ *hub.Config) { s.Refuse(1, http.StatusOK) }},
	{"damaged", hub.Ref{Repo: repo}, "", func(_ *testing.T, s *hubtest.Server, _ *hub.Config) { s.Corrupt(99) }},
	{"cut off", hub.Ref{Repo: repo, Split: "dev"}, "", func(_ *testing.T, s *hubtest.Server, _ *hub.Config) { s.Truncate(99, 1) }},
	{"a name that climbs", hub.Ref{Repo: "org/evil"}, "", func(_ *testing.T, s *hubtest.Server, _ *hub.Config) {
		s.Add("org/evil", hubtest.Commit(1), map[string][]byte{"../../test.parquet": []byte("x")})
	}},
	{"a name for terminals", hub.Ref{Repo: "org/evil"}, "", func(_ *testing.T, s *hubtest.Server, _ *hub.Config) {
		s.Add("org/evil", hubtest.Commit(1), map[string][]byte{"a\x1b[2J/test.parquet": []byte("x")})
	}},
	{"no file store", hub.Ref{Repo: repo}, "", func(t *testing.T, s *hubtest.Server, c *hub.Config) {
		t.Helper()
		through := &http.Transport{}
		t.Cleanup(through.CloseIdleConnections)
		c.Transport = answers(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == strings.TrimPrefix(s.CDN, "http://") {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
			}
			return through.RoundTrip(r)
		})
	}},
	{"no folder for the cache", hub.Ref{Repo: repo}, "", func(t *testing.T, _ *hubtest.Server, c *hub.Config) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(c.Dir, "file"), nil, 0o600))
		c.Dir = filepath.Join(c.Dir, "file", "cache")
	}},
}

func TestMistakes(t *testing.T) {
	var all bytes.Buffer
	for _, tt := range mistakes {
		t.Run(tt.name, func(t *testing.T) {
			s := server(t)
			s.SetToken(secret)
			c := hub.Config{Endpoint: s.URL, Dir: t.TempDir(), Token: tt.token}
			dir := c.Dir
			if tt.make != nil {
				tt.make(t, s, &c)
			}
			_, err := open(t, c).Fetch(t.Context(), tt.ref)
			e, ok := errors.AsType[*hub.Error](err)
			if !ok || !errors.Is(err, datasets.ErrData) {
				t.Fatal(err)
			}
			text := e.Text + "\n  " + e.Hint
			if strings.Contains(text, secret) || strings.Contains(text, "secret-signature") || strings.Count(text, "\n") != 1 || strings.ContainsAny(text, "\x1b\u202e\u2028") {
				t.Errorf("unsafe for a terminal, or with a secret: %q", text)
			}
			for _, known := range [][2]string{{s.URL, "http://hub"}, {strings.TrimPrefix(s.URL, "http://"), "hub"}, {s.CDN, "http://cdn"}, {strings.TrimPrefix(s.CDN, "http://"), "cdn"}, {strings.TrimPrefix(c.Endpoint, "https://"), "hub"}, {dir, "DIR"}} {
				text = strings.ReplaceAll(text, known[0], known[1])
			}
			fmt.Fprintf(&all, "%s:\n  %s\n\n", tt.name, text)
		})
	}
	golden.Check(t, "testdata/mistakes.txt", all.Bytes())
}

func TestBadConfig(t *testing.T) {
	var all bytes.Buffer
	for _, c := range []hub.Config{
		{Endpoint: "huggingface.co", Dir: "d"},
		{Endpoint: "ftp://h", Dir: "d"},
		{Endpoint: "https://user:hf_secret@h", Dir: "d"},
		{Endpoint: "https://h/?a=b", Dir: "d"},
		{Endpoint: "https://h\x1b", Dir: "d"},
		{},
		{Dir: "d", Token: "hf_secret\nX-Evil: 1"},
	} {
		_, err := hub.New(c)
		e, ok := errors.AsType[*hub.Error](err)
		if !ok || strings.Contains(e.Text+e.Hint, secret) {
			t.Errorf("%v: %v", c.Endpoint, err)
			continue
		}
		fmt.Fprintf(&all, "%q:\n  %s\n  %s\n\n", strings.ReplaceAll(c.Endpoint, secret, "..."), e.Text, e.Hint)
	}
	golden.Check(t, "testdata/config.txt", all.Bytes())
}

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
		{"a time", "Retry-After", "Sat, 01 Jan 2000 00:01:30 GMT", 1, "is not a dataset", 90 * time.Second},
		{"seconds before", "Retry-After", "-7", 1, "is not a dataset", time.Second},
		{"a word", "Retry-After", "soon", 1, "is not a dataset", time.Second},
		{"a number beyond all", "Retry-After", "99999999999999999999", 1, "is not a dataset", time.Second},
		{"the hub's own header, no number", "RateLimit", `"resolvers";r=0;t=x`, 1, "is not a dataset", time.Second},
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
				require.NoError(t, err)
				start := time.Now()
				_, err = h.Fetch(t.Context(), hub.Ref{Repo: repo})
				if waited := time.Since(start); err == nil || !strings.Contains(err.Error(), tt.want) || waited != tt.wait {
					t.Errorf("%v after %s", err, waited)
				}
			})
		})
	}
}

func TestRetryWaitCanBeCancelled(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h, err := hub.New(hub.Config{Endpoint: "http://hub.test", Dir: dir, Transport: answers(func(*http.Request) (*http.Response, error) {
			return limited("Retry-After", "300"), nil
		})})
		require.NoError(t, err)
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
