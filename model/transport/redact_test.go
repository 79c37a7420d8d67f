package transport_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/transport"
)

// TestRedactor redacts a key in all encoded forms, within other text.
func TestRedactor(t *testing.T) {
	for _, key := range []string{"sk-marker-0123456789abcdef", `a/b+c=d&e"f<g>h\i`, "12345678"} {
		r := transport.NewRedactor("short", key)
		for _, before := range []string{"", "B", "Be", "Bearer "} {
			text := before + key + " and more"
			inJSON, err := json.Marshal(text)
			require.NoError(t, err)
			for form, encoded := range map[string]string{
				"plain": text, "JSON": string(inJSON), "JSON with slashes": strings.ReplaceAll(string(inJSON), "/", `\/`),
				"Go": strconv.Quote(text), "HTML": html.EscapeString(text), "query": url.QueryEscape(text), "path": url.PathEscape(text),
				"hex": hex.EncodeToString([]byte(text)), "HEX": fmt.Sprintf("%X", text),
				"base64": base64.StdEncoding.EncodeToString([]byte(text)), "base64 of URLs": base64.URLEncoding.EncodeToString([]byte(text)),
			} {
				got := string(r.Bytes([]byte("<< " + encoded + " >>")))
				if !strings.Contains(got, "[redacted]") || !strings.HasPrefix(got, "<< ") || !strings.HasSuffix(got, " >>") {
					t.Errorf("%s: %s became %s", form, encoded, got)
				}
			}
		}
	}
	const key = "sk-marker-0123456789abcdef"
	r := transport.NewRedactor(key)
	for name, divider := range map[string]string{
		"line": "\n", "lines": "\r\n", "indented": "\n    ", "colour": "\x1b[31m", "JSON": `\n`, "indented in JSON": `\r\n    `, "colour in JSON": `\u001b[1;31m`, "both": "\x1b[0m\n\x1b[32m",
	} {
		for _, at := range [][]int{{1}, {12}, {25}, {3, 4, 20}} {
			for _, form := range []string{key, hex.EncodeToString([]byte(key))} {
				divided, start := "", 0
				for _, i := range at {
					divided, start = divided+form[start:i]+divider, i
				}
				divided += form[start:]
				text := "first\nline " + divider + divided + "\nlast " + divided
				want := "first\nline " + divider + "[redacted]\nlast [redacted]"
				assert.Equal(t, want, string(r.Bytes([]byte(text))), "%s: %q became", name, text)
			}
		}
	}
	for _, harmless := range []string{"short", "sk-marker\n and\n -0123456789abcdef", "\\ \n \x1b[ \x1b", `\u001b[`, "\n", "sk-marker-0123456789abcde\n", "sk-marker-", "c2stbWFya2Vy", ""} {
		assert.Equal(t, harmless, string(r.Bytes([]byte(harmless))), "a harmless text became")
	}
}

// Errors quote truncated texts, but never a part of a key.
func TestNoPartialKeys(t *testing.T) {
	const key, half = "sk-marker-0123456789", "sk-marker"
	refuse := func(fill int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, strings.Repeat("x", fill)+key)
		}
	}
	tests := map[string]http.HandlerFunc{
		"redirection": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+strings.Repeat("x", 240)+key+"/", http.StatusTemporaryRedirect)
		},
		"event": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: "+key+"\n\n")
		},
	}
	for _, fill := range []int{0, 985, 990, 995} {
		tests[fmt.Sprint("refusal ", fill)] = refuse(fill)
	}
	for name, serve := range tests {
		text, err := post(t, transport.Client{Redact: transport.NewRedactor(key)}, "{}", serve)
		if e, ok := errors.AsType[*model.Error](err); ok {
			text = e.Error()
		}
		if text == "" || strings.Contains(text, half) {
			t.Errorf("%s: %q", name, text)
		}
	}
}
