package report

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/cmd/mini/internal/web"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/atomicfile"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner/compare"
)

// htmlOptions holds the flags of commands that write runs into an HTML file.
type htmlOptions struct {
	file  string
	steps string
}

func (o *htmlOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.file, "html", "", "write the pages of mini view into `FILE`; -: stdout")
	f.StringVar(&o.steps, "html-steps", "", "attempts in the file with all steps: "+stepWords()+" (default: up to 20 MB)")
}

// stepWords lists the values of --html-steps.
func stepWords() string {
	var words []string
	for _, c := range web.StepChoices {
		words = append(words, string(c))
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// check validates the flags before a run is read.
func (o *htmlOptions) check() error {
	if o.steps != "" && !slices.Contains(web.StepChoices, web.StepChoice(o.steps)) {
		return usage.Errorf("--html-steps %.40q: it is %s", o.steps, stepWords())
	}
	if o.steps != "" && o.file == "" {
		return usage.Errorf("--html-steps is for --html FILE, which is not given")
	}
	if o.file == "" || o.file == "-" {
		return nil
	}
	if info, err := os.Stat(o.file); err == nil && !info.Mode().IsRegular() {
		return usage.Errorf("--html %s: that is not a file; give the name of a new one, such as report.html", o.file)
	}
	if info, err := os.Stat(filepath.Dir(o.file)); err != nil || !info.IsDir() {
		return usage.Errorf("--html %s: there is no folder %s", o.file, filepath.Dir(o.file))
	}
	if run, _, ok := cmdutil.FindRunAbove(o.file); ok {
		return usage.Errorf("--html %s: that is in the folder of the run %s, which mini only reads; choose another folder", o.file, run)
	}
	return nil
}

// write writes the pages of runs.
func (o *htmlOptions) write(ctx context.Context, a *app.App, dirs []string, base int, missing compare.MissingRule) error {
	// The settings name the variables that hold keys.
	cfg, err := a.ConfigWithoutModel(ctx, &settings.Flags{FlagSet: pflag.NewFlagSet("", pflag.ContinueOnError)}, "mini")
	if err != nil {
		return usage.Errorf("read the settings, to remove keys from the pages: %w", err)
	}
	viewer, err := web.Open(dirs, web.Options{Rows: cachedRows(ctx), Redact: envopen.Redact(cfg)})
	if err != nil {
		return usage.Wrap(err)
	}
	var held web.Held
	size := &countingWriter{}
	write := func(w io.Writer) error {
		size.w = w
		held, err = viewer.WriteFile(ctx, size, web.FileOptions{Base: base, Missing: missing, Steps: web.StepChoice(o.steps)})
		return err
	}
	if o.file == "-" {
		return write(a.Out)
	}
	if err := atomicfile.WriteFunc(o.file, 0o644, write); err != nil {
		return fmt.Errorf("write %s: %w", o.file, err)
	}
	_, _ = fmt.Fprintf(a.Err, "mini: %s: %s, steps of %d of %s, %s; it holds prompts, outputs and paths of the runs\n",
		text.Printable(o.file), text.Count(held.Runs, "run"), held.Attempts, text.Count(held.Of, "attempt"),
		unit.Size(size.n)) // best effort
	return nil
}

// countingWriter counts the bytes that pass.
type countingWriter struct {
	w io.Writer
	n int64
}

// Write implements io.Writer.
func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
