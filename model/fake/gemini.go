package fake

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/minibench/mini/model"
)

// gemini is Google's Gemini API. The model and whether the answer is streamed are in the
// path.
type gemini struct {
	model  string
	stream bool
}

var _ wireFormat = gemini{}

func (gemini) api() string { return "gemini" }

type geminiContent struct {
	Role  string            `json:"role"`
	Parts []json.RawMessage `json:"parts"`
}

func (g gemini) parse(body []byte) (*request, *problem) {
	var in struct {
		Contents          []json.RawMessage
		SystemInstruction json.RawMessage
		Tools             []struct {
			FunctionDeclarations []struct {
				tool
				ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema"`
			}
		}
	}
	if p := decode(body, &in); p != nil {
		return nil, p
	}
	if len(in.Contents) == 0 {
		return nil, invalid("* GenerateContentRequest.contents: contents is not specified")
	}
	r := &request{model: g.model, stream: g.stream, usageEvent: true, marked: -1}
	if !absent(in.SystemInstruction) {
		r.turns = append(r.turns, turn{"system", len(in.SystemInstruction), geminiText(in.SystemInstruction)})
	}
	for _, raw := range in.Contents {
		var c geminiContent
		if p := decode(raw, &c); p != nil {
			return nil, p
		}
		role := c.Role
		if role == "model" {
			role = "assistant"
		}
		r.turns = append(r.turns, turn{role, len(raw), geminiText(raw)})
	}
	var tools []tool
	for _, t := range in.Tools {
		for _, f := range t.FunctionDeclarations {
			if !absent(f.ParametersJSONSchema) {
				if p := decode(f.ParametersJSONSchema, &f.Parameters); p != nil {
					return nil, p
				}
			}
			tools = append(tools, f.tool)
		}
	}
	r.tool = commandTool(tools)
	return r, nil
}

// geminiText returns the texts of a content.
func geminiText(raw json.RawMessage) string {
	var c struct{ Parts json.RawMessage }
	_ = json.Unmarshal(raw, &c) // another form has no text
	return texts(c.Parts)
}

func (g gemini) plain(m *message) any { return g.answer(m, g.parts(m), true) }

func (gemini) parts(m *message) []any {
	parts := []any{}
	if m.thinking != "" {
		parts = append(parts, object{"text", m.thinking, "thought", true})
	}
	if m.text != "" {
		parts = append(parts, object{"text", m.text})
	}
	for _, c := range m.calls {
		arguments := json.RawMessage(c.arguments)
		if !json.Valid(arguments) {
			arguments = json.RawMessage("{}")
		}
		parts = append(parts, object{"functionCall", object{"name", c.name, "args", arguments}})
	}
	return parts
}

func (gemini) answer(m *message, parts []any, last bool) object {
	candidate := object{"content", object{"parts", parts, "role", "model"}, "index", 0}
	if last && m.finish != "" {
		reason := map[model.FinishReason]string{model.FinishLength: "MAX_TOKENS", model.FinishContentFilter: "SAFETY"}[m.finish]
		if reason == "" {
			reason = "STOP"
		}
		candidate = append(candidate, "finishReason", reason)
	}
	o := object{"candidates", []any{candidate}, "modelVersion", m.model, "responseId", m.id}
	if u := m.usage; last && u != nil {
		o = append(o, "usageMetadata", object{
			"promptTokenCount", u.Prompt, "cachedContentTokenCount", u.CacheRead, "candidatesTokenCount", u.Completion - u.Reasoning,
			"thoughtsTokenCount", u.Reasoning, "totalTokenCount", u.Prompt + u.Completion,
		})
	}
	return o
}

// events returns the chunks of a reply: its texts in pieces, then the calls with the usage.
func (g gemini) events(m *message) [][]byte {
	var parts [][]byte
	for _, s := range pieces(m.text) {
		parts = append(parts, event("", g.answer(m, []any{object{"text", s}}, false)))
	}
	rest := *m
	rest.text = ""
	return append(parts, event("", g.answer(m, g.parts(&rest), true)))
}

func (gemini) startUsage(*message) *model.Usage { return nil }

func (gemini) problem(p problem, _ string) []byte {
	if p.body != "" {
		return []byte(p.body)
	}
	word := strings.ToUpper(strings.ReplaceAll(http.StatusText(p.status), " ", "_"))
	return jsonOf(object{"error", object{"code", p.status, "message", p.message, "status", word}}, "")
}

func (gemini) headers(http.Header, string) {}

// serveGemini handles the methods of a model.
func (s *Server) serveGemini(w http.ResponseWriter, r *http.Request) {
	name, method, _ := strings.Cut(r.PathValue("call"), ":")
	switch method {
	case "generateContent", "streamGenerateContent":
		s.answer(w, r, gemini{name, method == "streamGenerateContent"})
	case "countTokens":
		s.countTokens(w, r, "totalTokens")
	default:
		s.refuseUnrecorded(w, r, problem{status: http.StatusNotFound, message: "Not found"})
	}
}

// countTokens estimates the tokens of a request. Such requests are not recorded.
func (s *Server) countTokens(w http.ResponseWriter, r *http.Request, field string) {
	if !s.isKeyValid(r) {
		s.refuseUnrecorded(w, r, badKey(wireOf(r)))
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.refuseUnrecorded(w, r, *invalid(err.Error()))
		return
	}
	writeJSON(w, http.StatusOK, object{field, tokens(len(body))})
}
