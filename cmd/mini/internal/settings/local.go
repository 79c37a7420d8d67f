package settings

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/localservers"
)

// AddLocalFlag adds --local.
func AddLocalFlag(f *pflag.FlagSet) {
	f.String("local", "", "use a model `SERVER` on this machine: ollama, vllm, llama.cpp or a URL")
	f.Lookup("local").NoOptDefVal = cmdutil.AnyLocalServer
}

// MergeLocal is Merge with the settings of --local on top: the address of a local server, one
// of its models, and a price of zero.
func (c *Flags) MergeLocal(ctx context.Context, shipped ...string) (*configs.Resolved, error) {
	cfg, err := c.Merge(shipped...)
	if err != nil || c.FlagSet.Lookup("local") == nil || !c.FlagSet.Changed("local") {
		return cfg, err
	}
	if err := c.resolveLocal(ctx, cfg); err != nil {
		return nil, err
	}
	return c.Merge(shipped...)
}

// resolveLocal finds the server and its model and stores them in Overrides. Settings of the
// same command line are kept.
func (c *Flags) resolveLocal(ctx context.Context, cfg *configs.Resolved) error {
	chosen := func(keys ...string) bool {
		for _, key := range keys {
			if o, ok := cfg.Origin(key); ok && c.commandLine[o.Layer] {
				return true
			}
		}
		return false
	}
	switch {
	case chosen("model.model_class") && cfg.Model.Class == "scripted":
		return usage.Errorf("--local asks a server, and the scripted model uses no server; leave one out")
	case cfg.Model.Route.Kind != "":
		o, _ := cfg.Origin("model.route.kind")
		return usage.Errorf("--local is one server, and model.route (%s) has models of its own; leave one out", o)
	}
	named := chosen("model.model_name")
	found, err := c.findLocalServer(ctx, cfg.Model.Name, named)
	if err != nil {
		return err
	}
	m, err := selectLocalModel(found, cfg.Model.Name, named)
	if err != nil {
		return err
	}
	set := [][2]string{{"model.base_url", strconv.Quote(found.BaseURL)}, {"model.model_name", strconv.Quote(m.Name)}}
	if !chosen("model.model_class") {
		set = append(set, [2]string{"model.model_class", "openai"})
	}
	// The key of a -c file belongs to the server of that file.
	if o, ok := cfg.Origin("model.api_key_env"); !ok || !strings.HasPrefix(o.Layer, "-c ") {
		set = append(set, [2]string{"model.api_key_env", found.KeyEnv})
	}
	if !chosen("model.price.input", "model.price.output", "model.price_as", "model.price_file") {
		set = append(set, [2]string{"model.price_as", `""`}, [2]string{"model.price.free", "true"})
		set = append(set, clearPrice(cfg.Model.Price)...)
	}
	if m.ContextWindow > 0 && !chosen("model.context_window") {
		set = append(set, [2]string{"model.context_window", strconv.FormatInt(m.ContextWindow, 10)})
	}
	c.Overrides, err = SettingLayers("--local", set)
	c.localModel = fmt.Sprintf("%s, of %s", text.Printable(m.Name), found.Server)
	return err
}

// clearPrice returns settings that reset the price of the configured model.
func clearPrice(p model.Price) (set [][2]string) {
	keys := []string{"input", "output", "cached", "cache_write", "cache_write_hour"}
	sections := []string{"model.price."}
	if p.Long != nil {
		sections = append(sections, "model.price.long.")
	}
	if !p.IsKnown() {
		return nil
	}
	for _, section := range sections {
		for _, key := range keys {
			set = append(set, [2]string{section + key, "0"})
		}
	}
	return set
}

// PrintLocalModel prints the model and server that --local found.
func (c *Flags) PrintLocalModel(w io.Writer) {
	if c.localModel != "" {
		_, _ = fmt.Fprintln(w, "mini: the model is", c.localModel)
	}
}

// findLocalServer returns the server of --local. Of several servers it selects the one that has
// the model name.
func (c *Flags) findLocalServer(ctx context.Context, name string, named bool) (localservers.ProbeResult, error) {
	value := c.FlagSet.Lookup("local").Value.String()
	if value != cmdutil.AnyLocalServer {
		place, err := localservers.Parse(value)
		if err != nil {
			return localservers.ProbeResult{}, usage.Errorf("--local: %w", err)
		}
		f := localservers.Probe(ctx, place)
		if ctx.Err() != nil {
			return f, context.Cause(ctx)
		}
		if f.Err != nil && (!named || errors.Is(f.Err, localservers.ErrUnreachable)) {
			return f, usage.Errorf("--local: %s: %w", place, f.Err)
		}
		return f, nil
	}
	all := localservers.ProbeAll(ctx, localservers.KnownServers())
	if ctx.Err() != nil {
		return localservers.ProbeResult{}, context.Cause(ctx)
	}
	return selectLocalServer(all, name)
}

// selectLocalServer returns the only server that responds, or the only one that has the model.
func selectLocalServer(all []localservers.ProbeResult, name string) (localservers.ProbeResult, error) {
	var answer []localservers.ProbeResult
	var unreachable, others []string
	for _, f := range all {
		switch {
		case f.Err == nil:
			answer = append(answer, f)
		case errors.Is(f.Err, localservers.ErrUnreachable):
			unreachable = append(unreachable, f.Name)
		default:
			others = append(others, fmt.Sprintf("%s: %v", f.Server, f.Err))
		}
	}
	var names, having []string
	var pick localservers.ProbeResult
	for _, f := range answer {
		names = append(names, f.String())
		if _, ok := f.FindModel(name); ok {
			having, pick = append(having, f.String()), f
		}
	}
	switch {
	case len(answer) == 1:
		return answer[0], nil
	case len(having) == 1:
		return pick, nil
	case len(answer) > 1:
		return pick, usage.Errorf("--local: several servers answer: %s; say which, as --local=%s", strings.Join(names, ", "), strings.ToLower(answer[0].Name))
	case len(others) > 0:
		return pick, usage.Errorf("--local: %s", strings.Join(others, "; "))
	}
	return pick, usage.Errorf("--local: no server answers on this machine (%s, on their usual ports); start one, or say where it is: --local=http://127.0.0.1:PORT", strings.Join(unreachable, ", "))
}

// maxListedModels is the number of models that an error lists.
const maxListedModels = 8

// selectLocalModel returns the model with the name, if it was given or exists, else the only
// model of the server.
func selectLocalModel(f localservers.ProbeResult, name string, named bool) (localservers.Model, error) {
	if m, ok := f.FindModel(name); ok {
		return m, nil
	}
	models := f.TextModels()
	switch {
	case named: // the server may load it on demand
		return localservers.Model{Name: name}, nil
	case len(models) == 1:
		return models[0], nil
	}
	return localservers.Model{}, usage.Errorf("--local: %s has %s; say which with -m: %s", f.Server, text.Count(len(models), "model"), FormatModels(models))
}

// FormatModels lists the names of models, at most maxListedModels.
func FormatModels(models []localservers.Model) string {
	var names []string
	for i, m := range models {
		if i == maxListedModels {
			names = append(names, fmt.Sprintf("and %d more", len(models)-i))
			break
		}
		names = append(names, text.Printable(m.Name))
	}
	return strings.Join(names, ", ")
}
