package mcp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/minibench/mini/agent/tools"
)

// toResult converts the server's answer to a result with text.
func (t *tool) toResult(res *sdk.CallToolResult, d Details) tools.Result {
	var parts []string
	for _, c := range res.Content {
		if text := contentText(c); text != "" {
			parts = append(parts, text)
		}
	}
	d.Structured = res.StructuredContent
	if len(parts) == 0 && res.StructuredContent != nil {
		if data, err := json.MarshalIndent(res.StructuredContent, "", "  "); err == nil {
			parts = append(parts, string(data))
		}
	}
	text := t.server.redact(strings.ToValidUTF8(strings.Join(parts, "\n"), "\uFFFD"))
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	out := tools.Result{Output: text, Details: t.server.encodeDetails(d)}
	if res.IsError {
		out.ExitCode = 1
	}
	return out
}

// contentText returns one part of an answer as text. Binary parts are replaced
// by a note, because a model that works in a shell cannot use them.
func contentText(c sdk.Content) string {
	switch c := c.(type) {
	case *sdk.TextContent:
		return strings.TrimRight(c.Text, "\n")
	case *sdk.ImageContent:
		return omittedNote("image", c.MIMEType, len(c.Data))
	case *sdk.AudioContent:
		return omittedNote("audio", c.MIMEType, len(c.Data))
	case *sdk.ResourceLink:
		return oneLine(fmt.Sprintf("[resource %s: %s]", c.Name, c.URI), 500)
	case *sdk.EmbeddedResource:
		switch r := c.Resource; {
		case r == nil:
			return ""
		case len(r.Blob) > 0:
			return omittedNote("resource "+r.URI, r.MIMEType, len(r.Blob))
		default:
			return strings.TrimRight(r.Text, "\n")
		}
	}
	return "[a part of a kind that mini does not know was left out]"
}

// omittedNote returns the note that replaces a part of an answer.
func omittedNote(what, mediaType string, size int) string {
	return oneLine(fmt.Sprintf("[%s, %s, %d bytes: not shown]", what, mediaType, size), 500)
}

// encodeDetails returns the details as JSON without secrets.
func (s *Server) encodeDetails(d Details) any {
	data, err := json.Marshal(d)
	if err != nil {
		return Details{Server: d.Server, Tool: d.Tool}
	}
	if redacted := []byte(s.redact(string(data))); json.Valid(redacted) {
		return json.RawMessage(redacted)
	}
	return Details{Server: d.Server, Tool: d.Tool}
}

// redact replaces the secrets in a text, also in their JSON encoding.
func (s *Server) redact(text string) string {
	// One secret may contain another: replace the longest first.
	secrets := append([]string{s.config.Token}, s.config.Secrets...)
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	for _, secret := range secrets {
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

// sanitize replaces secrets and invalid UTF-8 in a text of the server, and clips
// the text to maxText bytes.
func (s *Server) sanitize(text string) string {
	return tools.Clip(s.redact(strings.ToValidUTF8(text, "\uFFFD")), maxText)
}

// maxText bounds errors and descriptions, in bytes.
const maxText = 4 << 10
