package transcript

import (
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/internal/sanitize"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/trajectories"
)

// showCommand shows a command, unless it is shownCommand already.
func (t *Transcript) showCommand(command string) {
	for i, c := range t.pendingCommands {
		if c == command {
			t.pendingCommands = append(t.pendingCommands[:i:i], t.pendingCommands[i+1:]...)
			break
		}
	}
	if t.shownCommand == command && command != "" {
		return
	}
	t.paragraph(t.clip(t.commandRows(command), maxCommand, "command", command)...)
	t.shownCommand, t.rowsAfterCommand = command, 0
}

// commandRows renders a command. Only styles separate the later lines from the output, so that they
// can be copied; plain ones are indented.
func (t *Transcript) commandRows(command string) []string {
	var rows []string
	for line := range strings.SplitSeq(strings.TrimRight(sanitize.Text(command), "\n"), "\n") {
		switch line = strings.TrimRight(t.styled(steps.Bold)(line), " "); {
		case len(rows) == 0:
			line = t.styled(func(s string) string { return steps.BoldColoured(ansi.Green, s) })("$") + " " + line
		case t.plain && line != "":
			line = "  " + line
		}
		rows = append(rows, line)
	}
	return rows
}

func (t *Transcript) showDecision(e trajectories.CommandDecision) {
	if e.Action == trajectories.Allow {
		return // the command starts next
	}
	t.showCommand(e.Command)
	t.shownCommand = ""
	row := "not run"
	if e.By != "" {
		row += " (" + strings.TrimSpace(sanitize.Line(clip(e.By+" "+e.Rule, 100))) + ")"
	}
	row = t.styled(steps.Colour(ansi.Red))(row)
	if e.Reason != "" {
		row += ": " + sanitize.Line(clip(e.Reason, 1000))
	}
	t.write(steps.Wrap(row, t.proseWidth())...)
}

func (t *Transcript) showStarted(e events.PhaseStarted) {
	t.Flush()
	if t.submits = !e.ByUser && agent.IsBareSubmission(e.Command); t.submits {
		return
	}
	t.showCommand(e.Command)
	t.shownCommand = ""
	t.output = newOutput(t)
}

func (t *Transcript) showEnded(x trajectories.Execution) {
	if t.submits {
		t.submits = false
		t.pendingCommands = nil
		t.paragraph(t.own(steps.Coloured(ansi.Green, "✓ done")))
		return
	}
	t.closeOutput()
	t.write(t.line(t.endRow(x))...)
}

// showChanges names the files that the step has changed. The full text is their diff, after the output that was
// shortened in this step, if there is one.
func (t *Transcript) showChanges(e events.FilesChanged) {
	t.write(t.faint("  changed: " + sanitize.Line(e.Text())))
	if t.stepOutput == "" || t.fullText != t.stepOutput {
		t.fullText = e.Patch
	} else {
		t.fullText += "\n" + e.Patch
	}
}

// closeOutput shows the rest of the running command's output.
func (t *Transcript) closeOutput() {
	if t.output != nil {
		t.output.close()
	}
	t.output = nil
}

// endRow describes how a command ended. Plain rows have no durations, so that they can be compared.
func (t *Transcript) endRow(x trajectories.Execution) string {
	duration := separator + unit.Duration(time.Duration(x.Duration))
	if t.plain {
		duration = ""
	}
	note := ""
	if x.Truncated {
		note = separator + unit.Size(x.Bytes) + " of output, the middle omitted"
	}
	switch {
	case x.TimedOut:
		return steps.Coloured(ansi.Red, "timed out") + steps.Faint(duration+note)
	case x.Exception != "" && x.ExitCode < 0:
		return steps.Coloured(ansi.Red, sanitize.Line(clip(x.Exception, 300)))
	case x.Signal != 0:
		return steps.Coloured(ansi.Red, "killed by signal "+strconv.Itoa(x.Signal)) + steps.Faint(duration+note)
	case x.ExitCode != 0:
		return steps.Coloured(ansi.Red, "exit "+strconv.Itoa(x.ExitCode)) + steps.Faint(duration+note)
	}
	return steps.Faint("exit 0" + duration + note)
}
