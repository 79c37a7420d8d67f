package bench

import (
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/tools/memory"
	"github.com/minibench/mini/configs"
)

// capabilityPlan lists the optional features of the agent in a plan.
type capabilityPlan struct {
	Profile string   `json:"profile,omitempty"`
	Tools   []string `json:"tools,omitempty"`
	MCP     []string `json:"mcp_servers,omitempty"` // mini knows their tools only after connecting
	Skills  []string `json:"skills,omitempty"`
	Notes   string   `json:"notes,omitempty"` // kind of notes; "" if they are off
}

// planCapabilities returns the capabilities of a plan, or nil if every capability is off and there
// is no profile. servers are the names of the MCP servers.
func planCapabilities(cfg *configs.Resolved, profile string, capabilities agent.Capabilities, servers []string) *capabilityPlan {
	p := capabilityPlan{Profile: profile, MCP: servers}
	for _, t := range capabilities.Tools {
		p.Tools = append(p.Tools, t.Name)
	}
	for _, s := range capabilities.Skills {
		p.Skills = append(p.Skills, s.Name)
	}
	if cfg.Memory.Notes != "off" {
		p.Notes = memory.NotesAttempt // batches support no other kind
	}
	if profile == "" && len(p.Tools)+len(p.MCP)+len(p.Skills) == 0 && p.Notes == "" {
		return nil
	}
	return &p
}

// text returns the capabilities as text.
func (p capabilityPlan) text() string {
	var parts []string
	for _, group := range []struct {
		name  string
		names []string
	}{{"tools", p.Tools}, {"those of MCP servers", p.MCP}, {"skills", p.Skills}} {
		if len(group.names) > 0 {
			parts = append(parts, group.name+" "+strings.Join(group.names, ", "))
		}
	}
	if p.Notes != "" {
		parts = append(parts, "notes by "+p.Notes)
	}
	if len(parts) == 0 {
		return "bash alone"
	}
	return strings.Join(parts, "; ")
}
