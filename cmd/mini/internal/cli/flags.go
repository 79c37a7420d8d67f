package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/minibench/mini/configs"
)

// configFlags are the flags that are configuration, for every command that
// runs an agent.
type configFlags struct {
	set              *pflag.FlagSet
	config           []string
	model            string
	modelClass       string
	environmentClass string
	costLimit        float64
	noAutosubmit     bool
}

func (c *configFlags) flags(f *pflag.FlagSet) {
	c.set = f
	f.StringArrayVarP(&c.config, "config", "c", nil, "YAML `FILE` or key.sub=value on top of the defaults; repeatable")
	f.StringVarP(&c.model, "model", "m", "", "`NAME` of the model")
	f.StringVar(&c.modelClass, "model-class", "", "openai, or scripted (replies from -c model.replies=FILE)")
	f.StringVar(&c.environmentClass, "environment-class", "", "docker or local")
	f.Float64VarP(&c.costLimit, "cost-limit", "l", 0, "US `DOLLARS` an attempt may cost; 0 is no limit (default 3)")
	f.BoolVar(&c.noAutosubmit, "no-autosubmit", false, "when a limit ends an attempt, submit nothing instead of the working diff")
}

// resolve merges the shipped defaults, the layers of the command, the user's
// file, -c and the flags, in the order of the design.
func (c *configFlags) resolve(shipped ...string) (*configs.Resolved, error) {
	var layers []configs.Layer
	add := func(l configs.Layer, err error) error {
		layers = append(layers, l)
		return err
	}
	for i, name := range shipped {
		if err := add(configs.Shipped(name)); err != nil {
			return nil, err
		}
		if i > 0 {
			continue
		}
		// The user's file comes right above the defaults; what a command
		// adds to those (the demo's settings) is above it.
		if path := userConfig(); path != "" {
			if err := add(configs.ReadFile(path)); err != nil {
				return nil, err
			}
		}
	}
	for _, arg := range c.config {
		if err := add(configs.Read(arg)); err != nil {
			return nil, err
		}
	}
	for _, f := range []struct{ flag, key, value string }{
		{"model", "model.model_name", strconv.Quote(c.model)},
		{"model-class", "model.model_class", strconv.Quote(c.modelClass)},
		{"environment-class", "environment.environment_class", strconv.Quote(c.environmentClass)},
		{"cost-limit", "agent.cost_limit", fmt.Sprint(c.costLimit)},
		{"no-autosubmit", "agent.autosubmit", strconv.FormatBool(!c.noAutosubmit)},
	} {
		if !c.set.Changed(f.flag) {
			continue
		}
		if err := add(configs.Setting("--"+f.flag, f.key, f.value)); err != nil {
			return nil, err
		}
	}
	return configs.Merge(layers...)
}

// userConfig is the user's own file, where there is one.
func userConfig() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	path := filepath.Join(dir, "mini", "config.yaml")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}
