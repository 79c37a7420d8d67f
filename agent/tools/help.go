package tools

import (
	"fmt"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/env"
)

// listing is the usage of all tools.
func (r *Registry) listing() string {
	var b strings.Builder
	fmt.Fprintf(&b, "usage: %s NAME ARGS...\n       %s %s NAME\n", env.ToolProgram, env.ToolProgram, Help)
	if len(r.tools) == 0 {
		b.WriteString("\nThere are no tools here.\n")
	}
	for _, t := range r.tools {
		b.WriteByte('\n')
		for line := range strings.Lines(t.spec.usage()) {
			fmt.Fprintf(&b, "  %s %s\n", env.ToolProgram, strings.TrimRight(line, "\n"))
		}
		if t.spec.About != "" {
			fmt.Fprintf(&b, "      %s\n", t.spec.About)
		}
	}
	return b.String()
}

// help answers "mini-tool help [NAME]".
func (r *Registry) help(args []string) agent.ToolAnswer {
	if len(args) == 0 {
		return said(r.listing())
	}
	if t := r.find(args[0]); t != nil {
		return said(explained(t.spec))
	}
	return r.unknown(args[0])
}

func (r *Registry) unknown(name string) agent.ToolAnswer {
	text := fmt.Sprintf("there is no tool %.80q", name) + r.hint(name)
	list := "tools: " + strings.Join(r.Names(), ", ") + "\n"
	if len(r.tools) == 0 {
		list = "There are no tools here.\n"
	}
	return agent.ToolAnswer{ToolAnswer: env.ToolAnswer{Errors: mistake("", text, list), ExitCode: 2}}
}

// explained is what is said of one tool to who asks.
func explained(s Spec) string {
	text := usage(s)
	for _, more := range []string{s.About, s.Help} {
		if more != "" {
			text += "\n" + strings.TrimRight(more, "\n") + "\n"
		}
	}
	return text
}

// usage is how a tool is called, a line for each form.
func usage(s Spec) string {
	var b strings.Builder
	lead := "usage: "
	for line := range strings.Lines(s.usage()) {
		fmt.Fprintf(&b, "%s%s %s\n", lead, env.ToolProgram, strings.TrimRight(line, "\n"))
		lead = "       "
	}
	return b.String()
}

func (s Spec) usage() string {
	if s.Usage == "" {
		return s.Name
	}
	return s.Usage
}
