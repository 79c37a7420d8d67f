package cli_test

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// leak matches the word in a problem statement that selects how the server leaks the
// key.
var leak = regexp.MustCompile(`leak-[a-z0-9]+`)

// leaky returns a handler for both APIs, plain and streamed, whose responses contain
// the key of the request in many forms.
func leaky() http.Handler {
	var busy sync.Map
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		key := cmp.Or(r.Header.Get("X-Api-Key"), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		l := leakyResponse{w, key, r.Header.Get("Anthropic-Version") != "", strings.Contains(string(body), `"stream":true`)}
		refuse := func(status int, kind, text string) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, strings.ReplaceAll(text, "KEY", key))
		}
		const object, page = `{"type":"error","error":{"type":"x","message":"Bearer KEY is not a key, KEY"}}`, `<html><title>KEY</title>`
		switch how := leak.FindString(string(body)); how {
		case "leak-401":
			refuse(401, "application/json", object)
		case "leak-500":
			refuse(500, "text/plain", "panic: header KEY")
		case "leak-502":
			refuse(502, "text/html", page)
		case "leak-page":
			refuse(200, "text/html", page)
		case "leak-error":
			refuse(200, "application/json", object)
		case "leak-json":
			refuse(200, "application/json", `{"choices":[{"KEY`)
		case "leak-event":
			refuse(200, "text/event-stream", "event: error\ndata: "+object+"\n\n")
		case "leak-stream":
			refuse(400, "application/json", `{"error":{"message":"stream is refused to KEY"}}`)
		case "leak-here":
			if !strings.HasSuffix(r.URL.Path, key) {
				http.Redirect(w, r, "/leaky/"+key, http.StatusTemporaryRedirect)
				return
			}
			refuse(404, "application/json", object)
		case "leak-away":
			http.Redirect(w, r, "http://127.0.0.1:1/"+key+"?key="+key, http.StatusTemporaryRedirect)
		case "leak-location":
			w.Header().Set("Location", "http://["+key)
			w.WriteHeader(http.StatusTemporaryRedirect)
		case "leak-base64":
			refuse(400, "application/json", `{"error":{"message":"bad header: `+base64.StdEncoding.EncodeToString([]byte("Authorization: Bearer "+key))+`","code":"KEY"}}`)
		case "leak-hex":
			refuse(200, "application/json", `{"error":{"message":"`+fmt.Sprintf("%x", "key "+key)+` is not KEY"}}`)
		case "leak-url":
			refuse(500, "text/plain", "GET /v1?key="+url.QueryEscape(key)+"&path="+url.PathEscape(key)+"&page="+html.EscapeString(key))
		case "leak-cut", "leak-cut2":
			refuse(401, "application/json", `{"error":{"message":"`+strings.Repeat("x", map[string]int{"leak-cut": 985, "leak-cut2": 470}[how])+`KEY"}}`)
		case "leak-busy":
			if _, again := busy.LoadOrStore(fmt.Sprint(l.anthropic, l.stream), true); !again {
				w.Header().Set("Retry-After-Ms", "10")
				refuse(429, "application/json", object)
				return
			}
			l.answer()
		default:
			l.answer()
		}
	})
}

// leakyResponse is a response that contains the key.
type leakyResponse struct {
	w                 http.ResponseWriter
	key               string
	anthropic, stream bool
}

// answer writes a reply that submits the key as the patch and prints the environment.
// In a stream, no event contains the whole key.
func (l leakyResponse) answer() {
	inBase64 := base64.URLEncoding.EncodeToString([]byte("x" + l.key))
	text := "You are " + l.key + ", or " + inBase64 + "\n\n```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo '" + l.key + "'; env\n```"
	l.w.Header().Set("Content-Type", "application/json")
	if !l.stream {
		l.say("", l.message(text))
		return
	}
	l.w.Header().Set("Content-Type", "text/event-stream")
	if l.anthropic {
		l.say("message_start", map[string]any{"message": map[string]any{
			"type": "message", "role": "assistant", "model": l.key, "content": []any{}, "usage": map[string]any{"input_tokens": 1},
		}})
		l.say("content_block_start", map[string]any{"index": 0, "content_block": map[string]any{"type": "text", "text": ""}})
	}
	for len(text) > 0 {
		n := min(7, len(text))
		part := text[:n]
		if text = text[n:]; l.anthropic {
			l.say("content_block_delta", map[string]any{"index": 0, "delta": map[string]any{"type": "text_delta", "text": part}})
			continue
		}
		l.say("chunk", map[string]any{"model": l.key, "choices": []any{map[string]any{"index": 0, "delta": map[string]any{"content": part}}}})
	}
	if l.anthropic {
		l.say("content_block_stop", map[string]any{"index": 0})
		l.say("message_delta", map[string]any{"delta": map[string]any{"stop_reason": "end_turn"}, "usage": map[string]any{"output_tokens": 1}})
		l.say("message_stop", map[string]any{})
		return
	}
	l.say("chunk", map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": "stop"}}})
	_, _ = io.WriteString(l.w, "data: [DONE]\n\n")
}

func (l leakyResponse) message(text string) map[string]any {
	if l.anthropic {
		return map[string]any{
			"type": "message", "role": "assistant", "model": l.key, "content": []any{map[string]any{"type": "text", "text": text}},
			"stop_reason": "end_turn", "usage": map[string]any{"input_tokens": 1, "output_tokens": 1},
		}
	}
	return map[string]any{
		"model": l.key, "headers": []string{"Bearer " + l.key},
		"choices": []any{map[string]any{"message": map[string]any{"content": text, "reasoning": l.key}, "finish_reason": "stop"}},
	}
}

// say writes an object, as an event if kind is set.
func (l leakyResponse) say(kind string, v map[string]any) {
	before, after := "", ""
	if kind != "" {
		before, after = "event: "+kind+"\ndata: ", "\n\n"
		v["type"] = kind
	}
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(l.w, before+string(data)+after)
}

// noKey is the script command "nokey KEY FOLDER". It fails if a file in the folder
// contains any ten consecutive bytes of the key, also after decoding escapes and
// encodings.
func noKey(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: nokey KEY FOLDER")
	}
	files := 0
	ts.Check(filepath.WalkDir(ts.MkAbs(args[1]), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files++
		data, err := os.ReadFile(path)
		if err == nil && keyIn(data, args[0]) {
			err = fmt.Errorf("%s has the key, or a part of it", path)
		}
		return err
	}))
	if files == 0 {
		ts.Fatalf("there are no files in %s", args[1])
	}
	ts.Logf("looked into %d files", files)
}

func keyIn(data []byte, key string) bool {
	const part = 10
	for _, text := range append(decoded(data), data) {
		for i := range len(key) - part + 1 {
			if bytes.Contains(text, []byte(key[i:i+part])) {
				return true
			}
		}
	}
	return false
}

var (
	inHex     = regexp.MustCompile(`[0-9a-fA-F]{20,}`)
	inBase64  = regexp.MustCompile(`[A-Za-z0-9+/_-]{14,}`)
	inPercent = regexp.MustCompile(`%[0-9a-fA-F]{2}`)
	inUnicode = regexp.MustCompile(`\\u00[0-9a-fA-F]{2}`)
)

// decoded returns the possible decodings of data and of its parts.
func decoded(data []byte) [][]byte {
	byNumber := func(s []byte) []byte {
		b, _ := hex.DecodeString(string(s[len(s)-2:])) // the expressions match nothing else
		return b
	}
	decodings := [][]byte{
		inPercent.ReplaceAllFunc(data, byNumber), inUnicode.ReplaceAllFunc(data, byNumber),
		bytes.ReplaceAll(data, []byte{'\\'}, nil), []byte(html.UnescapeString(string(data))),
	}
	for _, digits := range inHex.FindAll(data, -1) {
		for _, offset := range []int{0, 1} {
			b, _ := hex.DecodeString(string(digits[offset:][:(len(digits)-offset)/2*2]))
			decodings = append(decodings, b)
		}
	}
	for _, letters := range inBase64.FindAll(data, -1) {
		plain := strings.NewReplacer("-", "+", "_", "/").Replace(string(letters))
		for offset := range 4 { // the first complete group of four may begin at any of these offsets
			b, _ := base64.RawStdEncoding.DecodeString(plain[offset:][:(len(plain)-offset)/4*4])
			decodings = append(decodings, b)
		}
	}
	return decodings
}
