package modeltest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/minibench/mini/model"
)

// Key is a key that changes when JSON or fmt quotes it.
const Key = `sk-proj-0123"456789`

// ContainsKey reports whether text contains a part of Key, quoted or not, or its last part in
// hexadecimal.
func ContainsKey(text string) bool {
	return strings.Contains(text, "0123") || strings.Contains(text, "456789") ||
		strings.Contains(text, fmt.Sprintf("%x", "456789"))
}

// keyOf returns the key of a request.
func keyOf(r *http.Request) string {
	return cmp.Or(r.Header.Get("X-Api-Key"), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
}

// CheckKeyNeverPrinted checks that no way to print a configuration, or the model m made
// from it, shows its Key, and that a printed configuration says that a key is set.
func CheckKeyNeverPrinted[C fmt.Formatter](t *testing.T, config C, m model.Model) {
	t.Helper()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for what, value := range map[string]any{"config": config, "pointer": &config, "in a struct": struct{ C C }{config}, "model": m} {
			if text := fmt.Sprintf(verb, value); ContainsKey(text) {
				t.Errorf("%s with %s: %s", what, verb, text)
			}
		}
	}
	var logged bytes.Buffer
	slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "config", config)
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "config", config)
	if ContainsKey(logged.String()) || ContainsKey(jsonOf(config)) {
		t.Errorf("logged %s, as JSON %s", logged.String(), jsonOf(config))
	}
	if !strings.Contains(fmt.Sprint(config), "key set") {
		t.Errorf("%v does not say that there is a key", config)
	}
}

// Echo is a response that repeats the request's key: in Body, "KEY" with its quotes is
// replaced by the key as a JSON string.
type Echo struct {
	Stream     bool
	Status     int
	Kind, Body string
}

func (p Provider) secrets(t *testing.T) {
	for name, e := range p.Echoes {
		t.Run(name, func(t *testing.T) {
			m := p.connect(t, Settings{Key: Key, Stream: e.Stream}, func(w http.ResponseWriter, r *http.Request) {
				if keyOf(r) != Key {
					t.Errorf("the key did not arrive, but %q", keyOf(r))
				}
				StaticHandler(e.Status, e.Kind, strings.ReplaceAll(e.Body, `"KEY"`, jsonOf(keyOf(r))))(w, r)
			})
			reply, err := ask(t.Context(), m)
			text := fmt.Sprintf("%+v %+v %s %s", reply, err, reply.Raw, reply.Message.ProviderData)
			if ContainsKey(text) || !strings.Contains(text, "[redacted]") {
				t.Error(text)
			}
		})
	}
}

// wrongAddresses tests that a wrong address gives a one-line error with a hint.
func (p Provider) wrongAddresses(t *testing.T) {
	secure := httptest.NewUnstartedServer(p.serve(false))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	open := httptest.NewServer(p.serve(false))
	defer open.Close()
	closed := httptest.NewServer(nil)
	closed.Close()
	for name, test := range map[string]struct {
		base, hint               string
		retryable, misconfigured bool
	}{
		"untrusted certificate": {secure.URL, "SSL_CERT_FILE", false, false},
		"no TLS there":          {strings.Replace(open.URL, "http:", "https:", 1), "http:// instead of https://", false, false},
		"TLS wanted":            {strings.Replace(secure.URL, "https:", "http:", 1), "", false, false},
		"no server":             {closed.URL, "check the base URL (model.base_url)", true, true},
		"no such name":          {"http://mini.invalid", "check the base URL (model.base_url)", true, true},
	} {
		_, err := ask(t.Context(), p.make(t, Settings{BaseURL: test.base}))
		e, ok := errors.AsType[*model.Error](err)
		if !ok || e.Retryable != test.retryable || e.MaybeMisconfigured != test.misconfigured || !strings.Contains(e.Hint, test.hint) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %+v: %v", name, e, err)
		}
	}
}
