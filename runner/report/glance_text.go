package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// Bounds of what a glance shows; its JSON has everything.
const (
	shortRun   = 5  // instances that are shown one by one
	maxReasons = 3  // of a status
	maxFailing = 40 // instances, each with the command to look at it
	maxAlike   = 10 // of those, with one exit status
	maxUnread  = 5
	maxScores  = 3 // evaluations before the newest
)

// Write shows a glance to people, in lines of at most width characters. Only
// commands are never cut, so that they can be copied.
func (g Glance) Write(w io.Writer, width int) error {
	var s strings.Builder
	if g.Instances > 0 || len(g.Verdicts) == 0 { // else the folder is that of an evaluation alone
		s.WriteString(paragraph(g.headline(), width, 0, 4))
		s.WriteString(paragraph(g.about(), width, 0, 3))
		if len(g.Rows) <= shortRun {
			g.writeShort(&s, width)
		} else {
			g.writeLong(&s, width)
		}
	}
	s.WriteString(unreadText(g.Unread, width))
	if err := g.writeVerdicts(&s, width); err != nil {
		return err
	}
	if g.Samples != nil {
		s.WriteString("\n" + g.Samples.text(width))
	}
	if next := g.next(); next != "" && !g.NextIsSaid {
		s.WriteString("\n" + paragraph(next, width, 0, 3))
	}
	_, err := io.WriteString(w, s.String())
	return err
}

// unreadText names the first of what cannot be read.
func unreadText(all []string, width int) string {
	var s strings.Builder
	for i, text := range all {
		if i == maxUnread {
			fmt.Fprintf(&s, "... and %d more that cannot be read; --json has all\n", len(all)-i)
			break
		}
		s.WriteString(paragraph("cannot be read: "+text, width, 0, 2))
	}
	return s.String()
}

// writeVerdicts shows the newest evaluation, and of the others a line.
func (g Glance) writeVerdicts(s *strings.Builder, width int) error {
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
			fmt.Fprintf(s, "... and %d earlier evaluations; --json has all\n", i+1)
			break
		}
		s.WriteString(paragraph("before: "+v.headline()+": "+v.about(), width, 0, 2))
	}
	return nil
}

func (g Glance) headline() string {
	if g.Instances == 0 && g.Dataset == "" { // there is no run.json
		return "nothing has a result or a verdict here yet"
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

// about says what was run, in which sandboxes, and where its files are.
func (g Glance) about() string {
	var parts []string
	sandbox := g.Environment
	if sandbox == "local" {
		sandbox += " (no sandbox)"
	}
	for _, p := range []string{g.Dataset, g.Model, sandbox} {
		if p != "" {
			parts = append(parts, bounded(p, 60))
		}
	}
	text := "files in " + g.Run
	if len(parts) > 0 {
		text = strings.Join(parts, ", ") + "; " + text
	}
	switch g.State {
	case Working:
		text += "; a mini is working there"
	case Stopped:
		text += "; the last mini there was killed"
	}
	return text
}

// next says how to go on where something is left to do.
func (g Glance) next() string {
	left := g.Instances - g.WithResult
	if left <= 0 || g.State == Working {
		return ""
	}
	return fmt.Sprintf("%s without a result: the same command with -o %s runs what is left", Count(left, "instance"), ShellWord(g.Run))
}

// writeShort shows a handful of instances one by one.
func (g Glance) writeShort(s *strings.Builder, width int) {
	if len(g.Rows) == 0 {
		return
	}
	s.WriteString("\n")
	rows := [][]string{{"instance", "steps", "cost", "time", "outcome"}}
	columns := "irrrs"
	judged := g.judged()
	if judged != nil {
		rows[0], columns = append(rows[0], "verdict"), columns+"l"
	}
	for _, r := range g.Rows {
		outcome := cmp.Or(r.Status, "not finished")
		note := patchOf(r)
		if judged != nil { // which takes room
			note = strings.TrimPrefix(note, "patch of ")
		}
		if note != "" {
			outcome += ", " + note
		}
		row := append(figures(r), outcome+together(r))
		if judged != nil {
			row = append(row, cmp.Or(words(string(judged[r.ID])), "-"))
		}
		rows = append(rows, row)
	}
	s.WriteString(Table(width, columns, rows))
	s.WriteString(ofAll(g.Rows, width))
	for _, r := range g.Failing {
		if r.Class == trajectories.Interrupted { // by the user, who knows
			continue
		}
		fmt.Fprintf(s, "\n%s\n", ansi.Truncate(Printable(r.ID+": "+r.Status), width, "…"))
		for _, text := range []string{r.Error, r.Hint} {
			if text != "" {
				s.WriteString(paragraph(text, width, 2, 3))
			}
		}
		s.WriteString("  " + g.command(r) + "\n")
	}
	s.WriteString("\n" + g.totals(width))
}

// figures is a row of such a table, before its outcome.
func figures(r Row) []string {
	return []string{r.ID, fmt.Sprint(r.AllSteps), Spent(r.Cost, r.CostKnown), span(r.Seconds)}
}

// together says how many attempts the figures of a row are of.
func together(r Row) string {
	if r.Attempts <= 1 {
		return ""
	}
	return fmt.Sprintf(" (%d attempts)", r.Attempts)
}

// ofAll is said below rows with several attempts.
func ofAll(rows []Row, width int) string {
	if !slices.ContainsFunc(rows, func(r Row) bool { return r.Attempts > 1 }) {
		return ""
	}
	return paragraph("steps, cost and time are of all attempts at an instance; the outcome is of the one that counts", width, 0, 3)
}

// judged are the classes of the newest evaluation of the run's own submissions,
// by instance; nil where there is none.
func (g Glance) judged() map[string]verdicts.Class {
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

func (g Glance) writeLong(s *strings.Builder, width int) {
	s.WriteString("\n" + g.outcomes(width))
	s.WriteString("\n" + g.totals(width))
	for _, ranking := range []struct {
		name string
		rows []Row
	}{{"most expensive", g.Expensive}, {"slowest", g.Slowest}} {
		if len(ranking.rows) == 0 {
			continue
		}
		rows := [][]string{{ranking.name, "steps", "cost", "time", "outcome"}}
		for _, r := range ranking.rows {
			rows = append(rows, append(figures(r), cmp.Or(r.Status, "not finished")+together(r)))
		}
		s.WriteString("\n" + Table(width, "irrrs", rows))
	}
	s.WriteString(ofAll(slices.Concat(g.Expensive, g.Slowest), width))
	g.writeFailing(s, width)
}

// outcomes is the table by class, with the reasons beneath each status.
func (g Glance) outcomes(width int) string {
	rows, after := [][]string{{"outcome", "instances", ""}}, map[int]string{}
	for _, c := range g.Classes {
		rows = append(rows, []string{string(c.Class), fmt.Sprint(c.Count), noteOf(c)})
		for _, st := range c.Statuses {
			if !strings.EqualFold(st.Status, string(c.Class)) {
				rows = append(rows, []string{"  " + st.Status, fmt.Sprint(st.Count), ""})
			}
			after[len(rows)-1] = reasons(st, width)
		}
	}
	if g.NotFinished > 0 {
		rows = append(rows, []string{"not finished", fmt.Sprint(g.NotFinished), ""})
	}
	if g.NotStarted > 0 {
		rows = append(rows, []string{"not started", fmt.Sprint(g.NotStarted), ""})
	}
	lines := strings.SplitAfter(Table(width, "srs", rows), "\n")
	var s strings.Builder
	for i, line := range lines {
		s.WriteString(line + after[i])
	}
	return s.String()
}

func noteOf(c Class) string {
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

func reasons(st Status, width int) string {
	var s strings.Builder
	for i, r := range st.Reasons {
		if i == maxReasons && len(st.Reasons) > maxReasons+1 {
			fmt.Fprintf(&s, "    ... and %d other errors; --json has all\n", len(st.Reasons)-i)
			break
		}
		text := r.Example + ": " + r.Error
		if r.Count > 1 {
			text = fmt.Sprintf("%d like %s", r.Count, text)
		}
		s.WriteString(paragraph(text, width, 4, 3))
	}
	return s.String()
}

func patchOf(r Row) string {
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

// writeFailing names the instances without a result, by exit status.
func (g Glance) writeFailing(s *strings.Builder, width int) {
	if len(g.Failing) == 0 {
		return
	}
	s.WriteString("\nno result\n")
	alike := map[string]int{}
	left, interrupted := 0, 0
	for i, r := range g.Failing {
		if r.Class == trajectories.Interrupted { // by the user, who knows
			interrupted++
			left++
			continue
		}
		if alike[r.Status]++; alike[r.Status] > maxAlike || i-left >= maxFailing {
			left++
			continue
		}
		status, command := bounded(Printable(r.Status), statusWidth), g.command(r)
		if statusWidth+len(gap)+ansi.StringWidth(command) > width {
			fmt.Fprintf(s, "%s\n    %s\n", status, command)
		} else {
			fmt.Fprintf(s, "%-*s%s%s\n", statusWidth, status, gap, command)
		}
	}
	if more := left - interrupted; more > 0 {
		fmt.Fprintf(s, "... and %d more; --json has all\n", more)
	}
	if interrupted > 0 {
		s.WriteString(paragraph(Count(interrupted, "instance")+" stopped with mini, and begun anew by the next start", width, 0, 2))
	}
}

// statusWidth is room for every exit status that mini has, in characters.
const statusWidth = 20

// command is what shows one instance.
func (g Glance) command(r Row) string {
	return Printable("mini report " + ShellWord(g.Run) + " -i " + ShellWord(r.ID))
}

// ShellWord returns s as a shell takes it for one word.
func ShellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/+=:@%,") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// totals are the sums of a run, a line each.
func (g Glance) totals(width int) string {
	t := g.Totals
	rows := [][]string{{"cost", g.cost()}}
	if in := t.Usage.Prompt; in > 0 || t.Usage.Completion > 0 {
		text := amount(in) + " in"
		if c := t.Usage.CacheRead; c > 0 && in > 0 {
			text += fmt.Sprintf(" (%.0f%% cached)", 100*float64(c)/float64(in))
		}
		text += ", " + amount(t.Usage.Completion) + " out"
		if r := t.Usage.Reasoning; r > 0 {
			text += fmt.Sprintf(" (%s of it reasoning)", amount(r))
		}
		rows = append(rows, []string{"tokens", text})
	}
	steps := fmt.Sprintf("%d in %s", t.Steps, Count(t.Attempts, "attempt"))
	if len(g.Rows) > shortRun {
		steps += fmt.Sprintf("; in those that count median %d, p90 %d, at most %d", t.Median, t.P90, t.Max)
	}
	rows = append(rows, []string{"steps", steps})
	var time string
	if t.Wall > 0 {
		time = span(t.Wall) + " on the clock, "
	}
	rows = append(rows, []string{"time", time + span(t.Seconds) + " of attempts added up"})
	return Table(width, "ls", rows) + phaseTable(width, t.Phases)
}

// cost says only what is known, and whose cost is not.
func (g Glance) cost() string {
	t := g.Totals
	switch {
	case t.NoModel && t.Cost == 0:
		return "none: the replies are scripted"
	case t.NoModel:
		return money(t.Cost) + " by the script's word; no model was called"
	case t.CostUnknown == 0:
		return money(t.Cost)
	case t.Cost == 0:
		return "not known: the server names none, and there is no price of the model"
	}
	return fmt.Sprintf("%s, and what %s took, which is not known", money(t.Cost), Count(t.CostUnknown, "instance"))
}

// Spent is what something cost, in few words; known is false where some of it is
// not.
func Spent(c model.Cost, known bool) string {
	switch {
	case !known && c > 0:
		return money(c) + " + ?"
	case !known:
		return "?"
	case c == 0:
		return "-"
	}
	return money(c)
}
