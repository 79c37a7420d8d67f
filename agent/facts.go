package agent

import (
	"fmt"
	"strings"

	"github.com/minibench/mini/trajectories"
)

// fact is what is kept of a command for extracts and tails.
type fact struct {
	record  int // of the message that told of it
	step    int // the reply that asked for it, from 1
	command string
	code    int
	line    string // the last one of its output, or why it ended
}

// maxFact bounds each text of a fact, in characters.
const maxFact = 200

func factOf(record, step int, command string, code int, output []byte, exception string) fact {
	first, _, more := strings.Cut(strings.TrimSpace(command), "\n")
	if more {
		first += " ..."
	}
	line := exception
	if line == "" {
		end := output[max(0, len(output)-16*maxFact):]
		lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(end), "\uFFFD")), "\n")
		line = strings.TrimSpace(lines[len(lines)-1])
	}
	return fact{record, step, clipped(strings.ToValidUTF8(first, "\uFFFD"), maxFact), code, clipped(line, maxFact)}
}

func (f fact) String() string {
	text := fmt.Sprintf("$ %s -> exit code %d", f.command, f.code)
	if f.line != "" {
		text += ": " + f.line
	}
	return text
}

// learn keeps what a command did, of which the newest message tells.
func (r *run) learn(command string, code int, output []byte, exception string) {
	if !r.cfg.remembers() {
		return
	}
	r.facts = append(r.facts, factOf(r.records[len(r.records)-1], r.replies, command, code, output, exception))
}

// relearn keeps what commands of the past did.
func (r *run) relearn(entries []trajectories.Entry, at int) {
	if !r.cfg.remembers() {
		return
	}
	for _, ran := range entries[at].Ran {
		if ran.Told >= 0 && ran.Told < len(entries) && !ran.Person {
			r.facts = append(r.facts, factOf(entries[ran.Told].Record, r.replies, ran.Command, ran.ExitCode, ran.Output, ran.Exception))
		}
	}
}

// remembers says whether anything is made of facts.
func (c Config) remembers() bool { return c.compacts() || c.TailTemplate != "" }

// Of the newest commands, the failures that a tail tells of.
const (
	newestRan  = 10
	mostErrors = 3
)

// errors are the newest commands that failed, as templates have them, the newest
// last.
func (r *run) lastErrors() []map[string]any {
	list := []map[string]any{}
	for _, f := range r.facts[max(0, len(r.facts)-newestRan):] {
		if f.code != 0 {
			list = append(list, map[string]any{"step": f.step, "command": f.command, "returncode": f.code, "line": f.line})
		}
	}
	return list[max(0, len(list)-mostErrors):]
}
