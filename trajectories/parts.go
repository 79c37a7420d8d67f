package trajectories

import (
	"encoding/base64"
	"encoding/json"

	"github.com/minibench/mini/model"
)

// trajMessage is one entry of "messages": the message as chat completions have
// it, which is also as the journal has it but for its images.
type trajMessage struct {
	Role      model.Role      `json:"role"`
	Content   any             `json:"content"` // a string; where there are images, parts
	Reasoning string          `json:"reasoning_content,omitempty"`
	Calls     []model.Call    `json:"tool_calls,omitempty"`
	CallID    string          `json:"tool_call_id,omitempty"`
	Kept      json.RawMessage `json:"kept,omitempty"`
	Extra     any             `json:"extra,omitempty"`
}

func newTrajMessage(m model.Message, extra any) *trajMessage {
	return &trajMessage{
		Role: m.Role, Content: contentOf(m), Reasoning: m.Reasoning,
		Calls: m.Calls, CallID: m.CallID, Kept: m.Kept, Extra: extra,
	}
}

// part is a piece of a content that has images.
type part struct {
	Type  string    `json:"type"` // "text" or "image_url"
	Text  string    `json:"text,omitempty"`
	Image *imageURL `json:"image_url,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

func contentOf(m model.Message) any {
	if len(m.Images) == 0 {
		return m.Content
	}
	parts := []part{{Type: "text", Text: m.Content}}
	for _, i := range m.Images {
		url := "data:" + i.MediaType + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
		parts = append(parts, part{Type: "image_url", Image: &imageURL{url}})
	}
	return parts
}
