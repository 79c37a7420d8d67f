package fake_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/golden"
	"github.com/minibench/mini/internal/require"
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
					require.NoError(t, err)
					if resp, err := client(l).Do(req); err == nil {
						_, err = io.ReadAll(resp.Body)
						_ = resp.Body.Close()
						assert.Error(t, err, "the client received the complete reply")
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
	assert.Error(t, <-done, "the request was answered")
	if b := s.Stats(); b.Charged.Replies != 0 || b.Abandoned.Replies != 0 || b.Requests[0].Outcome != fake.Failed {
		t.Errorf("%+v", b)
	}
	if err := s.Serve(l); err != nil {
		t.Errorf("Serve after Close: %v", err)
	}
	_, err := l.DialContext(t.Context(), "", "")
	assert.ErrorIs(t, err, net.ErrClosed, "dialing after Close")
}

// On a TCP connection, reset sends RST.
func TestResetOverTCP(t *testing.T) {
	s, err := fake.New(fake.Config{Script: script(t, replies), Plan: plan("reset")})
	require.NoError(t, err)
	web := httptest.NewServer(s)
	defer web.Close()
	defer s.Close()
	c := &http.Client{Transport: &http.Transport{}}
	resp, err := c.Post(web.URL+"/v1/chat/completions", "", strings.NewReader(body("openai", false)))
	if err == nil {
		_ = resp.Body.Close()
	}
	assert.ErrorIs(t, err, syscall.ECONNRESET, "before a byte")
}

func TestUnknownPaths(t *testing.T) {
	good := func(key string) bool { return key == "sk-good" }
	s, err := fake.New(fake.Config{Script: script(t, replies), Models: []string{"a", "b"}, CheckKey: good})
	require.NoError(t, err)
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

// TestFaults compares every fault, for both APIs, plain and streamed, with
// testdata/faults: the bytes, the time, the statistics. -update rewrites the files.
func TestFaults(t *testing.T) {
	all := append([]fake.Fault{{Name: "none"}}, fake.Faults()...)
	for _, f := range all {
		t.Run(f.Name, func(t *testing.T) {
			var got strings.Builder
			for _, api := range []string{"openai", "anthropic"} {
				for _, stream := range []bool{false, true} {
					synctest.Test(t, func(t *testing.T) { oneFault(t, &got, f, api, stream) })
				}
			}
			golden.Check(t, filepath.Join("testdata", "faults", f.Name+".txt"), got.String())
		})
	}
}

func oneFault(t *testing.T, out *strings.Builder, f fake.Fault, api string, stream bool) {
	p := &fake.Plan{Rules: []fake.Rule{{Faults: []string{f.Name}}}}
	if f.Name == "none" {
		p = nil
	}
	s, l, stop := serve(t, fake.Config{Plan: p})
	defer stop()
	start := time.Now()
	answer := raw(t, l, api, body(api, stream))
	took := time.Since(start)
	stop()
	r := s.Stats().Requests[0]

	fmt.Fprintf(out, "=== %s, stream %t: %s, charged %d, after %v\n%s\n", api, stream, r.Outcome, s.Stats().Charged.Replies, took,
		strings.ReplaceAll(answer, "\r\n", "\n"))
	if stream && strings.Contains(answer, "200 OK") && !strings.Contains(answer, "text/event-stream") {
		t.Error("a stream of another type")
	}
	if n := s.Stats().Charged.Replies; (n == 1) != (f.Charged || f.Name == "none") {
		t.Errorf("%d replies charged, Fault.Charged is %t", n, f.Charged)
	}
	if r.Fault != f.Name && f.Name != "none" {
		t.Errorf("the statistics have the fault %q", r.Fault)
	}
}

// Random choices depend on the seed and the request, not on the order.
func TestSameFaultsInAnyOrder(t *testing.T) {
	faults := func(seed uint64, backwards bool) string {
		s := server(t, fake.Config{
			Script: script(t, "["+strings.Repeat("x, ", 20)+"]"),
			Plan:   &fake.Plan{Seed: seed, Rules: []fake.Rule{{Probability: 0.2, Faults: []string{"server-error", "rate-limit"}}}},
		})
		for i := range 200 {
			if backwards {
				i = 199 - i
			}
			ask(t, s, "openai", simple("openai", fmt.Sprint("instance ", i/20), i%20))
		}
		var list []string
		for _, r := range s.Stats().Requests {
			if r.Fault != "" {
				list = append(list, fmt.Sprint(r.Instance, " ", r.Step, " ", r.Fault))
			}
		}
		if backwards {
			for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
				list[i], list[j] = list[j], list[i]
			}
		}
		if len(list) < 20 || len(list) > 60 {
			t.Errorf("%d of 200 are not 20 %%", len(list))
		}
		return strings.Join(list, "\n")
	}
	assert.NoDiff(t, cmp.Diff(faults(1, false), faults(1, true)))
	if faults(1, false) == faults(2, false) {
		t.Error("another seed makes no difference")
	}
}

func TestRuleValidate(t *testing.T) {
	for want, r := range map[string]fake.Rule{
		`unknown fault "cuts"`:            {Faults: []string{"cuts"}},
		"no faults":                       {},
		"start at 1":                      {Faults: []string{"cut"}, Requests: []int{0}},
		"probability must be from 0 to 1": {Faults: []string{"cut"}, Probability: 5},
	} {
		assert.ErrorContains(t, r.Validate(), want)
	}
}
