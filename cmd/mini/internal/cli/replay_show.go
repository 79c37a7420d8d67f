package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/minibench/mini/runner/replay"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/rootdir"
)

// save writes the findings where -o says.
func (o *replayOptions) save(rep *replayReport) error {
	if o.output == "" {
		return nil
	}
	data, err := json.MarshalIndent(rep, "", "  ")
	if err == nil {
		err = os.MkdirAll(o.output, 0o755) //nolint:gosec // results are for sharing
	}
	if err == nil {
		err = writeIn(o.output, replayFile, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write findings: %w", err)
	}
	return nil
}

// writeIn replaces a file in a folder that may be a stranger's: a link in its
// place is not followed.
func writeIn(dir, name string, data []byte) error {
	root, err := rootdir.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(root.WriteFile(filepath.Join(dir, name), data), root.Close())
}

// show prints the findings: as JSON, or two tables and what they come to.
func (o *replayOptions) show(s Streams, rep *replayReport) error {
	if o.json {
		return json.NewEncoder(s.Out).Encode(rep)
	}
	width := widthOf(s.Out)
	var b strings.Builder
	columns, attempts := rep.attempts()
	b.WriteString(report.Table(width, columns, attempts))
	if rows := rep.divergences(); len(rows) > 1 {
		b.WriteString("\n" + report.Table(width, "irrsls", rows))
	}
	for _, text := range rep.first() {
		b.WriteString("\n" + strings.Join(report.Wrap(text, width), "\n") + "\n")
	}
	b.WriteString("\n" + strings.Join(report.Wrap(rep.total(), width), "\n") + "\n")
	_, err := io.WriteString(s.Out, b.String())
	return err
}

// attempts is a row for each. Numbers of attempts are a column where there is any
// but the first.
func (rep *replayReport) attempts() (columns string, rows [][]string) {
	columns = "irrrrrl"
	rows = [][]string{{"INSTANCE", "ATTEMPT", "COMMANDS", "NORMALISED", "OTHER OUTPUT", "DIVERGED", "DIFF"}}
	for _, r := range rep.Attempts {
		diff := string(r.Diff.State)
		if r.Diff.State == replay.Reproduced {
			diff += fmt.Sprintf(", %d bytes", r.Diff.Bytes)
		}
		rows = append(rows, []string{
			cmp.Or(r.InstanceID, r.File), number(r.Attempt), strconv.Itoa(len(r.Commands)),
			number(r.Count(replay.Normalised)), number(r.Count(replay.OutputDiffers)), number(r.Count(replay.Diverged)), diff,
		})
	}
	if slices.ContainsFunc(rep.Attempts, func(r *replayed) bool { return r.Attempt > 1 }) {
		return columns, rows
	}
	for i, row := range rows {
		rows[i] = slices.Delete(row, 1, 2)
	}
	return "irrrrl", rows
}

// number is empty for zero, so that what is not zero stands out.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// oddMatches are those that say a command is to be looked at.
var oddMatches = []replay.Match{replay.OutputDiffers, replay.Diverged, replay.Skipped, replay.Unrecorded}

// divergences is a row for each command that did something else or could not be
// run. The one that handed in another agent's work is only counted: its file never
// says what that printed, and the submission is compared.
func (rep *replayReport) divergences() [][]string {
	rows := [][]string{{"INSTANCE", "ATTEMPT", "STEP", "COMMAND", "MATCH", "DIFFERENCE"}}
	for _, r := range rep.Attempts {
		for _, c := range r.Commands {
			if slices.Contains(oddMatches, c.Match) && (c.Match != replay.Unrecorded || c.Text == "") {
				command, _, _ := strings.Cut(strings.TrimSpace(c.Text), "\n")
				rows = append(rows, []string{r.InstanceID, number(r.Attempt), strconv.Itoa(c.Step), command, string(c.Match), c.Difference})
			}
		}
	}
	return rows
}

// first are, for each attempt that was not reproduced, a sentence why.
func (rep *replayReport) first() []string {
	var all []string
	for _, r := range rep.Attempts {
		name := report.Printable(cmp.Or(r.InstanceID, r.File))
		if r.Attempt > 0 {
			name += fmt.Sprintf(" attempt %d", r.Attempt)
		}
		switch {
		case strings.HasPrefix(r.Error, r.File+":"): // it says where itself
			all = append(all, report.Printable(r.Error))
		case r.Error != "":
			all = append(all, name+": "+report.Printable(r.Error))
		case r.First != nil:
			all = append(all, fmt.Sprintf("%s: first at step %d: %s", name, r.First.Step, r.First.Difference))
		}
		if r.Diff.State == replay.Differs {
			all = append(all, fmt.Sprintf("%s: the diff: %s", name, r.Diff.Difference))
		}
	}
	return all
}

// total is what it comes to.
func (rep *replayReport) total() string {
	s := rep.Summary
	n := 0
	for _, c := range s.Commands {
		n += c
	}
	text := fmt.Sprintf("%d of %s reproduced: %s, %d exact", s.Reproduced, report.Count(s.Attempts, "attempt"),
		report.Count(n, "command"), s.Commands[replay.Exact])
	if k := s.Commands[replay.Normalised]; k > 0 {
		text += fmt.Sprintf(", %d but for %s", k, strings.Join(rep.rules(), ", "))
	}
	for _, m := range oddMatches {
		switch k := s.Commands[m]; {
		case k == 0:
		case m == replay.OutputDiffers:
			text += ", " + outputsDiffer(k)
		default:
			text += fmt.Sprintf(", %d %s", k, m)
		}
	}
	text += fmt.Sprintf("; %s the same", report.Count(s.Diffs[replay.Reproduced], "diff"))
	for _, d := range []replay.State{replay.Differs, replay.NotRecorded, replay.NotTaken} {
		if k := s.Diffs[d]; k > 0 {
			text += fmt.Sprintf(", %d %s", k, d)
		}
	}
	return text
}

// rules are those that any command needed.
func (rep *replayReport) rules() []string {
	var all []string
	for _, r := range rep.Attempts {
		for _, c := range r.Commands {
			all = append(all, c.Rules...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
