// Package app has what the commands of one process of mini share.
package app

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/cmd/mini/internal/ui"
	"github.com/minibench/mini/cmd/mini/internal/ui/progress"
	"github.com/minibench/mini/configs"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/doc"
	"github.com/minibench/mini/runner/report"
)

// App is made once, by package cli, and passed to each command. The folder and the environment are those
// of the process: the packages of configurations, datasets and images read them, too.
type App struct {
	cmdutil.Streams
	// Kill ends at the second interrupt. Sandboxes end with it.
	Kill context.Context //nolint:containedctx // the context of the process

	// LoadDotenv reads the .env files when a command first needs them. Later calls return the same
	// error.
	LoadDotenv func() error
}

// New returns the App of a process.
func New(kill context.Context, s cmdutil.Streams) *App {
	return &App{Streams: s, Kill: kill, LoadDotenv: sync.OnceValue(configs.LoadDotenv)}
}

// Config returns the configuration that flags select, based on the named built-in configurations; see
// settings.Flags.Resolve.
func (a *App) Config(ctx context.Context, flags *settings.Flags, builtins ...string) (*configs.Resolved, error) {
	if err := a.LoadDotenv(); err != nil { // it may set variables that Resolve rejects
		return nil, err
	}
	return flags.Resolve(ctx, builtins...)
}

// ConfigWithoutModel is like Config, for commands that start no model: it does not check the model's name
// and key, and finds a server for --local only if the flag is set.
func (a *App) ConfigWithoutModel(ctx context.Context, flags *settings.Flags, builtins ...string) (*configs.Resolved, error) {
	if err := a.LoadDotenv(); err != nil {
		return nil, err
	}
	return flags.Merge(ctx, builtins...)
}

// Print writes a text for people to stdout, in lines of the terminal's width.
func (a *App) Print(d *doc.Doc) error { return d.WriteText(a.Out, ui.Width(a.Out)) }

// PrintNames is like Print for tables of names to copy: without a terminal it cuts none.
func (a *App) PrintNames(d *doc.Doc) error { return d.WriteText(a.Out, ui.TableWidth(a.Out)) }

// PrintResult prints a value as a line of JSON if asJSON is set, else its text for people.
func (a *App) PrintResult(asJSON bool, value any, d *doc.Doc) error {
	if asJSON {
		return json.NewEncoder(a.Out).Encode(value)
	}
	return a.PrintNames(d)
}

// Sandboxes opens the sandboxes of a configuration. They end with a.Kill. Notes are printed to stderr,
// unless o has another writer, and events are printed there, too, unless o has an observer.
func (a *App) Sandboxes(ctx context.Context, cfg *configs.Resolved, o envopen.Options) (*envopen.Sandboxes, error) {
	if o.Notes == nil {
		o.Notes = a.Err
	}
	if o.Observer.Starting == nil {
		o.Observer = progress.NewObserver(report.NewPlainPrinter(o.Notes, nil).Event)
	}
	return envopen.New(ctx, a.Kill, cfg, o)
}
