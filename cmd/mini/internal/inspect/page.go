package inspect

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Kind says how a section looks.
type Kind int

// The kinds of sections.
const (
	Plain     Kind = iota // text of others
	Reasoning             // shown when asked for, dimmed
	Command
	Output // with its colours
	Note   // mini's own words
	Alarm  // mini's own words on what went wrong
	Diff   // a patch
)

// Section is a part of a page.
type Section struct {
	Kind  Kind
	Label string // above it; may be empty
	Text  string

	once  sync.Once
	lines []span
}

// spans are the lines of the section's text. It is safe for concurrent use.
func (s *Section) spans() []span {
	s.once.Do(func() { s.lines = linesOf(s.Text, s.Kind == Output) })
	return s.lines
}

// Page is a step of a trajectory, or what is before the first or after the last.
type Page struct {
	Step  int // 0 for the prompts, and for the end
	Name  string
	Facts []string // for the header
	// Failed says that the next-error key stops here.
	Failed   bool
	Sections []*Section
	first    int      // the first record it is of
	exits    []string // how its commands ended, for the header
}

func (p *Page) add(k Kind, label, text string) {
	if text != "" || label != "" {
		p.Sections = append(p.Sections, &Section{Kind: k, Label: label, Text: text})
	}
}

// pages puts what belongs together onto pages.
func (t *Trajectory) pages(ts *trajectories.Transcript) {
	p := &Page{Name: "prompts"}
	told := map[int]bool{}
	if ts.Import != nil {
		p.add(Note, "", importNote(ts.Import))
	}
	if o := ts.Header.Origin; o != nil {
		p.add(Note, "", fmt.Sprintf("branches off attempt %d of %s (run %s) after step %d", o.Attempt, o.InstanceID, o.Run, o.Step))
	}
	for i := range ts.Setup {
		p.ran(&ts.Setup[i], "start-up command")
	}
	var cost model.Cost
	var tokens int64
	for i := range ts.Entries {
		e := &ts.Entries[i]
		if e.Cause == trajectories.CauseReply {
			t.Pages = append(t.Pages, p)
			t.Steps++
			p = &Page{Step: t.Steps, first: e.Record}
			if c := e.Call; c != nil {
				p.first = min(p.first, max(1, e.Record-1))
				cost, tokens = cost+c.Cost, tokens+c.Usage.Prompt+c.Usage.Completion
			}
			p.Facts = factsOf(e, cost, tokens)
			p.reply(e, told)
			continue
		}
		if !told[i] {
			p.message(e)
		}
	}
	t.Pages = append(t.Pages, p)
	t.others(ts)
	t.end(ts)
}

func importNote(i *trajectories.Import) string {
	text := "imported from " + i.File + " (" + i.Format + ")"
	if i.Agent != "" {
		text += ", by " + strings.TrimSpace(i.Agent+" "+i.AgentVersion)
	}
	if len(i.Lost) > 0 {
		text += "; lost: " + strings.Join(i.Lost, "; ")
	}
	return text
}

func factsOf(e *trajectories.Entry, cost model.Cost, tokens int64) []string {
	var facts []string
	if cost > 0 {
		facts = append(facts, dollars(float64(cost))+" so far")
	}
	if tokens > 0 {
		facts = append(facts, amount(tokens)+" tokens so far")
	}
	if c := e.Call; c != nil {
		if n := c.Usage.Prompt + c.Usage.Completion; n > 0 {
			facts = append(facts, fmt.Sprintf("%s in, %s out", amount(c.Usage.Prompt), amount(c.Usage.Completion)))
		}
		if c.Duration > 0 {
			facts = append(facts, "model "+seconds(time.Duration(c.Duration)))
		}
		if c.Tries > 1 {
			facts = append(facts, fmt.Sprintf("%d tries", c.Tries))
		}
	}
	if !e.Time.IsZero() {
		facts = append(facts, e.Time.Local().Format(time.TimeOnly))
	}
	return facts
}

// reply shows what the model said, and what came of it.
func (p *Page) reply(e *trajectories.Entry, told map[int]bool) {
	defer func() {
		if len(p.exits) > 0 {
			p.Facts = slices.Insert(p.Facts, 0, strings.Join(p.exits, ", "))
		}
	}()
	p.add(Reasoning, labelIf("reasoning", e.Reasoning), e.Reasoning)
	said := e.Content
	if len(e.Actions) == 1 {
		said = withoutBlock(said, e.Actions[0])
	}
	p.add(Plain, labelIf("reply", said), said)
	own := 0 // commands of the model that were run
	for i := range e.Ran {
		r := &e.Ran[i]
		p.ran(r, "command")
		told[r.Told] = true
		if !r.Person {
			own++
		}
	}
	for _, command := range e.Actions[min(own, len(e.Actions)):] {
		p.add(Command, "command, of which no result is there", command)
	}
	if len(e.Actions) == 0 && len(e.Ran) == 0 {
		for _, c := range e.Calls {
			p.add(Command, "tool call "+c.Name, c.Arguments)
		}
	}
}

// withoutBlock is a reply without the block that holds its command, which is shown
// by itself.
func withoutBlock(reply, command string) string {
	const fence = "```"
	at := strings.Index(reply, command)
	if at < 0 || command == "" {
		return reply
	}
	before, after := strings.TrimRight(reply[:at], "\n"), strings.TrimLeft(reply[at+len(command):], "\n")
	line := before[strings.LastIndexByte(before, '\n')+1:]
	if !strings.HasPrefix(line, fence) || !strings.HasPrefix(after, fence) {
		return reply
	}
	return strings.TrimSpace(strings.TrimSuffix(before, line) + strings.TrimPrefix(after, fence))
}

func labelIf(label, text string) string {
	if text == "" {
		return ""
	}
	return label
}

// ran shows a command and what it did.
func (p *Page) ran(r *trajectories.Ran, label string) {
	if r.Person {
		label = "command that the user ran"
	}
	p.add(Command, label, r.Command)
	facts := []string{}
	switch {
	case r.CodeUnknown:
		facts = append(facts, "exit code unknown")
	default:
		facts = append(facts, fmt.Sprintf("exit %d", r.ExitCode))
	}
	if r.Signal != 0 {
		facts = append(facts, fmt.Sprintf("signal %d", r.Signal))
	}
	if r.TimedOut {
		facts = append(facts, "timed out")
	}
	if r.OOMKilled > 0 {
		facts = append(facts, "killed for want of memory")
	}
	if r.Duration > 0 {
		facts = append(facts, seconds(time.Duration(r.Duration)))
	}
	p.exits = append(p.exits, facts[0])
	size := amount(int64(len(r.Output))) + " bytes"
	if len(r.Output) == 0 {
		size = "no output"
	} else if r.Truncated {
		size += fmt.Sprintf(" of %s, the middle left out", amount(r.Bytes))
	}
	kind := Note
	if failed := r.ExitCode != 0 || r.TimedOut || r.Exception != ""; failed {
		kind, p.Failed = Alarm, true
	}
	p.add(kind, "", strings.Join(append(facts, size), ", "))
	output := string(r.Output)
	if r.Truncated && 0 < r.Head && r.Head < len(output) {
		p.add(Output, "", output[:r.Head])
		p.add(Note, "", fmt.Sprintf("... %s bytes left out ...", amount(r.Bytes-int64(len(output)))))
		output = output[r.Head:]
	}
	p.add(Output, "", output)
	if r.Exception != "" {
		p.add(Alarm, "exception", r.Exception)
	}
	for i := range r.Tools {
		p.called(&r.Tools[i])
	}
	if n := len(r.Background); n > 0 {
		p.add(Note, "", fmt.Sprintf("%d processes were left running", n))
	}
}

// maxCall bounds the label of a call, in characters.
const maxCall = 300

// called shows what a command asked for by mini-tool: the call, and what the model
// was not shown of it where that was no success.
func (p *Page) called(c *trajectories.Called) {
	call := strings.Join(append([]string{"mini-tool", c.Name}, c.Args...), " ")
	if runes := []rune(call); len(runes) > maxCall {
		call = string(runes[:maxCall]) + "..."
	}
	facts := []string{fmt.Sprintf("exit %d", c.ExitCode), seconds(time.Duration(c.Duration)), amount(int64(len(c.Output))) + " bytes"}
	kind := Note
	if c.ExitCode != 0 {
		kind = Alarm
	}
	p.add(kind, "asked for "+call, strings.Join(facts, ", "))
	p.add(Output, "", string(c.Errors))
	if len(c.Details) > 0 {
		p.add(Note, "", string(c.Details))
	}
}

// message shows what is no reply, and was not shown with its command.
func (p *Page) message(e *trajectories.Entry) {
	if e.Cause == trajectories.CauseCommand && len(e.Ran) > 0 { // it tells what stands here
		for i := range e.Ran {
			p.ran(&e.Ran[i], "command that the user ran")
		}
		return
	}
	label, kind := string(e.Role), Plain
	switch e.Cause {
	case trajectories.CausePrompt:
		label += " prompt"
	case trajectories.CauseObservation:
		label, kind = "observation", Output
	case trajectories.CauseFormatError:
		label = "format error: the model is told how to write commands"
		p.Failed = true
	case trajectories.CauseRejection:
		label = "rejected: the command was not let run"
		p.Failed = true
	case trajectories.CauseMalformedPatch:
		label = "malformed patch: what was handed in does not apply"
		p.Failed = true
	case trajectories.CauseNotRun:
		label = "not run"
	case trajectories.CauseInterruption:
		label = "interrupted, and told by the user"
	case trajectories.CauseSteer:
		label = "told by the user, who steers"
	case trajectories.CauseFollowUp:
		label = "told by the user at the end, to go on"
	case trajectories.CauseCommand:
		label, kind = "command that the user ran", Output
	case "":
	default:
		label += ", " + strings.ReplaceAll(string(e.Cause), "_", " ")
	}
	p.add(kind, label, e.Content)
	if n := len(e.Images); n > 0 {
		p.add(Note, "", fmt.Sprintf("%d images, which are not shown", n))
	}
}
