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

	"github.com/minibench/mini/agent/tools/mcp"
	"github.com/minibench/mini/internal/version"
	"github.com/minibench/mini/runner/runs"

	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/agent/tools/host"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env/local"
)

// newHostTools returns the tools that run programs on this machine, or nil if none are
// configured. The error lists the programs that cannot be run and the environment
// variables that are not set.
func newHostTools(_ context.Context, cfg *configs.Resolved) (*source, error) {
	if len(cfg.Tools.Search) == 0 && len(cfg.Tools.Host) == 0 {
		return nil, nil //nolint:nilnil // nothing is configured
	}
	environ := EnvironWithoutKeys(cfg)
	var makers []func(instance string) (tools.Tool, error)
	var keyErrs []configs.KeyError
	addErr := func(key, name string, err error) {
		if err != nil {
			keyErrs = append(keyErrs, configs.KeyError{Key: key, Text: strings.TrimPrefix(err.Error(), "tool "+name+": ")})
		}
	}
	if len(cfg.Tools.Search) > 0 {
		newSearch := func(instance string) (tools.Tool, error) {
			return host.NewSearch(host.Config{Command: cfg.Tools.Search, Env: environ, Instance: instance})
		}
		_, err := newSearch("")
		addErr("tools.search", host.SearchName, err)
		makers = append(makers, newSearch)
	}
	for i, t := range cfg.Tools.Host {
		item := fmt.Sprintf("tools.host[%d].", i)
		named, err := namedVariables(t.Env)
		addErr(item+"env", t.Name, err)
		newTool := func(instance string) (tools.Tool, error) {
			return host.New(host.Config{
				Name: t.Name, Command: t.Command, Usage: t.Usage, Description: t.Description, Env: append(slices.Clip(named), environ...),
				Secrets: secretValues(named), Timeout: configs.Duration(t.Timeout), MaxOutput: t.MaxOutput, Instance: instance,
			})
		}
		_, err = newTool("")
		addErr(item+"command", t.Name, err)
		makers = append(makers, newTool)
	}
	if len(keyErrs) > 0 {
		return nil, cfg.KeyErrors(keyErrs...)
	}
	return &source{kind: "host", tools: func(p AttemptPaths) (list []tools.Tool, err error) {
		for _, newTool := range makers {
			tool, err := newTool(p.Instance.ID)
			if err != nil {
				return nil, err
			}
			list = append(list, tool)
		}
		return list, nil
	}}, nil
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
