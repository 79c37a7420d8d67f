package anthropic

import (
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/minibench/mini/model"
)

// request is the body of a request, but for what Kwargs say.
func (m *Model) request(messages []model.Message) (sdk.MessageNewParams, error) {
	system, rest := systemOf(messages)
	turns, err := turnsOf(rest)
	if err != nil {
		return sdk.MessageNewParams{}, err
	}
	p := sdk.MessageNewParams{
		Model: m.config.Name, MaxTokens: m.config.maxTokens(m.fields), System: system, Tools: toolsOf(m.config.Tools),
	}
	for _, t := range turns {
		p.Messages = append(p.Messages, sdk.MessageParam{Role: t.role, Content: t.blocks()})
	}
	if _, own := m.fields["cache_control"]; !own && m.config.Cache != CacheOff {
		mark(&p, m.config.Cache)
	}
	return p, nil
}

// systemOf takes the system messages off the beginning. Later ones are the
// user's, to the API.
func systemOf(messages []model.Message) ([]sdk.TextBlockParam, []model.Message) {
	var system []sdk.TextBlockParam
	for i, m := range messages {
		if m.Role != model.System {
			return system, messages[i:]
		}
		if strings.TrimSpace(m.Content) != "" {
			system = append(system, sdk.TextBlockParam{Text: m.Content})
		}
	}
	return system, nil
}

func toolsOf(tools []model.Definition) []sdk.ToolUnionParam {
	var out []sdk.ToolUnionParam
	for _, t := range tools {
		tool := sdk.ToolParam{Name: t.Name, InputSchema: param.Override[sdk.ToolInputSchemaParam](t.Parameters)}
		if t.Description != "" {
			tool.Description = sdk.String(t.Description)
		}
		out = append(out, sdk.ToolUnionParam{OfTool: &tool})
	}
	return out
}

// marks is at how many of the user's turns the cache may begin again. With
// that of the system prompt it is one less than the API allows.
const marks = 2

// mark sets the points up to which the provider keeps a request. The last one
// is what the next step reads; the one before it is what the last step wrote,
// however many blocks a turn has (the provider itself looks back over twenty).
func mark(p *sdk.MessageNewParams, cache string) {
	point := sdk.NewCacheControlEphemeralParam()
	if cache == CacheHour {
		point.TTL = sdk.CacheControlEphemeralTTLTTL1h
	}
	switch {
	case len(p.System) > 0:
		p.System[len(p.System)-1].CacheControl = point // tools come before it
	case len(p.Tools) > 0:
		p.Tools[len(p.Tools)-1].OfTool.CacheControl = point
	}
	left := marks
	for _, message := range slices.Backward(p.Messages) {
		if message.Role != sdk.MessageParamRoleUser {
			continue
		}
		if c := message.Content[len(message.Content)-1].GetCacheControl(); c != nil {
			*c = point
		}
		if left--; left == 0 {
			return
		}
	}
}
