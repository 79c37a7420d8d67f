package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/internal/doc"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// Limits of the text form. The JSON form has everything.
const (
	shortRun      = 5  // instances listed in one table; longer runs have rankings
	maxReasons    = 3  // for each status; one more if that is the last
	maxFailing    = 40 // listed instances without a result
	maxSameStatus = 10 // listed instances with the same exit status
	maxUnreadable = 5
	maxScores     = 3 // evaluations before the newest
)

// Doc returns the summary for readers.
func (s Summary) Doc() *doc.Doc {
	d := &doc.Doc{}
	n := len(s.Verdicts)
	if n > 0 { // first the answer
		d.Paragraph(s.Verdicts[n-1].headline(), 0, 4)
	}
	if s.Instances > 0 || n == 0 { // otherwise the folder has only an evaluation
		d.Paragraph(s.headline(), 0, 4)
		d.Paragraph(s.detailsText(), 0, 3)
		if n := s.UnprovenNetworks; n > 0 {
			d.Paragraph(text.Count(n, "attempt")+" ran without proof that commands had no network", 0, 2)
		}
		if len(s.Rows) <= shortRun {
			s.addShort(d)
		} else {
			s.addLong(d)
		}
	}
	addUnreadable(d, s.Unreadable)
	s.addVerdicts(d)
	if s.Repetitions != nil {
		d.Blank()
		d.Add(s.Repetitions.Doc())
	}
	if u := s.Unresolved; u != nil && u.Attempts > u.Resolved {
		d.Blank()
		u.add(d)
	}
	if !s.HideNextStep {
		s.addNextStep(d)
	}
	return d
}

// addUnreadable lists the first maxUnreadable errors of unreadable files.
func addUnreadable(d *doc.Doc, errs []string) {
	for i, text := range errs {
		if i == maxUnreadable {
			d.Line(0, "... and %d more unreadable files; --json shows all", len(errs)-i)
			break
		}
		d.Paragraph("cannot be read: "+text, 0, 2)
	}
}

// addVerdicts adds the newest evaluation without its headline, which comes first in
// the summary, and a paragraph for each earlier one, at most maxScores.
func (s Summary) addVerdicts(d *doc.Doc) {
	n := len(s.Verdicts)
	if n == 0 {
		return
	}
	if s.Instances > 0 {
		d.Blank()
	}
	s.Verdicts[n-1].addRest(d)
	for i, v := range slices.Backward(s.Verdicts[:n-1]) {
		if n-2-i == maxScores {
			d.Line(0, "... and %d earlier evaluations; --json shows all", i+1)
			break
		}
		d.Paragraph("earlier: "+v.headline()+": "+v.detailsText(), 0, 2)
	}
}

func (s Summary) headline() string {
	if s.Instances == 0 && s.Dataset == "" { // there is no run.json
		return "no results or verdicts yet"
	}
	var parts []string
	for _, c := range s.Classes {
		parts = append(parts, fmt.Sprintf("%d %s", c.Count, c.Class))
	}
	if s.NotFinished > 0 {
		parts = append(parts, fmt.Sprintf("%d not finished", s.NotFinished))
	}
	if s.NotStarted > 0 {
		parts = append(parts, fmt.Sprintf("%d not started", s.NotStarted))
	}
	line := fmt.Sprintf("%d of %s %s a result", s.WithResult, text.Count(s.Instances, "instance"), text.Verb(s.Instances, "has", "have"))
	if len(parts) > 0 {
		line += ": " + strings.Join(parts, ", ")
	}
	return line
}

// detailsText lists the dataset, the model, the environment and the run folder.
func (s Summary) detailsText() string {
	var parts []string
	sandbox := s.Environment
	if sandbox == "local" {
		sandbox += " (no sandbox)"
	}
	for _, p := range []string{s.Dataset, s.Model, sandbox} {
		if p != "" {
			parts = append(parts, truncate(p, 60))
		}
	}
	text := "files in " + s.Run
	if len(parts) > 0 {
		text = strings.Join(parts, ", ") + "; " + text
	}
	switch s.State {
	case Working:
		text += "; mini is running"
	case Stopped:
		text += "; the last mini process was killed"
	}
	return text
}

// addNextStep says how to continue an unfinished run.
func (s Summary) addNextStep(d *doc.Doc) {
	left := s.Instances - s.WithResult
	if left <= 0 || s.State == Working {
		return
	}
	d.Blank()
	without := text.Count(left, "instance") + " without a result"
	if s.Resume != "" {
		for line := range strings.SplitSeq(without+"; "+s.Resume, "\n") {
			d.Line(0, "%s", line)
		}
		return
	}
	if len(s.ResumeArgs) > 0 {
		words := []string{"mini"}
		for _, arg := range s.ResumeArgs {
			words = append(words, text.ShellQuote(arg))
		}
		d.Line(0, "%s; to continue:", without)
		d.Line(4, "%s", strings.Join(words, " "))
		return
	}
	d.Paragraph(without+": run the same command with -o "+text.ShellQuote(s.Run)+" to continue", 0, 3)
}

// addShort adds a table of all instances, the errors of failed instances,
// and the totals.
func (s Summary) addShort(d *doc.Doc) {
	if len(s.Rows) == 0 {
		return
	}
	d.Blank()
	rows := [][]string{{"instance", "steps", "cost", "time", "outcome"}}
	columns := "irrrs"
	classes := s.verdictClasses()
	if classes != nil {
		rows[0], columns = append(rows[0], "verdict"), columns+"l"
	}
	cost := costColumn(s.Rows)
	for _, r := range s.Rows {
		outcome := cmp.Or(r.Status, "not finished")
		note := patchText(r)
		if classes != nil { // save space
			note = strings.TrimPrefix(note, "patch of ")
		}
		if note != "" {
			outcome += ", " + note
		}
		row := append(rowCells(r, cost), outcome+attemptsNote(r))
		if classes != nil {
			row = append(row, cmp.Or(withSpaces(string(classes[r.ID])), "-")+s.rewardText(r.ID))
		}
		rows = append(rows, row)
	}
	d.Table(columns, rows)
	s.addAttemptsLegend(d, s.Rows)
	for _, r := range s.Failing {
		if r.Class == trajectories.Interrupted { // interrupted by the user
			continue
		}
		d.Blank()
		d.Paragraph(r.ID+": "+r.Status, 0, 1)
		d.Paragraph(r.Error, 2, 3)
		d.Paragraph(r.Hint, 2, 3)
		d.Line(2, "%s", s.command(r))
	}
	d.Blank()
	s.addTotals(d)
}

// costColumn returns the format of the costs of rows.
func costColumn(rows []Row) func(dollars float64, known bool) string {
	var amounts []float64
	for _, r := range rows {
		amounts = append(amounts, float64(r.Cost))
	}
	return unit.CostColumn(amounts...)
}

// rowCells returns the first cells of a row: id, steps, cost and time.
func rowCells(r Row, cost func(float64, bool) string) []string {
	return []string{r.ID, fmt.Sprint(r.AllSteps), cost(float64(r.Cost), r.CostKnown), unit.Seconds(r.Seconds)}
}

// attemptsNote returns a note for a row with several attempts.
func attemptsNote(r Row) string {
	if r.Attempts <= 1 {
		return ""
	}
	return fmt.Sprintf(" (%d attempts)", r.Attempts)
}

// addAttemptsLegend explains rows with several attempts.
func (s Summary) addAttemptsLegend(d *doc.Doc, rows []Row) {
	if !slices.ContainsFunc(rows, func(r Row) bool { return r.Attempts > 1 }) {
		return
	}
	outcome := "the attempt that counts"
	if s.Repetitions != nil {
		outcome = "the first attempt that counts"
	}
	d.Paragraph("steps, cost and time: sums of all attempts at an instance; outcome: "+outcome, 0, 3)
}

// verdictClasses returns the classes of the newest evaluation of the run's own
// submissions, by instance; nil if there is none.
func (s Summary) verdictClasses() map[string]verdicts.Class {
	for _, v := range slices.Backward(s.Verdicts) {
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

// rewardText returns the reward of an instance if it is neither 0 nor 1.
func (s Summary) rewardText(id string) string {
	for _, v := range slices.Backward(s.Verdicts) {
		if !v.HasRun || v.Rewards == nil {
			continue
		}
		if n := v.Rewards.Instances[id]; n != 0 && n != 1 {
			return fmt.Sprintf(" %.3g", n)
		}
		return ""
	}
	return ""
}

func (s Summary) addLong(d *doc.Doc) {
	d.Blank()
	s.addOutcomes(d)
	d.Blank()
	s.addTotals(d)
	for _, ranking := range []struct {
		name string
		rows []Row
	}{{"most expensive", s.Expensive}, {"slowest", s.Slowest}} {
		if len(ranking.rows) == 0 {
			continue
		}
		rows := [][]string{{ranking.name, "steps", "cost", "time", "outcome"}}
		cost := costColumn(ranking.rows)
		for _, r := range ranking.rows {
			rows = append(rows, append(rowCells(r, cost), cmp.Or(r.Status, "not finished")+attemptsNote(r)))
		}
		d.Blank()
		d.Table("irrrs", rows)
	}
	s.addAttemptsLegend(d, slices.Concat(s.Expensive, s.Slowest))
	s.addFailing(d)
}

// addOutcomes adds the table of classes and exit statuses, with the
// reasons below each status.
func (s Summary) addOutcomes(d *doc.Doc) {
	rows, below := [][]string{{"outcome", "instances", ""}}, map[int]*doc.Doc{}
	for _, c := range s.Classes {
		rows = append(rows, []string{string(c.Class), fmt.Sprint(c.Count), classNoteOf(c)})
		for _, status := range c.Statuses {
			if !strings.EqualFold(status.Status, string(c.Class)) {
				rows = append(rows, []string{"  " + status.Status, fmt.Sprint(status.Count), ""})
			}
			below[len(rows)-1] = reasonsOf(status)
		}
	}
	if s.NotFinished > 0 {
		rows = append(rows, []string{"not finished", fmt.Sprint(s.NotFinished), ""})
	}
	if s.NotStarted > 0 {
		rows = append(rows, []string{"not started", fmt.Sprint(s.NotStarted), ""})
	}
	d.Blocks = append(d.Blocks, doc.Block{Kind: doc.Table, Columns: "srs", Rows: rows, Below: below})
}

func classNoteOf(c ClassSummary) string {
	if !c.Class.IsResult() {
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

func reasonsOf(status StatusSummary) *doc.Doc {
	d := &doc.Doc{}
	for i, r := range status.Reasons {
		if i == maxReasons && len(status.Reasons) > maxReasons+1 {
			d.Line(4, "... and %d other errors; --json shows all", len(status.Reasons)-i)
			break
		}
		text := r.Example + ": " + r.Error
		if r.Count > 1 {
			text = fmt.Sprintf("%d like %s", r.Count, text)
		}
		d.Paragraph(text, 4, 3)
	}
	return d
}

func patchText(r Row) string {
	switch {
	case !r.Class.IsResult():
		return ""
	case r.PatchBytes == 0:
		return "empty patch"
	case r.Autosubmitted:
		return fmt.Sprintf("working diff of %d bytes", r.PatchBytes)
	}
	return fmt.Sprintf("patch of %d bytes", r.PatchBytes)
}

// addFailing lists the instances without a result, by exit status.
func (s Summary) addFailing(d *doc.Doc) {
	if len(s.Failing) == 0 {
		return
	}
	d.Blank()
	d.Heading("no result")
	rows, shown := [][]string{}, map[string]int{}
	hidden, interrupted := 0, 0
	for i, r := range s.Failing {
		if r.Class == trajectories.Interrupted { // interrupted by the user
			interrupted++
			hidden++
			continue
		}
		if shown[r.Status]++; shown[r.Status] > maxSameStatus || i-hidden >= maxFailing {
			hidden++
			continue
		}
		rows = append(rows, []string{truncate(r.Status, maxStatus), s.command(r)})
	}
	d.Table("lc", rows)
	if more := hidden - interrupted; more > 0 {
		d.Line(0, "... and %d more; --json shows all", more)
	}
	if interrupted > 0 {
		text := text.Count(interrupted, "instance") + " interrupted; run the same command with -o " + text.ShellQuote(s.Run) + " to restart them"
		d.Paragraph(text, 0, 2)
	}
}

// maxStatus is the number of characters of an exit status. It fits all of mini's.
const maxStatus = 20

// command returns the mini report command for an instance.
func (s Summary) command(r Row) string {
	return "mini report " + text.ShellQuote(s.Run) + " -i " + text.ShellQuote(r.ID)
}

// addTotals adds the totals of a run.
func (s Summary) addTotals(d *doc.Doc) {
	t := s.Totals
	rows := [][]string{{"cost", s.costText()}}
	if in := t.Usage.Prompt; in > 0 || t.Usage.Completion > 0 {
		text := unit.Count(in) + " in"
		if c := t.Usage.CacheRead; c > 0 && in > 0 {
			text += fmt.Sprintf(" (%.0f%% cached)", 100*float64(c)/float64(in))
		}
		text += ", " + unit.Count(t.Usage.Completion) + " out"
		if r := t.Usage.Reasoning; r > 0 {
			text += fmt.Sprintf(" (%s of it reasoning)", unit.Count(r))
		}
		rows = append(rows, []string{"tokens", text})
	}
	steps := fmt.Sprintf("%d in %s", t.Steps, text.Count(t.Attempts, "attempt"))
	if len(s.Rows) > shortRun {
		steps += fmt.Sprintf("; attempts that count: median %d, p90 %d, max %d", t.Median, t.P90, t.Max)
	}
	rows = append(rows, []string{"steps", steps})
	var time string
	if t.Wall > 0 {
		time = unit.Seconds(t.Wall) + " wall time, "
	}
	rows = append(rows, []string{"time", time + unit.Seconds(t.Seconds) + " total of all attempts"})
	d.Table("ls", rows)
	addPhases(d, t.Phases)
}

// costText formats the total cost.
func (s Summary) costText() string {
	t := s.Totals
	switch {
	case t.NoModel && t.Cost == 0:
		return "none: the replies are scripted"
	case t.NoModel:
		return unit.Money(float64(t.Cost)) + " according to the script; no model was called"
	case t.CostUnknown == 0:
		return unit.Money(float64(t.Cost))
	case t.Cost == 0:
		return "unknown: the server reports no cost, and no price is configured"
	}
	return fmt.Sprintf("%s, plus the unknown cost of %s", unit.Money(float64(t.Cost)), text.Count(t.CostUnknown, "instance"))
}
