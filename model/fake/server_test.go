package fake_test

import (
	"context"
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

	"github.com/minibench/mini/model/fake"
)

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

func TestUnknownPaths(t *testing.T) {
	good := func(key string) bool { return key == "sk-good" }
	s, err := fake.New(fake.Config{Script: script(t, replies), Models: []string{"a", "b"}, CheckKey: good})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, test := range []struct{ method, path, header, body, want string }{
		{"GET", "/v1/models", "Authorization: Bearer sk-good", "", `200 {"data":[{"display_name":"a","id":"a"`},
		{"GET", "/models", "X-Api-Key: sk-good", "", `200 {"data":[{"display_name":"a","id":"a"`},
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
