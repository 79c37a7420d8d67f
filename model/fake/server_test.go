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

// The books say what was asked, and that there was a key, but never which.
func TestBooks(t *testing.T) {
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
			t.Error("the key is in the books")
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
				"usage": usage, "cost": 0.028, "bytes": 263.0, "elapsed_s": 10.0,
			}},
			"charged":   map[string]any{"replies": 1.0, "usage": usage, "cost": 0.028},
			"abandoned": map[string]any{"replies": 0.0, "usage": map[string]any{"prompt_tokens": 0.0, "completion_tokens": 0.0}, "cost": 0.0},
			"busiest":   map[string]any{"second": map[string]any{"requests": 1.0, "tokens": 10.0}, "minute": map[string]any{"requests": 1.0, "tokens": 10.0}},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// A client that leaves owes what it did not wait for.
func TestAbandoned(t *testing.T) {
	for _, fault := range []string{"stall", "stall-mid"} {
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
							t.Error("the reply came to its end")
						}
					}
					synctest.Wait()
					b := s.Books()
					if b.Charged.Replies != 0 || b.Abandoned.Replies != 1 || b.Abandoned.Usage.Prompt == 0 || b.Requests[0].Elapsed != time.Minute {
						t.Errorf("charged %v, abandoned %v, after %v", b.Charged, b.Abandoned, b.Requests[0].Elapsed)
					}
				})
			})
		}
	}
}

// Close ends what is in hand, and says nothing was charged for it.
func TestClose(t *testing.T) {
	s, l, stop := serve(t, fake.Config{Plan: plan("stall-mid")})
	done := make(chan string, 1)
	conn, err := l.DialContext(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	text := body("openai", true)
	_, err = fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: fake\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 15)
	if _, err := io.ReadFull(conn, first); err != nil || string(first) != "HTTP/1.1 200 OK" {
		t.Fatalf("%q, %v", first, err)
	}
	go func() {
		rest, _ := io.ReadAll(conn) // its end tells
		done <- string(rest)
	}()
	stop()
	if rest := <-done; strings.Contains(rest, "[DONE]") || strings.HasSuffix(rest, "0\r\n\r\n") {
		t.Errorf("the reply came to a good end: %s", rest)
	}
	if b := s.Books(); b.Charged.Replies != 0 || b.Abandoned.Replies != 0 || b.Requests[0].Outcome != fake.Faulty {
		t.Errorf("%+v", b)
	}
	if err := s.Serve(l); err != nil {
		t.Errorf("Serve after Close: %v", err)
	}
	if _, err := l.DialContext(t.Context(), "", ""); !errors.Is(err, net.ErrClosed) {
		t.Errorf("dialing after Close: %v", err)
	}
}

// On a real network a reset is one, before and in the middle.
func TestResetOverTCP(t *testing.T) {
	s, err := fake.New(fake.Config{Script: script(t, replies), Plan: plan("reset", "reset-mid")})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	defer web.Close()
	defer s.Close()
	c := &http.Client{Transport: &http.Transport{}}
	_, err = c.Post(web.URL+"/v1/chat/completions", "", strings.NewReader(body("openai", false)))
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("before a byte: %v", err)
	}
	resp, err := c.Post(web.URL+"/v1/chat/completions", "", strings.NewReader(body("openai", true)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if !errors.Is(err, syscall.ECONNRESET) || !strings.Contains(string(data), `"role":"assistant"`) {
		t.Errorf("in the middle: %v after %q", err, data)
	}
}

// A slow client, or one that says too much, is not waited for.
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
			go func() { _, _ = io.WriteString(conn, test.send) }() // as far as it is read
			got, _ := io.ReadAll(conn)
			_ = conn.Close()
			if !strings.Contains(string(got), test.want) || time.Since(start).Truncate(time.Second) != test.took {
				t.Errorf("%s: after %v: %q", name, time.Since(start), got)
			}
		}
		if b := s.Books(); b.Seen != 2 || b.Charged.Replies != 0 {
			t.Errorf("%d seen, %d charged", b.Seen, b.Charged.Replies)
		}
	})
}

func TestOtherPages(t *testing.T) {
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
		{"POST", "/v1/messages/count_tokens", "X-Api-Key: sk-good", `{"model":"a","messages":[{"role":"user","content":"hello"}]}`, `200 {"input_tokens":2}`},
		{"POST", "/v1/messages/count_tokens", "X-Api-Key: sk-bad", `{}`, `401 {"type":"error","error":{"type":"authentication_error"`},
		{"POST", "/v1/messages", "X-Api-Key: sk-bad", `{}`, `401 {"type":"error","error":{"type":"authentication_error"`},
		{"POST", "/v1/chat/completions", "Authorization: Bearer sk-good", simple("openai", "hello", 0), `404 {`}, // there is no model m
		{"POST", "/v1/messages", "X-Api-Key: sk-good", simple("anthropic", "hello", 0), `404 {"type":"error","error":{"type":"not_found_error","message":"model: m"}`},
		{"GET", "/fake/faults", "A: b", "", `200 [{"name":"rate-limit"`},
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
