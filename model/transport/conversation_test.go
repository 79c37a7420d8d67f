package transport_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/transport"
)

// Addresses and headers have the values of the attempt that calls, escaped; unknown placeholders are errors.
func TestPlaceholders(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r.RequestURI + " " + r.Header.Get("X-Task")
	}))
	t.Cleanup(server.Close)
	c := transport.New(transport.Client{
		URL: server.URL + "/sessions/{session}/v1/{attempt}", Header: http.Header{"X-Task": {"{instance}#{attempt}"}},
	})
	read := func(*transport.Response) (model.Reply, error) { return model.Reply{}, nil }
	for _, tt := range []struct {
		conversation *model.Conversation
		want         string
	}{
		{&model.Conversation{Instance: "a__b-1", Attempt: 2, Session: "s1"}, "/sessions/s1/v1/2 a__b-1#2"},
		{&model.Conversation{Instance: "é\r\nX-Evil: 1", Attempt: 3, Session: "../{instance}"}, "/sessions/..%2F%7Binstance%7D/v1/3 %C3%A9%0D%0AX-Evil:%201#3"},
		{nil, "/sessions/none/v1/0 none#0"},
	} {
		ctx := t.Context()
		if tt.conversation != nil {
			ctx = model.WithConversation(context.WithoutCancel(ctx), *tt.conversation)
		}
		if _, err := c.Query(ctx, map[string]any{}, read); err != nil || got != tt.want {
			t.Errorf("%v: %s, want %s", err, got, tt.want)
		}
	}
	for address, want := range map[string]string{
		"http://h/{session}/v1": "", "http://{session}/v1": "cannot be parsed", "http://h/{sesion}/v1": "the placeholders are", "http://h/{session": "the placeholders are",
	} {
		err := transport.Endpoint{Name: "m", BaseURL: address}.Validate("/chat")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}
