package settings

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
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

// resolveLocal finds the server and its model and stores their settings in TopLayers. Of settings
// on the command line, it overrides only the address of the server and, unless -c KEY=VALUE sets
// it, the key variable; it may also append ":latest" to the name of the model. value is that of
// --local; messages begin with label.
func (c *Flags) resolveLocal(ctx context.Context, overlay *configs.Overlay, value, label string) error {
	isOnCommandLine := func(keys ...string) bool {
		for _, key := range keys {
			if origin, ok := overlay.Origin(key); ok && c.isCommandLine(origin.Layer) {
				return true
			}
		}
		return false
	}
	switch {
	case isOnCommandLine("model.model_class") && overlay.Value("model.model_class") == "scripted":
		return usage.Errorf("--local asks a server, and the scripted model uses no server; leave one out")
	case overlay.Value("model.route.kind") != "":
		origin, _ := overlay.Origin("model.route.kind")
		return usage.Errorf("--local is one server, and model.route (%s) has models of its own; leave one out", origin)
	}
	var price model.Price
	if err := overlay.Decode("model.price", &price); err != nil {
		return err
	}
	name, isNamed := overlay.Value("model.model_name"), isOnCommandLine("model.model_name") || c.impliedLocal != ""
	server, err := findLocalServer(ctx, value, label, name, isNamed)
	if err != nil {
		return err
	}
	selected, isListed := server.FindModel(name)
	if !isListed {
		switch models := server.TextModels(); {
		case isNamed: // the server may load the model on demand
			selected = localservers.Model{Name: name}
		case len(models) == 1:
			selected = models[0]
		default:
			return usage.Errorf("--local: %s has %s; say which with -m: %s", server.Server, text.Count(len(models), "model"), FormatModels(models))
		}
	}
	settings := [][2]string{{"model.base_url", strconv.Quote(server.BaseURL)}, {"model.model_name", strconv.Quote(selected.Name)}}
	if !isOnCommandLine("model.model_class") {
		settings = append(settings, [2]string{"model.model_class", "openai"})
	}
	// Keep only a variable that -c KEY=VALUE sets: that of a file is for the server in the file.
	if origin, ok := overlay.Origin("model.api_key_env"); !ok || !strings.HasPrefix(origin.Layer, "-c ") {
		settings = append(settings, [2]string{"model.api_key_env", server.KeyEnv})
	}
	if !isOnCommandLine("model.price.input", "model.price.output", "model.price_as", "model.price_file") {
		settings = append(settings, [2]string{"model.price_as", `""`}, [2]string{"model.price.free", "true"})
		settings = append(settings, clearPrice(price)...)
	}
	if selected.ContextWindow > 0 && !isOnCommandLine("model.context_window") {
		settings = append(settings, [2]string{"model.context_window", strconv.FormatInt(selected.ContextWindow, 10)})
	}
	c.TopLayers, err = SettingLayers("--local", settings)
	c.localModel = fmt.Sprintf("%s, of %s", text.Printable(selected.Name), server.Server)
	return err
}

// clearPrice returns settings that reset the price p to zero. It returns nil for an unknown price.
func clearPrice(p model.Price) (settings [][2]string) {
	if !p.IsKnown() {
		return nil
	}
	for _, key := range []string{"input", "output", "cached", "cache_write", "cache_write_hour"} {
		settings = append(settings, [2]string{"model.price." + key, "0"})
		if p.Long != nil {
			settings = append(settings, [2]string{"model.price.long." + key, "0"})
		}
	}
	return settings
}

// PrintNotes prints the model and server that --local found, which configurations of mini the names
// of mini-swe-agent's stand for, and the variables of mini-swe-agent without an effect.
func (c *Flags) PrintNotes(w io.Writer, cfg *configs.Resolved) {
	for _, note := range slices.Concat(compatNotes(), cfg.Notes()) {
		_, _ = fmt.Fprintln(w, "mini: note:", text.Printable(note))
	}
	if prefix, ok := peerClass(c.FlagSet); ok {
		class, chosen := c.FlagSet.Lookup("model-class").Value.String(), "the name of the model chooses the class"
		if prefix != "" {
			chosen = "the model is " + prefix + text.Printable(c.FlagSet.Lookup("model").Value.String())
		}
		_, _ = fmt.Fprintf(w, "mini: --model-class %s: %s\n", class, chosen)
	}
	for _, arg := range c.Config {
		if note := configs.PeerConfigNote(arg, ConfigDirs()...); note != "" {
			_, _ = fmt.Fprintln(w, "mini:", note)
		}
	}
	if c.localModel != "" {
		_, _ = fmt.Fprintln(w, "mini: the model is", c.localModel)
	}
}

// findLocalServer returns the server that value of --local names. If it names none, it probes the
// known servers, and of several that respond it selects the one with the model name. isNamed means
// that the user names the model; a named server then need not list its models. Errors about value
// begin with label.
func findLocalServer(ctx context.Context, value, label, name string, isNamed bool) (localservers.ProbeResult, error) {
	if value != cmdutil.AnyLocalServer {
		server, err := localservers.Parse(value)
		if err != nil {
			return localservers.ProbeResult{}, usage.Errorf("%s: %w", label, err)
		}
		result := localservers.Probe(ctx, server)
		if ctx.Err() != nil {
			return result, context.Cause(ctx)
		}
		if result.Err != nil && (!isNamed || errors.Is(result.Err, localservers.ErrUnreachable)) {
			return result, usage.Errorf("%s: %s: %w", label, server, result.Err)
		}
		return result, nil
	}
	results := localservers.ProbeAll(ctx, localservers.KnownServers())
	if ctx.Err() != nil {
		return localservers.ProbeResult{}, context.Cause(ctx)
	}
	return selectLocalServer(results, name)
}

// selectLocalServer returns the only server that responds, or of several the only one that has the
// model.
func selectLocalServer(results []localservers.ProbeResult, name string) (localservers.ProbeResult, error) {
	var responding []localservers.ProbeResult
	var unreachable, failures []string
	for _, f := range results {
		switch {
		case f.Err == nil:
			responding = append(responding, f)
		case errors.Is(f.Err, localservers.ErrUnreachable):
			unreachable = append(unreachable, f.Name)
		default:
			failures = append(failures, fmt.Sprintf("%s: %v", f.Server, f.Err))
		}
	}
	var names, matches []string
	var match localservers.ProbeResult
	for _, f := range responding {
		names = append(names, f.String())
		if _, ok := f.FindModel(name); ok {
			matches, match = append(matches, f.String()), f
		}
	}
	switch {
	case len(responding) == 1:
		return responding[0], nil
	case len(matches) == 1:
		return match, nil
	case len(responding) > 1:
		return match, usage.Errorf("--local: several servers answer: %s; say which, as --local=%s", strings.Join(names, ", "), strings.ToLower(responding[0].Name))
	case len(failures) > 0:
		return match, usage.Errorf("--local: %s", strings.Join(failures, "; "))
	}
	return match, usage.Errorf("--local: no server answers on this machine (%s, on their usual ports); start one, or say where it is: --local=http://127.0.0.1:PORT", strings.Join(unreachable, ", "))
}

// maxListedModels is the maximum number of models that FormatModels lists.
const maxListedModels = 8

// FormatModels lists the names of at most maxListedModels models, and the number of the others.
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
