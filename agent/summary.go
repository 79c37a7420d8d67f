package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// maxQuoted bounds each text quoted in a summary prompt, in characters, without
// the note on what is left out.
const maxQuoted = 4000

// maxReason bounds the reason for a missing summary, in characters.
const maxReason = 500

func (c Config) summaryMaxChars() int { return cmp.Or(c.SummaryMaxChars, DefaultSummaryMaxChars) }

// summarize returns a summary for each segment that has none yet. One model
// call asks for all summaries. If the call fails or omits summaries, summarize
// returns extracts in their place, and fallback is the reason.
func (r *run) summarize(ctx context.Context, c *compactor, segments [][]turn) (all []trajectories.Replacement, fallback string, err error) {
	unsummarized := newSegments(segments)
	prompt, err := c.summaryPrompt(unsummarized)
	if err != nil {
		return nil, "", err
	}
	reply, err := r.querySummary(ctx, prompt)
	if _, interrupted := errors.AsType[*Feedback](err); err != nil && (interrupted || ctx.Err() != nil || errors.Is(err, errNotRecorded)) {
		return nil, "", err
	}
	var texts []string
	if err == nil {
		texts, err = splitParts(reply.Message.Content, len(unsummarized))
	}
	if err != nil {
		fallback = clip(strings.ToValidUTF8(err.Error(), "?"), maxReason)
		r.warnOfExtracts(fallback)
	}
	for i, segment := range unsummarized {
		text, predicate := "", "are shown as an extract"
		if i < len(texts) {
			text = texts[i]
		}
		if text == "" {
			text = c.extract(segment)
		} else {
			text, predicate = clip(text, r.cfg.summaryMaxChars()), "are shown in summary"
		}
		from, to := recordRange(segment)
		all = append(all, trajectories.Replacement{From: from, To: to, Join: true, Message: model.Message{
			Role: model.User, Content: c.segmentNote(segment, predicate+" to save room") + "\n\n" + text,
		}})
	}
	return all, fallback, nil
}

// newSegments returns the segments that have no summary yet.
func newSegments(segments [][]turn) (all [][]turn) {
	for _, segment := range segments {
		if !isReplaced(segment) {
			all = append(all, segment)
		}
	}
	return all
}

// warnOfExtracts warns, once per session, that extracts replace missing
// summaries.
func (r *run) warnOfExtracts(reason string) {
	if !r.warnedExtracts {
		r.warnedExtracts = true
		r.warnings = append(r.warnings, "old steps are replaced by an extract of their commands, without a summary: "+reason)
	}
}

// errNotRecorded ends the attempt: the summary call could not be recorded.
var errNotRecorded = errors.New("record summary call")

// querySummary makes the model call for summaries. Its cost and time count, but
// it is not a step.
func (r *run) querySummary(ctx context.Context, prompt string) (model.Reply, error) {
	m := r.SummaryModel
	if m == nil {
		m = r.Model
	}
	callCtx, done := r.Inbox.callContext(ctx)
	defer done()
	start := time.Now()
	r.notify(events.PhaseStarted{Phase: events.PhaseThinking})
	reply, err := m.Query(callCtx, []model.Message{{Role: model.User, Content: prompt}})
	call := callRecord(start, reply, err)
	call.Tokens = r.attempt.RecordTokens(reply.Tokens)
	if _, recErr := r.record(trajectories.TypeSummary, trajectories.Summary(call)); recErr != nil {
		return reply, errors.Join(errNotRecorded, recErr)
	}
	if err == nil && strings.TrimSpace(reply.Message.Content) == "" {
		return reply, errors.New("the model wrote no summary")
	}
	return reply, callError(ctx, callCtx, err)
}

// summaryPrompt renders the prompt for the summaries of segments.
func (c *compactor) summaryPrompt(segments [][]turn) (string, error) {
	list := make([]map[string]any, len(segments))
	for i, segment := range segments {
		first, last := c.stepRange(segment)
		list[i] = summaryPart(i+1, first, last, c.quoteSegment(segment))
	}
	prompt, err := c.run.templates[summaryPrompt].render(merge(c.run.variables(), summaryValues(list, c.run.cfg.summaryMaxChars())))
	if c.hint != "" {
		prompt += "\n\nThe user asks you to keep this in particular: " + c.hint
	}
	return prompt, err
}

// quoteSegment returns the text of a segment for the summary prompt.
func (c *compactor) quoteSegment(segment []turn) string {
	var t strings.Builder
	for _, turn := range segment {
		for _, b := range turn {
			text := clipMiddle(b.Content, maxQuoted)
			switch {
			case b.IsReplacement && c.cause(b) == "":
				_, text, _ = strings.Cut(b.Content, "\n\n")
				fmt.Fprintf(&t, "[summary of what came before]\n%s\n\n", cmp.Or(text, b.Content))
				continue
			case b.Role == model.Assistant:
				fmt.Fprintf(&t, "[step %d, the assistant]\n", c.stepOf[b.From])
			default:
				t.WriteString("[what it was answered]\n")
			}
			t.WriteString(text)
			for _, call := range b.ToolCalls {
				t.WriteString("\n" + clipMiddle(call.Arguments, maxQuoted))
			}
			t.WriteString("\n\n")
		}
	}
	return strings.TrimSpace(t.String())
}

// partHeading matches the heading of one summary in the reply.
var partHeading = lazyregexp.New(`(?m)^[=#* ]*Part (\d{1,6})\b[^\n]*$`)

// splitParts splits a reply into n summaries. A missing one is empty. If all
// are missing, the whole reply is the last summary. The error says how many are
// missing.
func splitParts(reply string, n int) ([]string, error) {
	texts := make([]string, n)
	headings := partHeading.FindAllStringSubmatchIndex(reply, -1)
	for i, m := range headings {
		end := len(reply)
		if i+1 < len(headings) {
			end = headings[i+1][0]
		}
		number, err := strconv.Atoi(reply[m[2]:m[3]])
		if err == nil && 1 <= number && number <= n && texts[number-1] == "" {
			texts[number-1] = strings.TrimSpace(reply[m[1]:end])
		}
	}
	missing := 0
	for _, text := range texts {
		if text == "" {
			missing++
		}
	}
	switch missing {
	case 0:
		return texts, nil
	case n:
		texts[n-1] = strings.TrimSpace(reply)
		if missing--; missing == 0 {
			return texts, nil
		}
	}
	return texts, fmt.Errorf("the model wrote no summary of %d of %d parts", missing, n)
}

// extract lists the commands of a segment with their exit codes and last lines
// of output. It has at most as many characters as a summary, and leaves out the
// earliest commands first. It needs no model.
func (c *compactor) extract(segment []turn) string {
	limit := c.run.cfg.summaryMaxChars()
	var prefix string
	var lines []string
	for _, turn := range segment {
		for _, b := range turn {
			if b.IsReplacement && c.cause(b) == "" {
				_, text, _ := strings.Cut(b.Content, "\n\n")
				prefix = clipMiddle(text, limit/2) + "\n"
			}
			for _, s := range c.run.commandSummaries {
				if s.record == b.From {
					lines = append(lines, fmt.Sprintf("step %d: %s", c.stepOf[b.From], s))
				}
			}
		}
	}
	room, first := limit-utf8.RuneCountInString(prefix)-60, len(lines)
	for first > 0 && room-utf8.RuneCountInString(lines[first-1])-1 > 0 {
		first--
		room -= utf8.RuneCountInString(lines[first]) + 1
	}
	if first > 0 {
		prefix += fmt.Sprintf("(%d earlier commands are left out)\n", first)
	}
	return clip(prefix+strings.Join(lines[first:], "\n"), limit)
}

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
	entries := r.attempt.Entries
	s := newCommandSummary(entries[len(entries)-1].Record, r.attempt.Replies(), command, code, output, exception)
	r.commandSummaries = append(r.commandSummaries, s)
}

// restoreCommandSummaries summarizes the commands of entries[i], which an
// earlier session ran. replies is the number of replies up to there.
func (r *run) restoreCommandSummaries(entries []trajectories.Entry, i, replies int) {
	for _, x := range entries[i].Executions {
		if x.ObservationEntry >= 0 && x.ObservationEntry < len(entries) && !x.ByUser {
			s := newCommandSummary(entries[x.ObservationEntry].Record, replies, x.Command, x.ExitCode, x.Output, x.Exception)
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

// clip shortens a text to at most limit characters.
func clip(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return text[:prefixLen([]byte(text), max(0, limit-4))] + " ..."
}

// clipMiddle shortens a text of more than limit characters to its start, a note
// and its end. Start and end have limit/2 characters each.
func clipMiddle(text string, limit int) string {
	n := utf8.RuneCountInString(text)
	if n <= limit {
		return text
	}
	b := []byte(text)
	return text[:prefixLen(b, limit/2)] + fmt.Sprintf("\n[... %d characters left out ...]\n", n-limit/2*2) + text[suffixStart(b, limit/2):]
}
