package tools

import (
	"fmt"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/env"
)

// listing returns the usage of all tools.
func (r *Registry) listing() string {
	var b strings.Builder
	fmt.Fprintf(&b, "usage: %s NAME ARGS...\n       %s %s NAME\n", env.ToolProgram, env.ToolProgram, HelpName)
	if len(r.tools) == 0 {
		b.WriteString("\nThere are no tools here.\n")
	}
	for _, t := range r.tools {
		b.WriteByte('\n')
		for line := range strings.Lines(t.spec.usageLines()) {
			fmt.Fprintf(&b, "  %s %s\n", env.ToolProgram, strings.TrimRight(line, "\n"))
		}
		if t.spec.Description != "" {
			fmt.Fprintf(&b, "      %s\n", t.spec.Description)
		}
	}
	return b.String()
}

// help handles "mini-tool help [NAME]".
func (r *Registry) help(args []string) agent.ToolResponse {
	if len(args) == 0 {
		return outputResponse(r.listing())
	}
	if t := r.find(args[0]); t != nil {
		return outputResponse(describeTool(t.spec))
	}
	return r.unknownTool(args[0])
}

func (r *Registry) unknownTool(name string) agent.ToolResponse {
	text := fmt.Sprintf("there is no tool %.80q", name) + r.suggestion(name)
	list := "tools: " + strings.Join(r.Names(), ", ") + "\n"
	if len(r.tools) == 0 {
		list = "There are no tools here.\n"
	}
	return agent.ToolResponse{ToolResponse: env.ToolResponse{Stderr: usageErrorText("", text, list), ExitCode: 2}}
}

// describeTool returns the usage, description and help of one tool.
func describeTool(s Spec) string {
	text := usageText(s)
	for _, more := range []string{s.Description, s.Help} {
		if more != "" {
			text += "\n" + strings.TrimRight(more, "\n") + "\n"
		}
	}
	return text
}

// usageText returns "usage:" and a line for each form.
func usageText(s Spec) string {
	var b strings.Builder
	prefix := "usage: "
	for line := range strings.Lines(s.usageLines()) {
		fmt.Fprintf(&b, "%s%s %s\n", prefix, env.ToolProgram, strings.TrimRight(line, "\n"))
		prefix = "       "
	}
	return b.String()
}

func (s Spec) usageLines() string {
	if s.Usage == "" {
		return s.Name
	}
	return s.Usage
}
