package agent

import (
	"fmt"
	"strings"

	"github.com/minibench/mini/trajectories"
)

// commandSummary is the short form of a command and its result. Compaction shows it
// in place of messages, and the template TailTemplate can list it.
type commandSummary struct {
	record  int // the record of the message with the result
	step    int // number of the reply with the command, from 1
	command string
	code    int
	line    string // last line of the output, or the exception
}

// maxSummaryText bounds each text of a commandSummary, in characters.
const maxSummaryText = 200

func newCommandSummary(record, step int, command string, code int, output []byte, exception string) commandSummary {
	first, _, more := strings.Cut(strings.TrimSpace(command), "\n")
	if more {
		first += " ..."
	}
	line := exception
	if line == "" {
		end := output[max(0, len(output)-16*maxSummaryText):]
		lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(end), "\uFFFD")), "\n")
		line = strings.TrimSpace(lines[len(lines)-1])
	}
	first = clip(strings.ToValidUTF8(first, "\uFFFD"), maxSummaryText)
	return commandSummary{record, step, first, code, clip(line, maxSummaryText)}
}

func (s commandSummary) String() string {
	text := fmt.Sprintf("$ %s -> exit code %d", s.command, s.code)
	if s.line != "" {
		text += ": " + s.line
	}
	return text
}

// addCommandSummary summarizes the command whose result is the newest message.
func (r *run) addCommandSummary(command string, code int, output []byte, exception string) {
	records := r.history.Records()
	s := newCommandSummary(records[len(records)-1], r.replyCount, command, code, output, exception)
	r.commandSummaries = append(r.commandSummaries, s)
}

// restoreCommandSummaries summarizes the commands of entries[i], which an
// earlier session ran.
func (r *run) restoreCommandSummaries(entries []trajectories.Entry, i int) {
	for _, x := range entries[i].Executions {
		if x.ObservationEntry >= 0 && x.ObservationEntry < len(entries) && !x.ByUser {
			s := newCommandSummary(entries[x.ObservationEntry].Record, r.replyCount, x.Command, x.ExitCode, x.Output, x.Exception)
			r.commandSummaries = append(r.commandSummaries, s)
		}
	}
}

// The tail, the text of TailTemplate at the end of each prompt, lists at most
// maxTailErrors failures among the last tailCommands commands.
const (
	tailCommands  = 10
	maxTailErrors = 3
)

// lastErrors returns the last failed commands for templates, the newest last.
func (r *run) lastErrors() []map[string]any {
	list := []map[string]any{}
	for _, s := range r.commandSummaries[max(0, len(r.commandSummaries)-tailCommands):] {
		if s.code != 0 {
			list = append(list, map[string]any{"step": s.step, "command": s.command, "returncode": s.code, "line": s.line})
		}
	}
	return list[max(0, len(list)-maxTailErrors):]
}
