package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/agent/tools/mcp"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env/local"
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
	for i, c := range all {
		g.Go(func() (err error) {
			m.servers[i], err = mcp.Connect(ctx, c)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, errors.Join(cfg.Mistakes(configs.Wrong{Key: "tools.mcp", Text: err.Error()}), m.Close())
	}
	return m, nil
}

// serverConfigs reads what the configuration says of servers.
func serverConfigs(cfg *configs.Resolved) (all []mcp.Config, wrong []configs.Wrong) {
	plain := withoutKeys(cfg)
	seen := map[string]bool{}
	for _, s := range cfg.Tools.MCP {
		bad := func(format string, args ...any) {
			wrong = append(wrong, configs.Wrong{Key: "tools.mcp", Text: fmt.Sprintf("%.60q: ", s.Name) + fmt.Sprintf(format, args...)})
		}
		if tools.CheckName(s.Name) != nil {
			bad("a server's name has letters, digits, - and _")
		}
		if seen[s.Name] {
			bad("two servers have this name")
		}
		seen[s.Name] = true
		switch {
		case len(s.Command) > 0 == (s.URL != ""):
			bad("it takes either a command or a url")
		case s.URL == "" && s.TokenEnv != "":
			bad("token_env goes with a url; a command gets its variables by env")
		case hasPassword(s.URL):
			bad("its url has a name or a password in it, which would stand in the files of a run: name a variable with token_env")
		case s.Timeout < 0:
			bad("timeout is not less than 0")
		}
		c := mcp.Config{Name: s.Name, Command: s.Command, URL: s.URL, Offer: s.Tools, Timeout: duration(s.Timeout), Version: version()}
		named, err := namedVariables(s.Env)
		if err != nil {
			bad("%v", err)
		}
		c.Env = append(named, plain...)
		for _, kv := range named {
			if name, value, _ := strings.Cut(kv, "="); local.Secret(name) {
				c.Secrets = append(c.Secrets, value)
			}
		}
		if s.TokenEnv != "" {
			c.Token = os.Getenv(s.TokenEnv)
			if c.Token == "" || strings.ContainsAny(c.Token, "\r\n") {
				bad("the environment variable %.80q is not set, or is no token", s.TokenEnv)
			}
		}
		all = append(all, c)
	}
	return all, wrong
}

// hasPassword says that a URL names a user.
func hasPassword(text string) bool {
	at, err := url.Parse(text)
	return err == nil && at.User != nil
}

// tools implements ability.
func (m *mcpTools) tools(toolPlace) ([]tools.Tool, error) {
	return mcp.Tools(func(name string) bool { return ownNames[name] || m.taken[name] }, m.servers...), nil
}

// Close implements ability.
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
