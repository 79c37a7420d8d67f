package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/minibench/mini/cmd/mini/internal/servers"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/report"
)

// anyServer is --local without a value: whichever server answers.
const anyServer = "any"

// localFlag is for commands that run an agent.
func localFlag(f *pflag.FlagSet) {
	f.String("local", "", "use a model `SERVER` on this machine: ollama, vllm, llama.cpp or a URL")
	f.Lookup("local").NoOptDefVal = anyServer
}

// strayLocal knows who wrote a space in --local=SERVER; "" for all others.
func strayLocal(f *pflag.FlagSet, args []string) string {
	if l := f.Lookup("local"); l == nil || len(args) == 0 || !l.Changed || l.Value.String() != anyServer {
		return ""
	}
	if _, err := servers.Parse(args[0]); err != nil {
		return ""
	}
	return "--local=" + args[0]
}

// mergeLocal is merge, with what --local stands for on top: the address of a
// server of this machine, a model that it has, and that it costs nothing.
func (c *configFlags) mergeLocal(ctx context.Context, shipped ...string) (*configs.Resolved, error) {
	cfg, err := c.merge(shipped...)
	if err != nil || c.set.Lookup("local") == nil || !c.set.Changed("local") {
		return cfg, err
	}
	if err := c.askLocal(ctx, cfg); err != nil {
		return nil, err
	}
	return c.merge(shipped...)
}

// askLocal finds the server and its model, and keeps them as the highest layers.
// What was set by the same command line stays.
func (c *configFlags) askLocal(ctx context.Context, cfg *configs.Resolved) error {
	chosen := func(keys ...string) bool {
		for _, key := range keys {
			if o, ok := cfg.Origin(key); ok && c.typed[o.Layer] {
				return true
			}
		}
		return false
	}
	switch {
	case chosen("model.model_class") && cfg.Model.Class == "scripted":
		return usagef("--local asks a server, and the scripted model asks nobody; leave one out")
	case cfg.Model.Route.Kind != "":
		o, _ := cfg.Origin("model.route.kind")
		return usagef("--local is one server, and model.route (%s) has models of its own; leave one out", o)
	}
	named := chosen("model.model_name")
	found, err := c.findLocal(ctx, cfg.Model.Name, named)
	if err != nil {
		return err
	}
	m, err := localModel(found, cfg.Model.Name, named)
	if err != nil {
		return err
	}
	set := [][2]string{{"model.base_url", strconv.Quote(found.BaseURL)}, {"model.model_name", strconv.Quote(m.Name)}}
	if !chosen("model.model_class") {
		set = append(set, [2]string{"model.model_class", "openai"})
	}
	// A key that a file names is for the server of that file.
	if o, ok := cfg.Origin("model.api_key_env"); !ok || !strings.HasPrefix(o.Layer, "-c ") {
		set = append(set, [2]string{"model.api_key_env", found.KeyEnv})
	}
	if !chosen("model.price.input", "model.price.output", "model.price_as", "model.price_file") {
		set = append(set, [2]string{"model.price_as", `""`}, [2]string{"model.price.free", "true"})
		set = append(set, unpriced(cfg.Model.Price)...)
	}
	if m.Window > 0 && !chosen("model.context_window") {
		set = append(set, [2]string{"model.context_window", strconv.FormatInt(m.Window, 10)})
	}
	c.local = nil
	for _, s := range set {
		l, err := configs.Setting("--local", s[0], s[1])
		if err != nil {
			return err
		}
		c.local = append(c.local, l)
	}
	c.server = fmt.Sprintf("%s, of %s", report.Printable(m.Name), found.Place)
	return nil
}

// unpriced takes back the price of another model.
func unpriced(p model.Price) (set [][2]string) {
	keys := []string{"input", "output", "cached", "cache_write", "cache_write_hour"}
	sections := []string{"model.price."}
	if p.Long != nil {
		sections = append(sections, "model.price.long.")
	}
	if !p.Known() {
		return nil
	}
	for _, section := range sections {
		for _, key := range keys {
			set = append(set, [2]string{section + key, "0"})
		}
	}
	return set
}

// sayLocal says whom --local has found.
func (c *configFlags) sayLocal(w io.Writer) error {
	if c.server == "" {
		return nil
	}
	_, err := fmt.Fprintln(w, "mini: the model is", c.server)
	return err
}

// findLocal is the server that --local means. Several are told apart by the name
// of a model.
func (c *configFlags) findLocal(ctx context.Context, name string, named bool) (servers.Found, error) {
	value := c.set.Lookup("local").Value.String()
	if value != anyServer {
		place, err := servers.Parse(value)
		if err != nil {
			return servers.Found{}, usagef("--local: %w", err)
		}
		f := servers.Ask(ctx, place)
		if ctx.Err() != nil {
			return f, context.Cause(ctx)
		}
		if f.Err != nil && (!named || errors.Is(f.Err, servers.ErrNobody)) {
			return f, usagef("--local: %s: %w", place, f.Err)
		}
		return f, nil
	}
	all := servers.Find(ctx, servers.Known())
	if ctx.Err() != nil {
		return servers.Found{}, context.Cause(ctx)
	}
	return pickLocal(all, name)
}

// pickLocal is the one that answers, or the one of several that has the model.
func pickLocal(all []servers.Found, name string) (servers.Found, error) {
	var answer []servers.Found
	var nobody, others []string
	for _, f := range all {
		switch {
		case f.Err == nil:
			answer = append(answer, f)
		case errors.Is(f.Err, servers.ErrNobody):
			nobody = append(nobody, f.Name)
		default:
			others = append(others, fmt.Sprintf("%s: %v", f.Place, f.Err))
		}
	}
	var names, having []string
	var pick servers.Found
	for _, f := range answer {
		names = append(names, f.String())
		if _, ok := f.Named(name); ok {
			having, pick = append(having, f.String()), f
		}
	}
	switch {
	case len(answer) == 1:
		return answer[0], nil
	case len(having) == 1:
		return pick, nil
	case len(answer) > 1:
		return pick, usagef("--local: several servers answer: %s; say which, as --local=%s", strings.Join(names, ", "), strings.ToLower(answer[0].Name))
	case len(others) > 0:
		return pick, usagef("--local: %s", strings.Join(others, "; "))
	}
	return pick, usagef("--local: no server answers on this machine (%s, on their usual ports); start one, or say where it is: --local=http://127.0.0.1:PORT", strings.Join(nobody, ", "))
}

// fewModels is how many names an error lists.
const fewModels = 8

// localModel is the model that is asked: the one with the name, if that was named
// or is there, else the only one there is.
func localModel(f servers.Found, name string, named bool) (servers.Model, error) {
	if m, ok := f.Named(name); ok {
		return m, nil
	}
	models := f.Talking()
	switch {
	case named: // the server knows best; it may load it
		return servers.Model{Name: name}, nil
	case len(models) == 1:
		return models[0], nil
	}
	return servers.Model{}, usagef("--local: %s has %s; say which with -m: %s", f.Place, report.Count(len(models), "model"), modelList(models))
}

func modelList(models []servers.Model) string {
	var names []string
	for i, m := range models {
		if i == fewModels {
			names = append(names, fmt.Sprintf("and %d more", len(models)-i))
			break
		}
		names = append(names, report.Printable(m.Name))
	}
	return strings.Join(names, ", ")
}
