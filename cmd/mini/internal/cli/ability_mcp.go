package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/agent/tools/mcp"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/runner"
)

// mcpTools are those of MCP servers, which all attempts of this mini share.
type mcpTools struct {
	servers []*mcp.Server
	taken   map[string]bool
}

// newMCPTools connects to the servers of the configuration; nil where there are
// none. What is wrong with one is said before anything runs.
func newMCPTools(ctx context.Context, cfg *configs.Resolved) (ability, error) {
	if len(cfg.Tools.MCP) == 0 {
		return nil, nil //nolint:nilnil // nothing is configured
	}
	all, wrong := serverConfigs(cfg)
	if len(wrong) > 0 {
		return nil, cfg.Mistakes(wrong...)
	}
	m := &mcpTools{servers: make([]*mcp.Server, len(all)), taken: map[string]bool{}}
	for _, t := range cfg.Tools.Host {
		m.taken[t.Name] = true
	}
	var g errgroup.Group
	failed := make([]error, len(all))
	for i, c := range all {
		g.Go(func() error {
			m.servers[i], failed[i] = mcp.Connect(ctx, c)
			return nil
		})
	}
	_ = g.Wait() // each has its own
	for i, err := range failed {
		if err != nil {
			wrong = append(wrong, configs.Wrong{Key: fmt.Sprintf("tools.mcp[%d]", i), Text: err.Error()})
		}
	}
	if len(wrong) > 0 {
		return nil, errors.Join(cfg.Mistakes(wrong...), m.Close())
	}
	return m, nil
}

// serverConfigs reads what the configuration says of servers.
func serverConfigs(cfg *configs.Resolved) (all []mcp.Config, wrong []configs.Wrong) {
	plain := withoutKeys(cfg)
	for i, s := range cfg.Tools.MCP {
		bad := func(key, format string, args ...any) {
			wrong = append(wrong, configs.Wrong{Key: fmt.Sprintf("tools.mcp[%d].%s", i, key), Text: fmt.Sprintf(format, args...)})
		}
		c := mcp.Config{Name: s.Name, Command: s.Command, URL: s.URL, Offer: s.Tools, Version: version()}
		c.Timeout = cmp.Or(duration(s.Timeout), duration(cfg.Tools.Timeout), tools.DefaultTimeout)
		named, err := namedVariables(s.Env)
		if err != nil {
			bad("env", "%v", err)
		}
		c.Env, c.Secrets = append(named, plain...), secretsIn(named)
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

// tools implements ability.
func (m *mcpTools) tools(toolPlace) ([]tools.Tool, error) {
	return mcp.Tools(func(name string) bool { return configs.OwnTool(name) || m.taken[name] }, m.servers...), nil
}

// Close ends the connections.
func (m *mcpTools) Close() error {
	var errs []error
	for _, s := range m.servers {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// manifest says of each server what it said of itself.
func (m *mcpTools) manifest(all *runner.Abilities) {
	for _, s := range m.servers {
		i := s.Info()
		all.MCP = append(all.MCP, runner.Server{Name: i.Name, Title: i.Server, Version: i.Version})
	}
}
