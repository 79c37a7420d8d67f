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

// hostTools are programs on this machine, including search.
type hostTools struct {
	search *host.Config
	others []host.Config
}

// newHostTools returns the programs on the host, or nil if none are configured. A program that
// cannot be run is a configuration error.
func newHostTools(_ context.Context, cfg *configs.Resolved) (*source, error) {
	if len(cfg.Tools.Search) == 0 && len(cfg.Tools.Host) == 0 {
		return nil, nil //nolint:nilnil // nothing is configured
	}
	plain := EnvironWithoutKeys(cfg)
	h := &hostTools{}
	var wrong []configs.KeyError
	try := func(key, name string, err error) {
		if err != nil {
			wrong = append(wrong, configs.KeyError{Key: key, Text: strings.TrimPrefix(err.Error(), "tool "+name+": ")})
		}
	}
	if len(cfg.Tools.Search) > 0 {
		h.search = &host.Config{Command: cfg.Tools.Search, Env: plain}
		_, err := host.NewSearch(*h.search)
		try("tools.search", host.SearchName, err)
	}
	for i, t := range cfg.Tools.Host {
		item := fmt.Sprintf("tools.host[%d].", i)
		named, err := namedVariables(t.Env)
		try(item+"env", t.Name, err)
		c := host.Config{
			Name: t.Name, Command: t.Command, Usage: t.Usage, Description: t.Description, Env: append(named, plain...),
			Secrets: secretValues(named), Timeout: configs.Duration(t.Timeout), MaxOutput: t.MaxOutput,
		}
		_, err = host.New(c)
		try(item+"command", t.Name, err)
		h.others = append(h.others, c)
	}
	if len(wrong) > 0 {
		return nil, cfg.KeyErrors(wrong...)
	}
	return &source{kind: "host", tools: h.tools}, nil
}

// secretValues returns the values of the variables, given as NAME=value, whose names mark them
// as secret.
func secretValues(variables []string) []string {
	var secrets []string
	for _, kv := range variables {
		if name, value, _ := strings.Cut(kv, "="); local.IsSecret(name) {
			secrets = append(secrets, value)
		}
	}
	return secrets
}

// namedVariables returns variables of this process as NAME=value.
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
		one, err := host.NewSearch(c)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	for _, c := range h.others {
		c.Instance = p.Instance.ID
		one, err := host.New(c)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}
