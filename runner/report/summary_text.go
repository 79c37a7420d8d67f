package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// Limits of the text form. The JSON form has everything.
const (
	shortRun      = 5  // instances; a run with more is shown with rankings
	maxReasons    = 3  // for each status
	maxFailing    = 40 // instances without a result
	maxSameStatus = 10 // of those, with the same exit status
	maxUnread     = 5
	maxScores     = 3 // evaluations before the newest
)

// Write writes the summary as text, in lines of at most width characters.
// Commands are never truncated, so that they can be copied.
func (g Summary) Write(w io.Writer, width int) error {
	var s strings.Builder
	if g.Instances > 0 || len(g.Verdicts) == 0 { // otherwise the folder has an evaluation only
		s.WriteString(table.Paragraph(g.headline(), width, 0, 4))
		s.WriteString(table.Paragraph(g.about(), width, 0, 3))
		if len(g.Rows) <= shortRun {
			g.writeShort(&s, width)
		} else {
			g.writeLong(&s, width)
		}
	}
	s.WriteString(unreadableText(g.Unreadable, width))
	if err := g.writeVerdicts(&s, width); err != nil {
		return err
	}
	if g.Repetitions != nil {
		s.WriteString("\n" + g.Repetitions.text(width))
	}
	if next := g.nextStep(); next != "" && !g.HideNextStep {
		s.WriteString("\n" + table.Paragraph(next, width, 0, 3))
	}
	_, err := io.WriteString(w, s.String())
	return err
}

// unreadableText lists the first errors of unreadable files.
func unreadableText(all []string, width int) string {
	var s strings.Builder
	for i, text := range all {
		if i == maxUnread {
			fmt.Fprintf(&s, "... and %d more unreadable files; --json shows all\n", len(all)-i)
			break
		}
		s.WriteString(table.Paragraph("cannot be read: "+text, width, 0, 2))
	}
	return s.String()
}

// writeVerdicts writes the newest evaluation, and one line for each earlier
// one.
func (g Summary) writeVerdicts(s *strings.Builder, width int) error {
	n := len(g.Verdicts)
	if n == 0 {
		return nil
	}
	if s.Len() > 0 {
		s.WriteString("\n")
	}
	if err := g.Verdicts[n-1].Write(s, width); err != nil {
		return err
	}
	for i, v := range slices.Backward(g.Verdicts[:n-1]) {
		if n-2-i == maxScores {
			fmt.Fprintf(s, "... and %d earlier evaluations; --json shows all\n", i+1)
			break
		}
		s.WriteString(table.Paragraph("earlier: "+v.headline()+": "+v.about(), width, 0, 2))
	}
	return nil
}

func (g Summary) headline() string {
	if g.Instances == 0 && g.Dataset == "" { // there is no run.json
		return "no results or verdicts yet"
	}
	var parts []string
	for _, c := range g.Classes {
		parts = append(parts, fmt.Sprintf("%d %s", c.Count, c.Class))
	}
	if g.NotFinished > 0 {
		parts = append(parts, fmt.Sprintf("%d not finished", g.NotFinished))
	}
	if g.NotStarted > 0 {
		parts = append(parts, fmt.Sprintf("%d not started", g.NotStarted))
	}
	text := fmt.Sprintf("%d of %d instances have a result", g.WithResult, g.Instances)
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}

// about returns the dataset, the model, the environment and the run folder.
func (g Summary) about() string {
	var parts []string
	sandbox := g.Environment
	if sandbox == "local" {
		sandbox += " (no sandbox)"
	}
	for _, p := range []string{g.Dataset, g.Model, sandbox} {
		if p != "" {
			parts = append(parts, truncate(p, 60))
		}
	}
	text := "files in " + g.Run
	if len(parts) > 0 {
		text = strings.Join(parts, ", ") + "; " + text
	}
	switch g.State {
	case Working:
		text += "; mini is running"
	case Stopped:
		text += "; the last mini process was killed"
	}
	return text
}

// nextStep returns a hint on how to continue an unfinished run.
func (g Summary) nextStep() string {
	left := g.Instances - g.WithResult
	if left <= 0 || g.State == Working {
		return ""
	}
	return fmt.Sprintf("%s without a result: run the same command with -o %s to continue",
		text.Count(left, "instance"), text.ShellQuote(g.Run))
}

// writeShort writes a table of all instances.
func (g Summary) writeShort(s *strings.Builder, width int) {
	if len(g.Rows) == 0 {
		return
	}
	s.WriteString("\n")
	rows := [][]string{{"instance", "steps", "cost", "time", "outcome"}}
	columns := "irrrs"
	classes := g.verdictClasses()
	if classes != nil {
		rows[0], columns = append(rows[0], "verdict"), columns+"l"
	}
	for _, r := range g.Rows {
		outcome := cmp.Or(r.Status, "not finished")
		note := patchText(r)
		if classes != nil { // save space
			note = strings.TrimPrefix(note, "patch of ")
		}
		if note != "" {
			outcome += ", " + note
		}
		row := append(rowCells(r), outcome+attemptsNote(r))
		if classes != nil {
			row = append(row, cmp.Or(withSpaces(string(classes[r.ID])), "-"))
		}
		rows = append(rows, row)
	}
	s.WriteString(table.Table(width, columns, rows))
	s.WriteString(attemptsLegend(g.Rows, width))
	for _, r := range g.Failing {
		if r.Class == trajectories.Interrupted { // interrupted by the user
			continue
		}
		fmt.Fprintf(s, "\n%s\n", ansi.Truncate(text.Printable(r.ID+": "+r.Status), width, "…"))
		for _, text := range []string{r.Error, r.Hint} {
			if text != "" {
				s.WriteString(table.Paragraph(text, width, 2, 3))
			}
		}
		s.WriteString("  " + g.command(r) + "\n")
	}
	s.WriteString("\n" + g.totalsTable(width))
}

// rowCells returns the first cells of a row: id, steps, cost and time.
func rowCells(r Row) []string {
	return []string{r.ID, fmt.Sprint(r.AllSteps), CostText(r.Cost, r.CostKnown), durationText(r.Seconds)}
}

// attemptsNote returns a note for a row with several attempts.
func attemptsNote(r Row) string {
	if r.Attempts <= 1 {
		return ""
	}
	return fmt.Sprintf(" (%d attempts)", r.Attempts)
}

// attemptsLegend explains rows with several attempts.
func attemptsLegend(rows []Row, width int) string {
	if !slices.ContainsFunc(rows, func(r Row) bool { return r.Attempts > 1 }) {
		return ""
	}
	return table.Paragraph("steps, cost and time: all attempts of an instance; outcome: the attempt that counts", width, 0, 3)
}

// verdictClasses returns the classes of the newest evaluation of the run's own
// submissions, by instance; nil if there is none.
func (g Summary) verdictClasses() map[string]verdicts.Class {
	for _, v := range slices.Backward(g.Verdicts) {
		if !v.HasRun {
			continue
		}
		classes := map[string]verdicts.Class{}
		for _, c := range v.Classes {
			for _, id := range c.IDs {
				classes[id] = c.Class
			}
		}
		return classes
	}
	return nil
}

func (g Summary) writeLong(s *strings.Builder, width int) {
	s.WriteString("\n" + g.outcomesTable(width))
	s.WriteString("\n" + g.totalsTable(width))
	for _, ranking := range []struct {
		name string
		rows []Row
	}{{"most expensive", g.Expensive}, {"slowest", g.Slowest}} {
		if len(ranking.rows) == 0 {
			continue
		}
		rows := [][]string{{ranking.name, "steps", "cost", "time", "outcome"}}
		for _, r := range ranking.rows {
			rows = append(rows, append(rowCells(r), cmp.Or(r.Status, "not finished")+attemptsNote(r)))
		}
		s.WriteString("\n" + table.Table(width, "irrrs", rows))
	}
	s.WriteString(attemptsLegend(slices.Concat(g.Expensive, g.Slowest), width))
	g.writeFailing(s, width)
}

// outcomesTable returns the table of classes and exit statuses, with the
// reasons below each status.
func (g Summary) outcomesTable(width int) string {
	rows, after := [][]string{{"outcome", "instances", ""}}, map[int]string{}
	for _, c := range g.Classes {
		rows = append(rows, []string{string(c.Class), fmt.Sprint(c.Count), classNoteOf(c)})
		for _, st := range c.Statuses {
			if !strings.EqualFold(st.Status, string(c.Class)) {
				rows = append(rows, []string{"  " + st.Status, fmt.Sprint(st.Count), ""})
			}
			after[len(rows)-1] = reasonsText(st, width)
		}
	}
	if g.NotFinished > 0 {
		rows = append(rows, []string{"not finished", fmt.Sprint(g.NotFinished), ""})
	}
	if g.NotStarted > 0 {
		rows = append(rows, []string{"not started", fmt.Sprint(g.NotStarted), ""})
	}
	lines := strings.SplitAfter(table.Table(width, "srs", rows), "\n")
	var s strings.Builder
	for i, line := range lines {
		s.WriteString(line + after[i])
	}
	return s.String()
}

func classNoteOf(c ClassSummary) string {
	if !c.Class.Counts() {
		return "no result"
	}
	var parts []string
	if n := c.Patches.With; n > 0 {
		parts = append(parts, fmt.Sprintf("%d with a patch", n))
	}
	if n := c.Patches.Empty; n > 0 {
		parts = append(parts, fmt.Sprintf("%d empty", n))
	}
	if n := c.Patches.Autosubmitted; n > 0 {
		parts = append(parts, fmt.Sprintf("%d autosubmitted", n))
	}
	return strings.Join(parts, ", ")
}

func reasonsText(st StatusSummary, width int) string {
	var s strings.Builder
	for i, r := range st.Reasons {
		if i == maxReasons && len(st.Reasons) > maxReasons+1 {
			fmt.Fprintf(&s, "    ... and %d other errors; --json shows all\n", len(st.Reasons)-i)
			break
		}
		text := r.Example + ": " + r.Error
		if r.Count > 1 {
			text = fmt.Sprintf("%d like %s", r.Count, text)
		}
		s.WriteString(table.Paragraph(text, width, 4, 3))
	}
	return s.String()
}

func patchText(r Row) string {
	switch {
	case !r.Class.Counts():
		return ""
	case r.PatchBytes == 0:
		return "empty patch"
	case r.Autosubmitted:
		return fmt.Sprintf("working diff of %d bytes", r.PatchBytes)
	}
	return fmt.Sprintf("patch of %d bytes", r.PatchBytes)
}

// writeFailing lists the instances without a result, by exit status.
func (g Summary) writeFailing(s *strings.Builder, width int) {
	if len(g.Failing) == 0 {
		return
	}
	s.WriteString("\nno result\n")
	shown := map[string]int{}
	hidden, interrupted := 0, 0
	for i, r := range g.Failing {
		if r.Class == trajectories.Interrupted { // interrupted by the user
			interrupted++
			hidden++
			continue
		}
		if shown[r.Status]++; shown[r.Status] > maxSameStatus || i-hidden >= maxFailing {
			hidden++
			continue
		}
		status, command := truncate(text.Printable(r.Status), statusWidth), g.command(r)
		if statusWidth+len(table.ColumnGap)+ansi.StringWidth(command) > width {
			fmt.Fprintf(s, "%s\n    %s\n", status, command)
		} else {
			fmt.Fprintf(s, "%-*s%s%s\n", statusWidth, status, table.ColumnGap, command)
		}
	}
	if more := hidden - interrupted; more > 0 {
		fmt.Fprintf(s, "... and %d more; --json shows all\n", more)
	}
	if interrupted > 0 {
		text := text.Count(interrupted, "instance") + " interrupted; run the same command again to restart them"
		s.WriteString(table.Paragraph(text, width, 0, 2))
	}
}

// statusWidth is the column width for exit statuses, in characters. All of
// mini's fit.
const statusWidth = 20

// command returns the command that shows an instance.
func (g Summary) command(r Row) string {
	return text.Printable("mini report " + text.ShellQuote(g.Run) + " -i " + text.ShellQuote(r.ID))
}

// totalsTable returns the totals of a run.
func (g Summary) totalsTable(width int) string {
	t := g.Totals
	rows := [][]string{{"cost", g.costText()}}
	if in := t.Usage.Prompt; in > 0 || t.Usage.Completion > 0 {
		text := amountText(in) + " in"
		if c := t.Usage.CacheRead; c > 0 && in > 0 {
			text += fmt.Sprintf(" (%.0f%% cached)", 100*float64(c)/float64(in))
		}
		text += ", " + amountText(t.Usage.Completion) + " out"
		if r := t.Usage.Reasoning; r > 0 {
			text += fmt.Sprintf(" (%s of it reasoning)", amountText(r))
		}
		rows = append(rows, []string{"tokens", text})
	}
	steps := fmt.Sprintf("%d in %s", t.Steps, text.Count(t.Attempts, "attempt"))
	if len(g.Rows) > shortRun {
		steps += fmt.Sprintf("; attempts that count: median %d, p90 %d, max %d", t.Median, t.P90, t.Max)
	}
	rows = append(rows, []string{"steps", steps})
	var time string
	if t.Wall > 0 {
		time = durationText(t.Wall) + " wall time, "
	}
	rows = append(rows, []string{"time", time + durationText(t.Seconds) + " total of all attempts"})
	return table.Table(width, "ls", rows) + phaseTable(width, t.Phases)
}

// costText formats the total cost.
func (g Summary) costText() string {
	t := g.Totals
	switch {
	case t.NoModel && t.Cost == 0:
		return "none: the replies are scripted"
	case t.NoModel:
		return moneyText(t.Cost) + " according to the script; no model was called"
	case t.CostUnknown == 0:
		return moneyText(t.Cost)
	case t.Cost == 0:
		return "unknown: the server reports no cost, and no price is configured"
	}
	return fmt.Sprintf("%s, plus the unknown cost of %s", moneyText(t.Cost), text.Count(t.CostUnknown, "instance"))
}

// CostText formats a cost. known is false if a part of it is unknown.
func CostText(c model.Cost, known bool) string {
	switch {
	case !known && c > 0:
		return moneyText(c) + " + ?"
	case !known:
		return "?"
	case c == 0:
		return "-"
	}
	return moneyText(c)
}
