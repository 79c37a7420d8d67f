package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/minibench/mini/internal/version"

	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/agent/tools/mcp"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/runner"
)

// newMCPTools connects to the configured MCP servers, which all attempts share. It returns nil
// if there are none, and an error if one fails.
func newMCPTools(ctx context.Context, cfg *configs.Resolved) (*source, error) {
	if len(cfg.Tools.MCP) == 0 {
		return nil, nil //nolint:nilnil // nothing is configured
	}
	all, wrong := serverConfigs(cfg)
	if len(wrong) > 0 {
		return nil, cfg.KeyErrors(wrong...)
	}
	servers, failed := make([]*mcp.Server, len(all)), make([]error, len(all))
	var g sync.WaitGroup
	for i, c := range all {
		g.Go(func() { servers[i], failed[i] = mcp.Connect(ctx, c) })
	}
	g.Wait()
	end := func() error {
		var errs []error
		for _, s := range servers {
			if s != nil {
				errs = append(errs, s.Close())
			}
		}
		return errors.Join(errs...)
	}
	for i, err := range failed {
		if err != nil {
			wrong = append(wrong, configs.KeyError{Key: fmt.Sprintf("tools.mcp[%d]", i), Text: err.Error()})
		}
	}
	if len(wrong) > 0 {
		return nil, errors.Join(cfg.KeyErrors(wrong...), end())
	}
	taken := func(name string) bool {
		return configs.IsBuiltinTool(name) || slices.ContainsFunc(cfg.Tools.Host, func(t tools.HostTool) bool { return t.Name == name })
	}
	return &source{
		kind: "mcp", close: end,
		tools: func(AttemptPaths) ([]tools.Tool, error) { return mcp.Tools(taken, servers...), nil },
		manifest: func(all *runner.Capabilities) {
			for _, s := range servers {
				i := s.Info()
				all.MCP = append(all.MCP, runner.Server{Name: i.Name, Title: i.Server, Version: i.Version})
			}
		},
	}, nil
}

// serverConfigs reads the configuration of the servers.
func serverConfigs(cfg *configs.Resolved) (all []mcp.Config, wrong []configs.KeyError) {
	plain := EnvironWithoutKeys(cfg)
	for i, s := range cfg.Tools.MCP {
		bad := func(key, format string, args ...any) {
			wrong = append(wrong, configs.KeyError{Key: fmt.Sprintf("tools.mcp[%d].%s", i, key), Text: fmt.Sprintf(format, args...)})
		}
		c := mcp.Config{Name: s.Name, Command: s.Command, URL: s.URL, AllowedTools: s.Tools, Version: version.Long()}
		c.Timeout = cmp.Or(configs.Duration(s.Timeout), configs.Duration(cfg.Tools.Timeout), tools.DefaultTimeout)
		named, err := namedVariables(s.Env)
		if err != nil {
			bad("env", "%v", err)
		}
		c.Env, c.Secrets = append(named, plain...), secretValues(named)
		if s.TokenEnv != "" {
			c.Token = os.Getenv(s.TokenEnv)
			if c.Token == "" || strings.ContainsAny(c.Token, "\r\n") {
				bad("token_env", "the environment variable %.80q is not set, or is no token", s.TokenEnv)
			}
		}
		all = append(all, c)
	}
	return all, wrong
}
