package openai

import (
	"bytes"
	"encoding/json"

	"github.com/minibench/mini/model/transport"
)

// providerData is the JSON of model.Message.ProviderData of this provider.
type providerData struct {
	OpenAI details `json:"openai"`
}

// details holds the fields that must be sent back unchanged; see message.
type details struct {
	Reasoning json.RawMessage   `json:"reasoning_details,omitempty"`
	Extra     json.RawMessage   `json:"extra_content,omitempty"`
	Calls     []json.RawMessage `json:"calls,omitempty"` // extra_content of each call
}

// providerData returns the fields to send back with this message; nil if none.
func (m message) providerData() (json.RawMessage, error) {
	var d details
	if list := bytes.TrimSpace(m.Details); isNonEmpty(list, '[') {
		d.Reasoning = list
	}
	if isNonEmpty(m.Extra, '{') {
		d.Extra = m.Extra
	}
	for i, c := range m.Calls {
		if isNonEmpty(c.Extra, '{') {
			d.Calls = append(d.Calls, make([]json.RawMessage, i+1-len(d.Calls))...)
			d.Calls[i] = c.Extra
		}
	}
	if d.Reasoning == nil && d.Extra == nil && d.Calls == nil {
		return nil, nil
	}
	raw, err := json.Marshal(providerData{OpenAI: d})
	if err != nil {
		return nil, transport.MalformedResponse("read answer: %w", err)
	}
	return raw, nil
}

// isNonEmpty reports whether raw starts with begin, the bracket of a list or an
// object, and is longer than two bytes.
func isNonEmpty(raw json.RawMessage, begin byte) bool {
	return len(raw) > 2 && raw[0] == begin
}

// restore sets the fields that providerData saved.
func (m *message) restore(raw json.RawMessage) {
	var data providerData
	if len(raw) == 0 || json.Unmarshal(raw, &data) != nil {
		return
	}
	if isPresent(data.OpenAI.Reasoning) {
		m.Details = data.OpenAI.Reasoning
	}
	if isPresent(data.OpenAI.Extra) {
		m.Extra = data.OpenAI.Extra
	}
	for i := range min(len(m.Calls), len(data.OpenAI.Calls)) {
		if extra := data.OpenAI.Calls[i]; isPresent(extra) {
			m.Calls[i].Extra = extra
		}
	}
}
