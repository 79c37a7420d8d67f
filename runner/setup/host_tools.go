package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/agent/tools/host"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env/local"
)

// hostTools are the configured tools that run programs on this machine.
type hostTools struct {
	search *host.Config
	others []host.Config
}

// newHostTools returns the tools that run programs on this machine, or nil if none are
// configured. The error lists the programs that cannot be run and the environment
// variables that are not set.
func newHostTools(_ context.Context, cfg *configs.Resolved) (*source, error) {
	if len(cfg.Tools.Search) == 0 && len(cfg.Tools.Host) == 0 {
		return nil, nil //nolint:nilnil // nothing is configured
	}
	environ := EnvironWithoutKeys(cfg)
	h := &hostTools{}
	var keyErrs []configs.KeyError
	addErr := func(key, name string, err error) {
		if err != nil {
			keyErrs = append(keyErrs, configs.KeyError{Key: key, Text: strings.TrimPrefix(err.Error(), "tool "+name+": ")})
		}
	}
	if len(cfg.Tools.Search) > 0 {
		h.search = &host.Config{Command: cfg.Tools.Search, Env: environ}
		_, err := host.NewSearch(*h.search)
		addErr("tools.search", host.SearchName, err)
	}
	for i, t := range cfg.Tools.Host {
		item := fmt.Sprintf("tools.host[%d].", i)
		named, err := namedVariables(t.Env)
		addErr(item+"env", t.Name, err)
		c := host.Config{
			Name: t.Name, Command: t.Command, Usage: t.Usage, Description: t.Description, Env: append(named, environ...),
			Secrets: secretValues(named), Timeout: configs.Duration(t.Timeout), MaxOutput: t.MaxOutput,
		}
		_, err = host.New(c)
		addErr(item+"command", t.Name, err)
		h.others = append(h.others, c)
	}
	if len(keyErrs) > 0 {
		return nil, cfg.KeyErrors(keyErrs...)
	}
	return &source{kind: "host", tools: h.tools}, nil
}

// secretValues returns the values of secret variables (see local.IsSecret). variables have the
// form NAME=value.
func secretValues(variables []string) []string {
	var secrets []string
	for _, kv := range variables {
		if name, value, _ := strings.Cut(kv, "="); local.IsSecret(name) {
			secrets = append(secrets, value)
		}
	}
	return secrets
}

// namedVariables returns the environment variables with these names as NAME=value. The error
// lists those that are not set.
func namedVariables(names []string) ([]string, error) {
	var list []string
	var missing []error
	for _, name := range names {
		value, ok := os.LookupEnv(name)
		if !ok {
			missing = append(missing, fmt.Errorf("the environment variable %.80q is not set", name))
			continue
		}
		list = append(list, name+"="+value)
	}
	return list, errors.Join(missing...)
}

func (h *hostTools) tools(p AttemptPaths) ([]tools.Tool, error) {
	var list []tools.Tool
	if h.search != nil {
		c := *h.search
		c.Instance = p.Instance.ID
		tool, err := host.NewSearch(c)
		if err != nil {
			return nil, err
		}
		list = append(list, tool)
	}
	for _, c := range h.others {
		c.Instance = p.Instance.ID
		tool, err := host.New(c)
		if err != nil {
			return nil, err
		}
		list = append(list, tool)
	}
	return list, nil
}
