package trajectories

import (
	"encoding/base64"
	"encoding/json"

	"github.com/minibench/mini/model"
)

// trajMessage is an element of "messages" of a .traj.json file, in the format of OpenAI
// chat completions. The journal uses the same format except for images.
type trajMessage struct {
	Role      model.Role       `json:"role"`
	Content   any              `json:"content"` // a string, or parts if there are images
	Reasoning string           `json:"reasoning_content,omitempty"`
	Calls     []model.ToolCall `json:"tool_calls,omitempty"`
	CallID    string           `json:"tool_call_id,omitempty"`
	// ProviderData is an extension of mini, see model.Message.
	ProviderData json.RawMessage `json:"kept,omitempty"`
	Extra        any             `json:"extra,omitempty"`
}

func newTrajMessage(m model.Message, extra any) *trajMessage {
	return &trajMessage{
		Role: m.Role, Content: messageContent(m), Reasoning: m.Reasoning,
		Calls: m.ToolCalls, CallID: m.ToolCallID, ProviderData: m.ProviderData, Extra: extra,
	}
}

// contentPart is an element of Content if the message has images.
type contentPart struct {
	Type  string    `json:"type"` // "text" or "image_url"
	Text  string    `json:"text,omitempty"`
	Image *imageURL `json:"image_url,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

func messageContent(m model.Message) any {
	if len(m.Images) == 0 {
		return m.Content
	}
	parts := []contentPart{{Type: "text", Text: m.Content}}
	for _, i := range m.Images {
		url := "data:" + i.MediaType + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
		parts = append(parts, contentPart{Type: "image_url", Image: &imageURL{url}})
	}
	return parts
}
