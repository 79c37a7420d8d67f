package replay

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/internal/doc"
	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner/replay"
)

// save writes the report into the folder of -o, if there is one.
func (o *Options) save(rep *fullReport) error {
	if o.output == "" {
		return nil
	}
	data, err := json.MarshalIndent(rep, "", "  ")
	if err == nil {
		err = os.MkdirAll(o.output, 0o755) //nolint:gosec // results may be world-readable
	}
	var root *rootdir.Dir // do not follow links in the folder
	if err == nil {
		root, err = rootdir.Open(o.output)
	}
	if err == nil {
		err = errors.Join(root.WriteFile(filepath.Join(o.output, resultFile), append(data, '\n')), root.Close())
	}
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// maxSentence is the greatest number of lines of a sentence about an attempt.
const maxSentence = 20

// show prints the report as JSON, or as tables and a summary.
func (o *Options) show(a *app.App, rep *fullReport) error {
	if o.json {
		return json.NewEncoder(a.Out).Encode(rep)
	}
	d := &doc.Doc{}
	d.Table(rep.attempts())
	if rows := rep.divergences(); len(rows) > 1 {
		d.Blank()
		d.Table("irrsls", rows)
	}
	for _, sentence := range append(rep.failures(), rep.totals()) {
		d.Blank()
		d.Paragraph(sentence, 0, maxSentence)
	}
	return a.Print(d)
}

// attempts returns a header and a table row for each attempt, and the kinds of the
// columns. It omits the column of attempt numbers if no number is above 1.
func (rep *fullReport) attempts() (columns string, rows [][]string) {
	columns = "irrrrrl"
	rows = [][]string{{"INSTANCE", "ATTEMPT", "COMMANDS", "NORMALISED", "OTHER OUTPUT", "DIVERGED", "DIFF"}}
	for _, r := range rep.Attempts {
		diff := string(r.Diff.State)
		if r.Diff.State == replay.Reproduced {
			diff += fmt.Sprintf(", %d bytes", r.Diff.Bytes)
		}
		rows = append(rows, []string{
			cmp.Or(r.InstanceID, r.File), blankZero(r.Attempt), strconv.Itoa(len(r.Commands)),
			blankZero(r.Count(replay.Normalised)), blankZero(r.Count(replay.OutputDiffers)), blankZero(r.Count(replay.Diverged)), diff,
		})
	}
	if slices.ContainsFunc(rep.Attempts, func(r *attemptResult) bool { return r.Attempt > 1 }) {
		return columns, rows
	}
	for i, row := range rows {
		rows[i] = slices.Delete(row, 1, 2)
	}
	return "irrrrl", rows
}

// blankZero formats n, and 0 as "".
func blankZero(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// listedMatches are the kinds of matches of the commands in the table of divergences, and
// the kinds that the totals count besides exact and normalised ones.
var listedMatches = []replay.Match{replay.OutputDiffers, replay.Diverged, replay.Skipped, replay.Unrecorded}

// divergences returns a table row for each command that differed or could not be run,
// after a header. It omits unrecorded commands with a text, which are submissions of
// other agents: their output is never recorded, and the diffs are compared instead.
func (rep *fullReport) divergences() [][]string {
	rows := [][]string{{"INSTANCE", "ATTEMPT", "STEP", "COMMAND", "MATCH", "DIFFERENCE"}}
	for _, r := range rep.Attempts {
		for _, c := range r.Commands {
			if slices.Contains(listedMatches, c.Match) && (c.Match != replay.Unrecorded || c.Text == "") {
				command, _, _ := strings.Cut(strings.TrimSpace(c.Text), "\n")
				rows = append(rows, []string{r.InstanceID, blankZero(r.Attempt), strconv.Itoa(c.Step), command, string(c.Match), c.Difference})
			}
		}
	}
	return rows
}

// failures returns sentences for attempts that were not reproduced: one for the error or
// the first divergence, and one for a diff that differs.
func (rep *fullReport) failures() []string {
	var sentences []string
	for _, r := range rep.Attempts {
		name := text.Printable(cmp.Or(r.InstanceID, r.File))
		if r.Attempt > 0 {
			name += fmt.Sprintf(" attempt %d", r.Attempt)
		}
		switch {
		case strings.HasPrefix(r.Error, r.File+":"): // the error names the file
			sentences = append(sentences, text.Printable(r.Error))
		case r.Error != "":
			sentences = append(sentences, name+": "+text.Printable(r.Error))
		case r.First != nil:
			sentences = append(sentences, fmt.Sprintf("%s: first divergence at step %d: %s", name, r.First.Step, r.First.Difference))
		}
		if r.Diff.State == replay.Differs {
			sentences = append(sentences, fmt.Sprintf("%s: the diff: %s", name, r.Diff.Difference))
		}
	}
	return sentences
}

// totals returns the summary in one line.
func (rep *fullReport) totals() string {
	s := rep.Summary
	commands := 0
	for _, c := range s.Commands {
		commands += c
	}
	line := fmt.Sprintf("%d of %s reproduced: %s, %d exact", s.Reproduced, text.Count(s.Attempts, "attempt"),
		text.Count(commands, "command"), s.Commands[replay.Exact])
	if count := s.Commands[replay.Normalised]; count > 0 {
		line += fmt.Sprintf(", %d but for %s", count, strings.Join(rep.rules(), ", "))
	}
	for _, m := range listedMatches {
		switch count := s.Commands[m]; {
		case count == 0:
		case m == replay.OutputDiffers:
			line += ", " + countDiffering(count)
		default:
			line += fmt.Sprintf(", %d %s", count, m)
		}
	}
	line += fmt.Sprintf("; %s the same", text.Count(s.Diffs[replay.Reproduced], "diff"))
	for _, d := range []replay.DiffState{replay.Differs, replay.NotRecorded, replay.NotTaken} {
		if count := s.Diffs[d]; count > 0 {
			line += fmt.Sprintf(", %d %s", count, d)
		}
	}
	return line
}

// rules returns the normalization rules that made outputs match.
func (rep *fullReport) rules() []string {
	var rules []string
	for _, r := range rep.Attempts {
		for _, c := range r.Commands {
			rules = append(rules, c.Rules...)
		}
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}
