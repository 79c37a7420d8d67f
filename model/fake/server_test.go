package fake_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/fake"
)

// The statistics report requests, and whether they had a key, but never the key.
func TestServeStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l, stop := serve(t, fake.Config{Script: script(t, tenTokens), Price: model.Price{Input: 1000, Output: 10000}})
		defer stop()
		raw(t, l, "anthropic", simple("anthropic", "hello", 1))
		resp, err := client(l).Get("http://fake/fake/books")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), "sk-marker") {
			t.Error("the statistics contain the key")
		}
		var got any
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		usage := map[string]any{"prompt_tokens": 8.0, "completion_tokens": 2.0}
		want := map[string]any{
			"began": "2000-01-01T00:00:00Z", "seen": 1.0, "limited": 0.0, "concurrency": 1.0, "faults": map[string]any{},
			"requests": []any{map[string]any{
				"number": 1.0, "at_once": 1.0, "time": "2000-01-01T00:00:00Z", "api": "anthropic", "model": "m", "key": true,
				"instance": "conversation-2cf24dba", "step": 2.0, "outcome": "charged", "status": 200.0,
				"usage": usage, "cost": 0.028, "elapsed_s": 10.0,
			}},
			"charged":   map[string]any{"replies": 1.0, "usage": usage, "cost": 0.028},
			"abandoned": map[string]any{"replies": 0.0, "usage": map[string]any{"prompt_tokens": 0.0, "completion_tokens": 0.0}, "cost": 0.0},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// A client that leaves early abandons its reply.
func TestAbandoned(t *testing.T) {
	for _, fault := range []string{"stall"} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprint(fault, " ", stream), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, l, stop := serve(t, fake.Config{Plan: plan(fault)})
					defer stop()
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://fake/v1/chat/completions", strings.NewReader(body("openai", stream)))
					if err != nil {
						t.Fatal(err)
					}
					if resp, err := client(l).Do(req); err == nil {
						_, err = io.ReadAll(resp.Body)
						_ = resp.Body.Close()
						if err == nil {
							t.Error("the client received the complete reply")
						}
					}
					synctest.Wait()
					b := s.Stats()
					if b.Charged.Replies != 0 || b.Abandoned.Replies != 1 || b.Abandoned.Usage.Prompt == 0 || b.Requests[0].Elapsed != time.Minute {
						t.Errorf("charged %v, abandoned %v, after %v", b.Charged, b.Abandoned, b.Requests[0].Elapsed)
					}
				})
			})
		}
	}
}

// Close ends requests in progress without charging them.
func TestClose(t *testing.T) {
	s, l, stop := serve(t, fake.Config{Plan: plan("stall")})
	done := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://fake/v1/chat/completions", strings.NewReader(body("openai", true)))
		if err == nil {
			_, err = client(l).Do(req)
		}
		done <- err
	}()
	for b := s.Stats(); b.Total == 0 || b.Requests[0].Fault == ""; b = s.Stats() {
		time.Sleep(time.Millisecond)
	}
	stop()
	if err := <-done; err == nil {
		t.Error("the request was answered")
	}
	if b := s.Stats(); b.Charged.Replies != 0 || b.Abandoned.Replies != 0 || b.Requests[0].Outcome != fake.Failed {
		t.Errorf("%+v", b)
	}
	if err := s.Serve(l); err != nil {
		t.Errorf("Serve after Close: %v", err)
	}
	if _, err := l.DialContext(t.Context(), "", ""); !errors.Is(err, net.ErrClosed) {
		t.Errorf("dialing after Close: %v", err)
	}
}

// On a TCP connection, reset sends RST.
func TestResetOverTCP(t *testing.T) {
	s, err := fake.New(fake.Config{Script: script(t, replies), Plan: plan("reset")})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	defer web.Close()
	defer s.Close()
	c := &http.Client{Transport: &http.Transport{}}
	resp, err := c.Post(web.URL+"/v1/chat/completions", "", strings.NewReader(body("openai", false)))
	if err == nil {
		_ = resp.Body.Close()
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("before a byte: %v", err)
	}
}

// Slow clients and large requests are cut off.
func TestHostileClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l, stop := serve(t, fake.Config{MaxBody: 1000})
		defer stop()
		for name, test := range map[string]struct {
			send, want string
			took       time.Duration
		}{
			"no headers":   {"POST /v1/messages HTTP/1.1\r\nHost:", "", 10 * time.Second},
			"no body":      {"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{", "400 Bad", time.Minute},
			"long headers": {"POST /v1/messages HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 80<<10), "431 ", 0},
			"long body":    {"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n" + strings.Repeat("a", 1001), "request_too_large", 0},
			"not HTTP":     {"hello\r\n\r\n", "400 Bad", 0},
		} {
			start := time.Now()
			conn, err := l.DialContext(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = io.WriteString(conn, test.send) }() // the server may stop reading early
			got, _ := io.ReadAll(conn)
			_ = conn.Close()
			if !strings.Contains(string(got), test.want) || time.Since(start).Truncate(time.Second) != test.took {
				t.Errorf("%s: after %v: %q", name, time.Since(start), got)
			}
		}
		if b := s.Stats(); b.Total != 2 || b.Charged.Replies != 0 {
			t.Errorf("%d seen, %d charged", b.Total, b.Charged.Replies)
		}
	})
}

func TestUnknownPaths(t *testing.T) {
	good := func(key string) bool { return key == "sk-good" }
	s, err := fake.New(fake.Config{Script: script(t, replies), Models: []string{"a", "b"}, CheckKey: good})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, test := range []struct{ method, path, header, body, want string }{
		{"GET", "/v1/models", "Authorization: Bearer sk-good", "", `200 {"data":[{"created":`},
		{"GET", "/models", "X-Api-Key: sk-good", "", `200 {"data":[{"created_at":`},
		{"GET", "/v1/models", "Authorization: Bearer sk-bad", "", `401 {`},
		{"POST", "/v1/messages", "X-Api-Key: sk-bad", `{}`, `401 {"type":"error","error":{"type":"authentication_error"`},
		{"POST", "/v1/chat/completions", "Authorization: Bearer sk-good", simple("openai", "hello", 0), `404 {`}, // unknown model m
		{"POST", "/v1/messages", "X-Api-Key: sk-good", simple("anthropic", "hello", 0), `404 {"type":"error","error":{"type":"not_found_error","message":"model: m"}`},
		{"GET", "/v1/responses", "A: b", "", `404 {`},
		{"GET", "/v1/complete", "Anthropic-Version: 2023-06-01", "", `404 {"type":"error","error":{"type":"not_found_error"`},
	} {
		r := httptest.NewRequestWithContext(t.Context(), test.method, test.path, strings.NewReader(test.body))
		name, value, _ := strings.Cut(test.header, ": ")
		r.Header.Set(name, value)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if got := fmt.Sprint(w.Code, " ", w.Body); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s %s: %s, want %s", test.method, test.path, got, test.want)
		}
	}
}
