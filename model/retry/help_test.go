package retry_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/anthropic"
	"github.com/minibench/mini/model/fake"
	"github.com/minibench/mini/model/openai"
	"github.com/minibench/mini/model/scripted"
)

var price = model.Price{Input: 2, Cached: 0.5, Output: 8}

// serve starts an in-memory server with a script and returns a function to stop it.
func serve(t *testing.T, yaml string, c fake.Config) (*fake.Server, *fake.MemoryListener, func()) {
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
	l := fake.NewMemoryListener()
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	return s, l, sync.OnceFunc(func() {
		if err := errors.Join(s.Close(), <-done); err != nil {
			t.Error(err)
		}
	})
}

// connect returns a model for an API, with an agent's tool.
func connect(t *testing.T, l *fake.MemoryListener, api string, stream bool) model.Model {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DialContext: l.DialContext, DisableKeepAlives: true}}
	tools := []model.ToolDefinition{{Name: "bash", Parameters: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}}}`)}}
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
