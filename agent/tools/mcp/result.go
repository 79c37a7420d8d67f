package mcp

import (
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/minibench/mini/agent/tools"
)

// result is what a server answered, as text.
func (t *tool) result(res *sdk.CallToolResult, d Details) tools.Result {
	var parts []string
	for _, c := range res.Content {
		if text := textOf(c); text != "" {
			parts = append(parts, text)
		}
	}
	d.Structured = res.StructuredContent
	if len(parts) == 0 && res.StructuredContent != nil {
		if data, err := json.MarshalIndent(res.StructuredContent, "", "  "); err == nil {
			parts = append(parts, string(data))
		}
	}
	text := t.server.hide(strings.ToValidUTF8(strings.Join(parts, "\n"), "\uFFFD"))
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	out := tools.Result{Output: text, Details: t.server.details(d)}
	if res.IsError {
		out.ExitCode = 1
	}
	return out
}

// textOf is a part of an answer as text. What is none is named: a model that works
// by the shell has no use for the bytes.
func textOf(c sdk.Content) string {
	switch c := c.(type) {
	case *sdk.TextContent:
		return strings.TrimRight(c.Text, "\n")
	case *sdk.ImageContent:
		return left("image", c.MIMEType, len(c.Data))
	case *sdk.AudioContent:
		return left("audio", c.MIMEType, len(c.Data))
	case *sdk.ResourceLink:
		return oneLine(fmt.Sprintf("[resource %s: %s]", c.Name, c.URI), 500)
	case *sdk.EmbeddedResource:
		switch r := c.Resource; {
		case r == nil:
			return ""
		case len(r.Blob) > 0:
			return left("resource "+r.URI, r.MIMEType, len(r.Blob))
		default:
			return strings.TrimRight(r.Text, "\n")
		}
	}
	return "[a part of a kind that mini does not know was left out]"
}

func left(what, kind string, size int) string {
	return oneLine(fmt.Sprintf("[%s, %s, %d bytes: not shown]", what, kind, size), 500)
}

// details are in JSON, without secrets.
func (s *Server) details(d Details) any {
	data, err := json.Marshal(d)
	if err != nil {
		return Details{Server: d.Server, Tool: d.Tool}
	}
	if hidden := []byte(s.hide(string(data))); json.Valid(hidden) {
		return json.RawMessage(hidden)
	}
	return Details{Server: d.Server, Tool: d.Tool}
}

// hide takes secrets out of a text, as they are and as JSON has them.
func (s *Server) hide(text string) string {
	for _, secret := range append([]string{s.config.Token}, s.config.Secrets...) {
		if secret == "" {
			continue
		}
		text = strings.ReplaceAll(text, secret, "[secret]")
		if data, err := json.Marshal(secret); err == nil {
			text = strings.ReplaceAll(text, string(data[1:len(data)-1]), "[secret]")
		}
	}
	return text
}

// clean takes secrets out of a text of the server's, and bounds it.
func (s *Server) clean(text string) string {
	return tools.Clip(s.hide(strings.ToValidUTF8(text, "\uFFFD")), maxText)
}

// maxText bounds errors and descriptions, in bytes.
const maxText = 4 << 10
