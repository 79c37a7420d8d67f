//go:build linux

// Command mini-bench measures the overhead of a sandbox. In one run it compares a step
// of mini with docker's own ways to run a command in a container, and with the shell
// itself in the same container, which is the baseline. Figures of one run can be
// compared with each other; figures of different runs cannot, unless the machine is
// otherwise idle.
//
//	mini-bench -mini bin/mini -image mini-base:latest [step ask batch life flood many attempt scrub]
//
// Each figure with a limit is printed as ok or EXCEEDED; the exit code is 1 if any is
// exceeded.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"
)

// bench holds the settings and the output of all parts.
type bench struct {
	mini  string // path of mini
	image string
	// repository is the directory that scripts/big-repository.sh fills. It is kept for
	// later runs. Empty means a temporary directory.
	repository string
	tmp        string // temporary directory of this run
	table
}

// part is a group of measurements that can be run separately.
type part struct {
	name string
	run  func(*bench, context.Context) error
}

// parts are all parts in the order of execution.
var parts = []part{
	{"step", (*bench).step},
	{"ask", (*bench).toolCall},
	{"batch", (*bench).batch},
	{"life", (*bench).lifecycle},
	{"flood", (*bench).flood},
	{"many", (*bench).idleContainers},
	{"attempt", (*bench).attempt},
	{"scrub", (*bench).scrub},
}

func main() {
	if len(os.Args) > 3 && os.Args[1] == baselineCommand {
		n, err := strconv.Atoi(os.Args[2])
		if err == nil {
			err = runBaseline(n, os.Args[3:])
		}
		exitOn(err)
		return
	}
	b := &bench{}
	flag.StringVar(&b.mini, "mini", "bin/mini", "the program to measure")
	flag.StringVar(&b.image, "image", "mini-base:latest", "an image with bash")
	flag.StringVar(&b.repository, "repository", "", "directory of a repository whose copies are scrubbed; created if missing, and kept for later runs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := b.runParts(ctx, flag.Args())
	exitOn(err)
	if b.exceeded {
		os.Exit(1)
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "mini-bench:", err)
		os.Exit(2)
	}
}

// runParts runs the parts with these names, or all parts if names is empty.
func (b *bench) runParts(ctx context.Context, names []string) (err error) {
	for _, name := range names {
		if !slices.ContainsFunc(parts, func(p part) bool { return p.name == name }) {
			return fmt.Errorf("unknown part %q", name)
		}
	}
	if b.tmp, err = os.MkdirTemp("", "mini-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.tmp)) }()
	for _, p := range parts {
		if len(names) > 0 && !slices.Contains(names, p.name) {
			continue
		}
		if err := p.run(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// table prints figures and compares them with limits.
type table struct{ exceeded bool }

func (t *table) title(format string, args ...any) { fmt.Printf("== "+format+"\n", args...) }

// row prints a figure without a limit.
func (t *table) row(name string, figure float64, unit string, notes ...string) {
	fmt.Printf("%-58s %10.2f %-6s %s\n", name, figure, unit, strings.Join(notes, " "))
}

// atMost prints a figure that must be at most limit.
func (t *table) atMost(name string, figure, limit float64, unit string) {
	t.check(name, figure, limit, unit, "at most", figure <= limit)
}

// atLeast prints a figure that must be at least limit.
func (t *table) atLeast(name string, figure, limit float64, unit string) {
	t.check(name, figure, limit, unit, "at least", figure >= limit)
}

// check prints a figure with its limit, and records whether it exceeds the limit.
func (t *table) check(name string, figure, limit float64, unit, comparison string, ok bool) {
	verdict := "ok"
	if !ok {
		verdict, t.exceeded = "EXCEEDED", true
	}
	fmt.Printf("%-58s %10.2f %-6s limit: %s %g, %s\n", name, figure, unit, comparison, limit, verdict)
}

// median returns the median of figures, which need not be sorted: of an even number, the
// upper of the two in the middle; 0 if there are none.
func median(figures []float64) float64 {
	if len(figures) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(figures))
	return s[len(s)/2]
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }
