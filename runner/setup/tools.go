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
	"github.com/minibench/mini/runner/runs"
)

// Tools are the configured tools besides the shell. All attempts share them. A nil *Tools means
// no tools.
type Tools struct {
	cfg     *configs.Resolved
	sources []*source
}

// source provides the tools of one kind.
type source struct {
	kind string // runs.Tool.Kind
	// tools returns the tools of one attempt. It does not access the disk or the
	// network, so that a plan can call it with empty paths.
	tools func(p AttemptPaths) ([]tools.Tool, error)
	// The other fields are optional.
	capabilities []agent.Capability       // described in prompts
	warnings     []string                 // printed before the run
	manifest     func(*runs.Capabilities) // adds details other than the names of tools
	close        func() error             // releases resources
}

// AttemptPaths is the instance of an attempt and the locations of the attempt's files.
type AttemptPaths struct {
	Instance datasets.Instance
	// Dir is the folder of the journal. Workspace is the user's folder in which the
	// attempt works; empty in a batch.
	Dir       string
	Workspace string
	// Prefix is the start of the names of the attempt's files in Dir. It is empty
	// in a batch, where Dir has no other files.
	Prefix string
}

// file returns the path of a file beside the journal.
func (p AttemptPaths) file(name string) string { return filepath.Join(p.Dir, p.Prefix+name) }

// NewTools sets up the configured tools and connects to MCP servers. It returns nil if no tools
// are configured.
func NewTools(ctx context.Context, cfg *configs.Resolved) (_ *Tools, err error) {
	t := &Tools{cfg: cfg}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Close())
		}
	}()
	for _, newSource := range []func(context.Context, *configs.Resolved) (*source, error){
		newFileTools, newHostTools, newMCPTools, newSkillTools, newMemoryTools, newSubagentTools,
	} {
		src, err := newSource(ctx, cfg)
		if err != nil {
			return nil, err
		}
		if src != nil {
			t.sources = append(t.sources, src)
		}
	}
	if allow := cfg.Tools.Allow; len(t.sources) == 0 && len(allow) > 0 {
		return nil, cfg.KeyErrors(configs.KeyError{
			Key: "tools.allow", Text: fmt.Sprintf("%.80q may be called, and no tool is on; to allow a tool turns none on (docs/tools.md)", allow[0]),
		})
	}
	if len(t.sources) == 0 {
		return nil, nil //nolint:nilnil // nothing is configured
	}
	if cfg.Agents.Enabled {
		for _, profile := range cfg.Agents.Profiles {
			if _, err := configs.WithProfile(cfg, profile); err != nil {
				return nil, fmt.Errorf("agents.profiles: %w", err)
			}
		}
	}
	// Find duplicate tools and allowed tools that do not exist before the run.
	if _, err := t.Server(AttemptPaths{}); err != nil {
		return nil, cfg.KeyErrors(configs.KeyError{Key: "tools", Text: err.Error()})
	}
	return t, nil
}

// Warnings returns the warnings to print before the run.
func (t *Tools) Warnings() (all []string) {
	if t == nil {
		return nil
	}
	for _, src := range t.sources {
		all = append(all, src.warnings...)
	}
	return all
}

// newFileTools returns the tools read, write and edit, which run in the sandbox, or nil if they
// are off.
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
	return tools.Spec{Name: t.Name, Usage: t.Usage, Description: t.Summary, InSandbox: true}
}

// Call implements tools.Tool. It returns an error, because mini-tool runs the tool in the sandbox;
// the server calls Call only for a program that bypasses mini-tool.
func (t localTool) Call(context.Context, tools.Call) (tools.Result, error) {
	return tools.Result{}, errors.New("this tool works in the sandbox alone, where mini-tool was told of it")
}

// Server returns the tool server of an attempt, or nil if there are no tools.
func (t *Tools) Server(p AttemptPaths) (agent.ToolServer, error) {
	if t == nil {
		return nil, nil //nolint:nilnil // documented
	}
	config := tools.Config{Allow: t.cfg.Tools.Allow, Timeout: configs.Duration(t.cfg.Tools.Timeout), MaxOutput: t.cfg.Tools.MaxOutput}
	for _, src := range t.sources {
		list, err := src.tools(p)
		if err != nil {
			return nil, err
		}
		config.Tools, config.Skills = append(config.Tools, list...), append(config.Skills, src.capabilities...)
	}
	server, err := tools.New(config)
	if err != nil {
		return nil, err // avoid returning a typed nil
	}
	return server, nil
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

// Close closes all connections and removes temporary folders.
func (t *Tools) Close() error {
	if t == nil {
		return nil
	}
	var errs []error
	for _, src := range slices.Backward(t.sources) {
		if src.close != nil {
			errs = append(errs, src.close())
		}
	}
	return errors.Join(errs...)
}
