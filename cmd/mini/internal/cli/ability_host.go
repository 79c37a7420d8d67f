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
	"github.com/minibench/mini/env/local"
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
	try := func(key, name string, err error) {
		if err != nil {
			wrong = append(wrong, configs.Wrong{Key: key, Text: strings.TrimPrefix(err.Error(), "tool "+name+": ")})
		}
	}
	if len(cfg.Tools.Search) > 0 {
		h.search = &host.Config{Command: cfg.Tools.Search, Env: plain}
		_, err := host.Search(*h.search)
		try("tools.search", host.SearchName, err)
	}
	for i, t := range cfg.Tools.Host {
		item := fmt.Sprintf("tools.host[%d].", i)
		named, err := namedVariables(t.Env)
		try(item+"env", t.Name, err)
		c := host.Config{
			Name: t.Name, Command: t.Command, Usage: t.Usage, About: t.About, Env: append(named, plain...),
			Secrets: secretsIn(named), Timeout: duration(t.Timeout), MaxOutput: t.MaxOutput,
		}
		_, err = host.New(c)
		try(item+"command", t.Name, err)
		h.others = append(h.others, c)
	}
	if len(wrong) > 0 {
		return nil, cfg.Mistakes(wrong...)
	}
	return h, nil
}

// secretsIn are the values of those variables, as NAME=value, that are secrets by
// their name.
func secretsIn(variables []string) []string {
	var secrets []string
	for _, kv := range variables {
		if name, value, _ := strings.Cut(kv, "="); local.Secret(name) {
			secrets = append(secrets, value)
		}
	}
	return secrets
}

// namedVariables are variables of this process that the configuration names, as
// NAME=value.
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
