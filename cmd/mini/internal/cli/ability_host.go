package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/agent/tools/host"
	"github.com/minibench/mini/configs"
)

// hostTools are programs on this machine, search among them.
type hostTools struct {
	search *host.Config
	others []host.Config
}

// newHostTools makes programs on the host, search among them; nil where they are
// off. What cannot be run is a mistake of the configuration.
func newHostTools(_ context.Context, cfg *configs.Resolved) (ability, error) {
	if len(cfg.Tools.Search) == 0 && len(cfg.Tools.Host) == 0 {
		return nil, nil //nolint:nilnil // nothing is configured
	}
	plain := withoutKeys(cfg)
	h := &hostTools{}
	var wrong []configs.Wrong
	try := func(key string, err error) {
		if err != nil {
			wrong = append(wrong, configs.Wrong{Key: key, Text: err.Error()})
		}
	}
	if len(cfg.Tools.Search) > 0 {
		h.search = &host.Config{Command: cfg.Tools.Search, Env: plain}
		_, err := host.Search(*h.search)
		try("tools.search", err)
	}
	seen := map[string]bool{}
	for _, t := range cfg.Tools.Host {
		named, err := namedVariables(t.Env)
		try("tools.host", about(t.Name, err))
		c := host.Config{
			Name: t.Name, Command: t.Command, Usage: t.Usage, About: t.About, Env: append(named, plain...),
			Timeout: duration(t.Timeout), MaxOutput: t.MaxOutput,
		}
		_, err = host.New(c)
		try("tools.host", err)
		switch {
		case err != nil:
		case t.Timeout < 0 || t.MaxOutput < 0:
			try("tools.host", fmt.Errorf("tool %s: timeout and max_output are not less than 0", t.Name))
		case seen[t.Name]:
			try("tools.host", fmt.Errorf("two tools are called %q", t.Name))
		case ownNames[t.Name] || t.Name == host.SearchName:
			try("tools.host", fmt.Errorf("%q is the name of a tool of mini's own: take another one", t.Name))
		}
		seen[t.Name] = true
		h.others = append(h.others, c)
	}
	if len(wrong) > 0 {
		return nil, cfg.Mistakes(wrong...)
	}
	return h, nil
}

// ownNames are those of the tools that mini itself has.
var ownNames = map[string]bool{
	"read": true, "write": true, "edit": true, "skill": true, "note": true, "notes": true, "goal": true, "recall": true,
	"delegate": true, "chain": true, "board": true, host.SearchName: true, tools.Help: true,
}

// about says which tool an error is about.
func about(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%.60q: %w", name, err)
}

// namedVariables are variables of this process that the configuration names, as
// NAME=value.
func namedVariables(names []string) ([]string, error) {
	var list []string
	var missing []error
	for _, name := range names {
		value, ok := os.LookupEnv(name)
		if !ok || name == "" || strings.Contains(name, "=") {
			missing = append(missing, fmt.Errorf("the environment variable %.80q is not set", name))
			continue
		}
		list = append(list, name+"="+value)
	}
	return list, errors.Join(missing...)
}

// tools implements ability.
func (h *hostTools) tools(p toolPlace) ([]tools.Tool, error) {
	var list []tools.Tool
	if h.search != nil {
		c := *h.search
		c.Instance = p.in.ID
		one, err := host.Search(c)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	for _, c := range h.others {
		c.Instance = p.in.ID
		one, err := host.New(c)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// Close implements ability.
func (*hostTools) Close() error { return nil }
