package retry_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/anthropic"
	"github.com/minibench/mini/model/fake"
	"github.com/minibench/mini/model/openai"
	"github.com/minibench/mini/model/retry"
	"github.com/minibench/mini/model/scripted"
)

const (
	asked   = 17 * time.Second // what a refusal asks to wait, in these tests
	timeout = 10 * time.Minute // of a request, as is the default
	silence = 2 * time.Minute  // of a stream, too
)

var price = model.Price{Input: 2, Cached: 0.5, Output: 8}

// serve starts a server in memory that answers with the script, and returns
// what ends it.
func serve(t *testing.T, yaml string, c fake.Config) (*fake.Server, *fake.Memory, func()) {
	t.Helper()
	var err error
	if c.Script, err = scripted.Parse("replies.yaml", []byte(yaml)); err != nil {
		t.Fatal(err)
	}
	c.Price = price
	s, err := fake.New(c)
	if err != nil {
		t.Fatal(err)
	}
	l := fake.NewMemory()
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	return s, l, sync.OnceFunc(func() {
		if err := errors.Join(s.Close(), <-done); err != nil {
			t.Error(err)
		}
	})
}

// provider of one of the formats, with the tool of an agent.
func connect(t *testing.T, l *fake.Memory, api string, stream bool) model.Model {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DialContext: l.DialContext, DisableKeepAlives: true}}
	tools := []model.Definition{{Name: "bash", Parameters: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}}}`)}}
	var m interface {
		model.Model
		io.Closer
	}
	var err error
	if api == "anthropic" {
		m, err = anthropic.New(anthropic.Config{Name: "m", BaseURL: "http://fake", APIKey: marker, Stream: stream, Price: price, Tools: tools, HTTPClient: client})
	} else {
		m, err = openai.New(openai.Config{Name: "m", BaseURL: "http://fake/v1", APIKey: marker, Stream: stream, Price: price, Tools: tools, HTTPClient: client})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

const marker = "sk-marker-0123456789"

// bad is a first request that goes wrong as the rule says; the second one is
// answered well. A rule may be for one format, or for streams, alone.
type bad struct {
	rule fake.Rule
	// class ends the call after the first request. Where there is none, it is
	// answered by the second one, and by the first one where answered is set.
	class    model.Status
	answered bool
	// waits is what is waited before the second; 0 is the policy's own first wait.
	waits time.Duration
	// takes is how long the first request lasts.
	takes  time.Duration
	finish model.Finish
}

func yes(b bool) *bool { return &b }

func badDays() []bad {
	rule := func(name string) fake.Rule { return fake.Rule{Fault: name} }
	of := func(name, api string) fake.Rule { return fake.Rule{Fault: name, API: api} }
	var all []bad
	// Refusals that pass, after what they ask for in each of its forms, or not.
	for _, name := range []string{"rate-limit", "overloaded", "server-error", "bad-gateway", "unavailable", "gateway-timeout", "request-timeout"} {
		for _, as := range []fake.RetryForm{fake.RetrySeconds, fake.RetryDate, fake.RetryMillis} {
			all = append(all, bad{rule: fake.Rule{Fault: name, RetryAfter: fake.Duration(asked), RetryAfterAs: as}, waits: asked})
		}
		if name != "rate-limit" { // which always asks for something
			all = append(all, bad{rule: rule(name)})
		}
	}
	long := fake.Duration(time.Hour)
	return append(all, []bad{
		{rule: rule("rate-limit"), waits: time.Second},
		{rule: fake.Rule{Fault: "rate-limit", RetryAfter: fake.Duration(24 * time.Hour)}, class: model.RateLimited},
		// Refusals that do not.
		{rule: rule("bad-request"), class: model.BadRequest},
		{rule: rule("not-found"), class: model.BadRequest},
		{rule: fake.Rule{Fault: "status", Status: 418, RetryAfter: fake.Duration(asked)}, class: model.BadRequest},
		{rule: fake.Rule{Fault: "status", Status: 507, RetryAfter: fake.Duration(asked)}, waits: asked},
		{rule: rule("unauthorized"), class: model.AuthenticationError},
		{rule: rule("key-echo"), class: model.AuthenticationError},
		{rule: rule("no-credit"), class: model.AuthenticationError},
		{rule: rule("forbidden"), class: model.AuthenticationError},
		{rule: rule("too-large"), class: model.ContextWindowExceeded},
		{rule: rule("context"), class: model.ContextWindowExceeded},
		{rule: rule("refused-request"), class: model.ContentRefused},
		// Connections.
		{rule: rule("stall"), answered: true, takes: 30 * time.Second},
		{rule: rule("stall-mid"), answered: true, takes: 30 * time.Second},
		{rule: rule("slow"), answered: true, takes: -1},
		{rule: fake.Rule{Fault: "stall", Wait: long}, takes: timeout},
		{rule: fake.Rule{Fault: "stall-mid", Wait: long, Stream: yes(false)}, takes: timeout},
		{rule: fake.Rule{Fault: "stall-mid", Wait: long, Stream: yes(true)}, takes: silence},
		{rule: rule("reset")},
		{rule: rule("reset-mid")},
		{rule: rule("drop")},
		{rule: rule("cut")},
		// Answers that are none.
		{rule: rule("bad-json")},
		{rule: rule("html")},
		{rule: rule("empty-body")},
		{rule: rule("error-body")},
		{rule: rule("error-event")},
		{rule: of("empty-choices", "openai")},
		{rule: of("empty-choices", "anthropic"), answered: true}, // which may say nothing
		{rule: rule("no-finish")},
		{rule: fake.Rule{Fault: "huge", Size: 65 << 20, Stream: yes(false)}}, // more than is read
		{rule: fake.Rule{Fault: "huge", Size: 1 << 20}, answered: true},
		// Replies, whatever they are worth: they are the model's.
		{rule: rule("length"), answered: true, finish: model.FinishLength},
		{rule: of("context-finish", "openai"), answered: true, finish: model.FinishLength},
		{rule: of("context-finish", "anthropic"), class: model.ContextWindowExceeded},
		{rule: rule("refused"), class: model.ContentRefused},
		{rule: of("refused-text", "openai"), class: model.ContentRefused},
		{rule: of("refused-text", "anthropic"), answered: true}, // which has no such thing
		{rule: rule("tool-unknown"), answered: true, finish: model.FinishTools},
		{rule: rule("tool-bad-json"), answered: true, finish: model.FinishTools},
		{rule: rule("tool-no-command"), answered: true, finish: model.FinishTools},
		{rule: rule("usage-absent"), answered: true},
		{rule: rule("usage-zero"), answered: true},
		{rule: rule("usage-negative"), answered: true},
		{rule: rule("usage-huge"), answered: true},
	}...)
}

// TestEveryFault is every fault that the fake provider knows, in both formats,
// plain and streamed: the class it ends in, the requests that the server saw,
// and the time that was waited, by a clock that nobody waits for.
func TestEveryFault(t *testing.T) {
	covered := map[string]bool{}
	for _, b := range badDays() {
		for _, api := range []string{"openai", "anthropic"} {
			for _, stream := range []bool{false, true} {
				if b.rule.API != "" && b.rule.API != api || b.rule.Stream != nil && *b.rule.Stream != stream {
					continue
				}
				covered[fmt.Sprint(b.rule.Fault, api, stream)] = true
				name := fmt.Sprintf("%s %v %v %s stream %t", b.rule.Fault, time.Duration(b.rule.RetryAfter), time.Duration(b.rule.Wait), api, stream)
				t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { b.try(t, api, stream) }) })
			}
		}
	}
	for _, f := range fake.Faults() {
		for _, api := range []string{"openai", "anthropic"} {
			for _, stream := range []bool{false, true} {
				if !covered[fmt.Sprint(f.Name, api, stream)] {
					t.Errorf("no case has %s with %s, stream %t", f.Name, api, stream)
				}
			}
		}
	}
}

func (b bad) try(t *testing.T, api string, stream bool) {
	rule := b.rule
	rule.Requests = []int{1}
	s, l, stop := serve(t, "- \"Look.\\n\\n```bash\\nls -la /somewhere\\n```\"", fake.Config{Plan: &fake.Plan{Rules: []fake.Rule{rule}}})
	defer stop()
	m := retry.New(connect(t, l, api, stream), retry.Policy{})
	start := time.Now()
	reply, err := m.Query(t.Context(), []model.Message{{Role: model.User, Content: "hello"}})
	took := time.Since(start)
	stop()

	seen, want := s.Books(), 2
	if b.class != "" || b.answered {
		want = 1
	}
	if seen.Seen != want || reply.Tries != want || len(reply.Attempts) != want {
		t.Fatalf("the server saw %d requests, %d are told, want %d: %v", seen.Seen, reply.Tries, want, err)
	}
	e, failed := errors.AsType[*model.Error](err)
	switch {
	case b.class == "" && err != nil, b.class != "" && (!failed || e.Status != b.class):
		t.Fatalf("%v, want %q", err, b.class)
	case b.finish != "" && reply.Finish != b.finish:
		t.Errorf("finished by %q, want %q", reply.Finish, b.finish)
	}
	b.times(t, reply, took)
	if u := reply.Usage; u.Prompt < 0 || u.Completion < 0 || reply.Cost < 0 || (u.Prompt == 0 && b.answered) != (u.Unpriced > 0) {
		t.Errorf("counted %+v, cost %v", u, reply.Cost)
	}
	if strings.Contains(fmt.Sprintf("%v %+v %s", err, reply, reply.Raw), marker) {
		t.Errorf("the key is in %+v, %v", reply, err)
	}
	if b.class != "" || b.answered {
		return
	}
	if c := seen.Charged; c.Replies != 1 || c.Usage.Prompt > reply.Usage.Prompt || c.Usage.Completion > reply.Usage.Completion {
		t.Errorf("charged %v, counted %+v", c, reply.Usage)
	}
}

func (b bad) times(t *testing.T, reply model.Reply, took time.Duration) {
	t.Helper()
	lasted := took - reply.Waited
	if b.takes >= 0 && lasted != b.takes || b.takes < 0 && (lasted <= 0 || lasted > time.Minute) {
		t.Errorf("the requests lasted %v, want %v", lasted, b.takes)
	}
	least, most := b.waits, b.waits
	switch {
	case b.class != "" || b.answered:
		least, most = 0, 0
	case b.rule.RetryAfterAs == fake.RetryDate:
		least -= time.Second // the seconds of a date are whole
		most += time.Second
	case b.waits == 0:
		least, most = 125*time.Millisecond, 375*time.Millisecond
	}
	if reply.Waited < least || reply.Waited > most {
		t.Errorf("waited %v, want %v to %v", reply.Waited, least, most)
	}
}
