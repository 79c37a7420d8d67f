// Package dryrun prints the plans of commands called with --dry-run.
package dryrun

import (
	"fmt"
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
)

// Print prints a plan. It returns an error if obstacle is set: the command would not start.
func Print(s cmdutil.Streams, asJSON bool, plan any, text, obstacle string) error {
	err := cmdutil.PrintResult(s, asJSON, plan, text)
	if err == nil && obstacle != "" {
		err = usage.Errorf("it would not start; see the plan")
	}
	return err
}

// Text builds the text form of a plan.
type Text struct{ strings.Builder }

// Line adds a named, wrapped line.
func (s *Text) Line(name, format string, args ...any) {
	for i, part := range table.Wrap(text.Printable(fmt.Sprintf(format, args...)), cmdutil.TextWidth-11) {
		fmt.Fprintf(&s.Builder, "%-10s %s\n", Label(i, name), part)
	}
}

// Truncate reports whether a list of n items ends before item i, and adds the number of omitted
// items.
func (s *Text) Truncate(i, n int) bool {
	if i < maxPlanned || n <= maxPlanned+1 {
		return false
	}
	fmt.Fprintf(&s.Builder, "  ... and %d more; --json lists them all\n", n-i)
	return true
}

// maxPlanned is the number of instances that the text form lists.
const maxPlanned = 20

// Label returns name for the first of several lines, else "".
func Label(i int, name string) string {
	if i > 0 {
		return ""
	}
	return name
}

// FormatImages summarizes which images are local and which must be pulled.
func FormatImages(p Images) string {
	if p.Problem != "" {
		return fmt.Sprintf("%d distinct; which are here is not known", p.Distinct)
	}
	text := fmt.Sprintf("%d distinct: %d here", p.Distinct, p.Local)
	if p.Local > 0 {
		text += fmt.Sprintf(" (%s, shared layers counted each time)", table.SizeText(p.LocalBytes))
	}
	return text + fmt.Sprintf(", %d to pull", p.Pull)
}

// FormatDisk estimates the disk space that the images need.
func FormatDisk(p Images) string {
	switch {
	case p.Problem != "":
		return "not known without the container engine; see mini doctor"
	case p.Pull == 0:
		return "no image is to be pulled; the run's own files take some MB an instance"
	}
	text := fmt.Sprintf("about %s for the images to pull", table.SizeText(p.PullBytes))
	if p.Unknown > 0 {
		text += " (a rough 0.5 GB each where no registry was asked or answered)"
	}
	if p.FreeBytes == nil {
		return text + "; mini doctor says what is free"
	}
	return text + fmt.Sprintf("; %s are free", table.SizeText(*p.FreeBytes))
}
