//go:build linux

// Command mini-bench measures what a sandbox costs, in one run and side by
// side: a step of mini, of docker's own ways to run a command in a container,
// and of the shell itself in the same container, which is the floor. Figures
// of one run can be compared; those of two runs, on a machine that has other
// work, cannot.
//
//	mini-bench -mini bin/mini -image mini-base:latest [step ask batch life flood many scrub]
//
// Each bar is printed as held or missed; the exit code is 1 when one is missed.
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
)

// bench is what the parts have in common.
type bench struct {
	mini  string // the program
	image string
	// repository is a folder of scripts/big-repository.sh, which stays; empty for one
	// that goes.
	repository string
	tmp        string // a folder that goes with the run
	table
}

// part is something that can be measured by itself.
type part struct {
	name string
	run  func(*bench, context.Context) error
}

// parts are in the order in which they are measured.
var parts = []part{
	{"step", (*bench).step},
	{"ask", (*bench).ask},
	{"batch", (*bench).batch},
	{"life", (*bench).life},
	{"flood", (*bench).flood},
	{"many", (*bench).many},
	{"scrub", (*bench).scrub},
}

func main() {
	if len(os.Args) > 3 && os.Args[1] == floorCommand {
		n, err := strconv.Atoi(os.Args[2])
		if err == nil {
			err = floor(n, os.Args[3:])
		}
		exitOn(err)
		return
	}
	b := &bench{}
	flag.StringVar(&b.mini, "mini", "bin/mini", "the program to measure")
	flag.StringVar(&b.image, "image", "mini-base:latest", "an image with bash")
	flag.StringVar(&b.repository, "repository", "", "the folder of a repository to scrub copies of: made where it is missing, and left there for the next time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := b.all(ctx, flag.Args())
	exitOn(err)
	if b.missed {
		os.Exit(1)
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "mini-bench:", err)
		os.Exit(2)
	}
}

// all measures the parts that were asked for, without any every one.
func (b *bench) all(ctx context.Context, names []string) (err error) {
	for _, name := range names {
		if !slices.ContainsFunc(parts, func(p part) bool { return p.name == name }) {
			return fmt.Errorf("nothing is called %q", name)
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

// table prints figures as they come.
type table struct{ missed bool }

func (t *table) title(format string, args ...any) { fmt.Printf("== "+format+"\n", args...) }

// row prints a figure without a bar.
func (t *table) row(name string, figure float64, unit string, notes ...string) {
	fmt.Printf("%-58s %10.2f %-6s %s\n", name, figure, unit, strings.Join(notes, " "))
}

// atMost and atLeast hold a figure against a bar.
func (t *table) atMost(name string, figure, limit float64, unit string) {
	t.bar(name, figure, limit, unit, "at most", figure <= limit)
}

func (t *table) atLeast(name string, figure, limit float64, unit string) {
	t.bar(name, figure, limit, unit, "at least", figure >= limit)
}

func (t *table) bar(name string, figure, limit float64, unit, side string, held bool) {
	word := "held"
	if !held {
		word, t.missed = "MISSED", true
	}
	fmt.Printf("%-58s %10.2f %-6s bar: %s %g, %s\n", name, figure, unit, side, limit, word)
}

// median of figures in any order.
func median(figures []float64) float64 {
	if len(figures) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(figures))
	return s[len(s)/2]
}
