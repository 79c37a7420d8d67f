// Package setup creates the parts of an agent from its configuration: tools, policy,
// context window, prompts and the header of journals.
package setup

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/agent/tools/memory"
	"github.com/minibench/mini/agent/tools/skills"
	"github.com/minibench/mini/agent/tools/subagents"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env/helper/minitool/filetools"
	"github.com/minibench/mini/runner"
)

// Tools are the configured tools besides the shell. All attempts share them. A nil Tools has
// none.
type Tools struct {
	cfg     *configs.Resolved
	sources []*source
}

// source provides the tools of one kind.
type source struct {
	kind string // see runner.Tool
	// tools returns the tools of one attempt. It accesses neither disk nor network,
	// so that a plan can call it with empty paths.
	tools func(p AttemptPaths) ([]tools.Tool, error)
	// The other fields are optional.
	capabilities []agent.Capability             // described in prompts
	warnings     []string                       // printed before the run
	manifest     func(all *runner.Capabilities) // adds more than the names of the tools
	close        func() error                   // releases resources
}

// AttemptPaths is the instance of an attempt and where the attempt stores files.
type AttemptPaths struct {
	Instance datasets.Instance
	// Dir is the folder of the journal. Workspace is the user's folder that the
	// attempt works in; empty in a batch.
	Dir       string
	Workspace string
	// Prefix starts the names of the attempt's files in Dir if Dir may contain
	// others; empty in a batch.
	Prefix string
}

// file returns the path of a file beside the journal.
func (p AttemptPaths) file(name string) string { return filepath.Join(p.Dir, p.Prefix+name) }

// NewTools connects to the configured tools. It returns nil if there are none.
func NewTools(ctx context.Context, cfg *configs.Resolved) (_ *Tools, err error) {
	a := &Tools{cfg: cfg}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	for _, newSource := range []func(context.Context, *configs.Resolved) (*source, error){
		newFileTools, newHostTools, newMCPTools, newSkillTools, newMemoryTools, newSubagentTools,
	} {
		one, err := newSource(ctx, cfg)
		if err != nil {
			return nil, err
		}
		if one != nil {
			a.sources = append(a.sources, one)
		}
	}
	if allow := cfg.Tools.Allow; len(a.sources) == 0 && len(allow) > 0 {
		return nil, cfg.KeyErrors(configs.KeyError{
			Key: "tools.allow", Text: fmt.Sprintf("%.80q may be called, and no tool is on; to allow a tool turns none on (docs/tools.md)", allow[0]),
		})
	}
	if len(a.sources) == 0 {
		return nil, nil //nolint:nilnil // nothing is configured
	}
	if cfg.Agents.Enabled {
		for _, profile := range cfg.Agents.Profiles {
			if _, err := configs.ForProfile(cfg, profile); err != nil {
				return nil, fmt.Errorf("agents.profiles: %w", err)
			}
		}
	}
	// Report duplicate tools and allowed tools that do not exist.
	if _, err := a.Server(AttemptPaths{}); err != nil {
		return nil, cfg.KeyErrors(configs.KeyError{Key: "tools", Text: err.Error()})
	}
	return a, nil
}

// Warnings returns what the user should know before the run.
func (a *Tools) Warnings() (all []string) {
	if a == nil {
		return nil
	}
	for _, one := range a.sources {
		all = append(all, one.warnings...)
	}
	return all
}

// newFileTools returns read, write and edit, which run in the sandbox, or nil if they are
// off.
func newFileTools(_ context.Context, cfg *configs.Resolved) (*source, error) {
	if !cfg.Tools.Files {
		return nil, nil //nolint:nilnil // they are off
	}
	return &source{kind: "file", tools: func(AttemptPaths) (all []tools.Tool, _ error) {
		for _, s := range filetools.Specs() {
			all = append(all, localTool(s))
		}
		return all, nil
	}}, nil
}

// localTool is a tool that mini-tool runs in the sandbox.
type localTool filetools.Spec

// Spec implements tools.Tool.
func (t localTool) Spec() tools.Spec {
	return tools.Spec{Name: t.Name, Usage: t.Usage, Description: t.Summary, Local: true}
}

// Call implements tools.Tool. It is called only if a program bypasses mini-tool.
func (t localTool) Call(context.Context, tools.Call) (tools.Result, error) {
	return tools.Result{}, errors.New("this tool works in the sandbox alone, where mini-tool was told of it")
}

// Server returns the tool server of an attempt, or nil if there are no tools.
func (a *Tools) Server(p AttemptPaths) (agent.ToolServer, error) {
	if a == nil {
		return nil, nil //nolint:nilnil // documented
	}
	c := tools.Config{Allow: a.cfg.Tools.Allow, Timeout: configs.Duration(a.cfg.Tools.Timeout), MaxOutput: a.cfg.Tools.MaxOutput}
	for _, one := range a.sources {
		list, err := one.tools(p)
		if err != nil {
			return nil, err
		}
		c.Tools, c.Skills = append(c.Tools, list...), append(c.Skills, one.capabilities...)
	}
	box, err := tools.New(c)
	if err != nil {
		return nil, err // avoid returning a typed nil
	}
	return box, nil
}

// ForAttempt returns the tool server of an attempt in a batch.
func (a *Tools) ForAttempt(in datasets.Instance, dir string) (agent.ToolServer, error) {
	return a.Server(AttemptPaths{Instance: in, Dir: dir})
}

// addToolSettings adds the sections of enabled capabilities to the settings of a header.
func addToolSettings(settings map[string]any, cfg configs.Config) {
	for name, section := range map[string]any{"tools": cfg.Tools, "skills": cfg.Skills, "memory": cfg.Memory, "agents": cfg.Agents} {
		if !isOff(section) {
			settings[name] = section
		}
	}
}

// clearUnused clears settings that have no effect on the attempt.
func clearUnused(c *configs.Config) {
	a := &c.Agent
	if a.Compaction == "" || a.Compaction == agent.CompactOff {
		a.Compaction, a.CompactionTokens, a.CompactionKeep = "", 0, 0
	}
	if a.Compaction != agent.CompactSummarize {
		a.SummaryTemplate, a.SummaryMaxChars, c.Model.Summary = "", 0, nil
	}
}

// isOff reports whether a section enables no tools.
func isOff(section any) bool {
	switch s := section.(type) {
	case tools.Settings:
		return !s.Files && !s.Recall && len(s.Search) == 0 && len(s.Host) == 0 && len(s.MCP) == 0
	case skills.Config:
		return len(s.Use) == 0
	case memory.Config:
		return (s.Notes == "" || s.Notes == "off") && !s.Goals
	case subagents.Config:
		return !s.Enabled
	}
	return true
}

// Close closes all connections.
func (a *Tools) Close() error {
	if a == nil {
		return nil
	}
	var errs []error
	for _, one := range slices.Backward(a.sources) {
		if one.close != nil {
			errs = append(errs, one.close())
		}
	}
	return errors.Join(errs...)
}
