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

	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/agent/tools/mcp"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/version"
	"github.com/minibench/mini/runner/runs"
)

// newMCPTools connects to the configured MCP servers, which all attempts share. It returns nil
// if none are configured, and an error if a setting is invalid or a connection fails.
func newMCPTools(ctx context.Context, cfg *configs.Resolved) (*source, error) {
	if len(cfg.Tools.MCP) == 0 {
		return nil, nil //nolint:nilnil // nothing is configured
	}
	serverCfgs, keyErrs := serverConfigs(cfg)
	if len(keyErrs) > 0 {
		return nil, cfg.KeyErrors(keyErrs...)
	}
	servers, connectErrs := make([]*mcp.Server, len(serverCfgs)), make([]error, len(serverCfgs))
	var wg sync.WaitGroup
	for i, c := range serverCfgs {
		wg.Go(func() { servers[i], connectErrs[i] = mcp.Connect(ctx, c) })
	}
	wg.Wait()
	closeAll := func() error {
		var errs []error
		for _, s := range servers {
			if s != nil {
				errs = append(errs, s.Close())
			}
		}
		return errors.Join(errs...)
	}
	for i, err := range connectErrs {
		if err != nil {
			keyErrs = append(keyErrs, configs.KeyError{Key: fmt.Sprintf("tools.mcp[%d]", i), Text: err.Error()})
		}
	}
	if len(keyErrs) > 0 {
		return nil, errors.Join(cfg.KeyErrors(keyErrs...), closeAll())
	}
	isTaken := func(name string) bool {
		return configs.IsBuiltinTool(name) || slices.ContainsFunc(cfg.Tools.Host, func(t tools.HostTool) bool { return t.Name == name })
	}
	return &source{
		kind: "mcp", close: closeAll,
		tools: func(AttemptPaths) ([]tools.Tool, error) { return mcp.Tools(isTaken, servers...), nil },
		manifest: func(manifest *runs.Capabilities) {
			for _, s := range servers {
				info := s.Info()
				manifest.MCP = append(manifest.MCP, runs.MCPServer{Name: info.Name, Title: info.Server, Version: info.Version})
			}
		},
	}, nil
}

// serverConfigs returns the configurations of the MCP servers and the errors in their settings.
func serverConfigs(cfg *configs.Resolved) (all []mcp.Config, keyErrs []configs.KeyError) {
	environ := EnvironWithoutKeys(cfg)
	for i, s := range cfg.Tools.MCP {
		addErr := func(key, format string, args ...any) {
			keyErrs = append(keyErrs, configs.KeyError{Key: fmt.Sprintf("tools.mcp[%d].%s", i, key), Text: fmt.Sprintf(format, args...)})
		}
		c := mcp.Config{Name: s.Name, Command: s.Command, URL: s.URL, AllowedTools: s.Tools, Version: version.Long()}
		c.Timeout = cmp.Or(configs.Duration(s.Timeout), configs.Duration(cfg.Tools.Timeout), tools.DefaultTimeout)
		named, err := namedVariables(s.Env)
		if err != nil {
			addErr("env", "%v", err)
		}
		c.Env, c.Secrets = append(named, environ...), secretValues(named)
		if s.TokenEnv != "" {
			c.Token = os.Getenv(s.TokenEnv)
			if c.Token == "" || strings.ContainsAny(c.Token, "\r\n") {
				addErr("token_env", "the environment variable %.80q is not set, or is no token", s.TokenEnv)
			}
		}
		all = append(all, c)
	}
	return all, keyErrs
}
