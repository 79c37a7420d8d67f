package cli

import (
	"context"
	"errors"

	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/configs"
	filetools "github.com/minibench/mini/env/helper/minitool/files"
)

// newFileTools makes read, write and edit; nil where they are off.
func newFileTools(_ context.Context, cfg *configs.Resolved) (ability, error) {
	if !cfg.Tools.Files {
		return nil, nil //nolint:nilnil // they are off
	}
	return fileTools{}, nil
}

// fileTools are told of here and done in the sandbox.
type fileTools struct{}

func (fileTools) tools(toolPlace) ([]tools.Tool, error) {
	var all []tools.Tool
	for _, s := range filetools.Specs() {
		all = append(all, localTool(s))
	}
	return all, nil
}

// localTool is one that mini-tool does itself.
type localTool filetools.Spec

// Spec implements tools.Tool.
func (t localTool) Spec() tools.Spec {
	return tools.Spec{Name: t.Name, Usage: t.Usage, About: t.About, Local: true}
}

// errLocal is the answer to a call that should not have come.
var errLocal = errors.New("this tool works in the sandbox alone, where mini-tool was told of it")

// Call implements tools.Tool. Nobody calls it but who asks the helper past
// mini-tool.
func (t localTool) Call(context.Context, tools.Call) (tools.Result, error) {
	return tools.Result{}, errLocal
}
