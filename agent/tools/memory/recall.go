package memory

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/internal/text"
)

// Bounds of the output. Byte counts are of UTF-8.
const (
	maxExcerpt      = 6 << 10  // bytes of a reply or result that is shown without flags
	maxPage         = 32 << 10 // bytes of a page
	maxLines        = 5000     // lines of a page
	maxLine         = 2000     // bytes of a line; longer lines are split
	maxQuery        = 200      // bytes
	maxMatches      = 30       // steps
	maxLinesPerStep = 3        // matching lines
	matchContext    = 160      // bytes on each side of a match
)

// defaultLines is the maximum number of lines of a page without --limit.
const defaultLines = 400

// RecallTool is the tool recall. It shows earlier steps of the attempt,
// including those that a compaction removed from the conversation.
type RecallTool struct{}

// Spec implements tools.Tool.
func (RecallTool) Spec() tools.Spec {
	return tools.Spec{
		Name:        "recall",
		Usage:       "recall STEP [--full] [--offset LINE] [--limit LINES]\nrecall --search TEXT",
		Description: "shows an earlier step again, your reply and what came of it, or finds the steps that have a text",
	}
}

// Call implements tools.Tool.
func (RecallTool) Call(_ context.Context, c tools.Call) (tools.Result, error) {
	args, err := tools.ParseArgs(c.Args,
		tools.Flag{Name: "full", Boolean: true}, tools.Flag{Name: "offset"}, tools.Flag{Name: "limit"}, tools.Flag{Name: "search"})
	if err != nil {
		return tools.Result{}, err
	}
	var steps []agent.Step
	if c.Attempt != nil {
		steps = c.Attempt.Steps()
	}
	if !args.Has("search") {
		return showStep(args, steps)
	}
	if len(args.Positional) > 0 || args.Has("full") || args.Has("offset") || args.Has("limit") {
		return tools.Result{}, tools.Usagef("--search takes one text, in quotes, and nothing stands beside it")
	}
	return search(args.Value("search"), steps)
}

// recallDetails are recorded with a call.
type recallDetails struct {
	Step  int   `json:"step,omitempty"`
	Lines int   `json:"lines,omitempty"` // of the whole step
	Found []int `json:"found,omitempty"` // numbers of the steps that --search found
}

// showStep returns an excerpt of a step or, with flags, a page of its lines.
func showStep(args tools.Args, steps []agent.Step) (tools.Result, error) {
	if len(args.Positional) != 1 {
		return tools.Result{}, tools.Usagef("say the number of one step, or --search TEXT")
	}
	n, err := strconv.Atoi(args.Positional[0])
	if err != nil || n < 1 || n > len(steps) {
		return tools.Result{}, tools.Usagef("there is no step %.40q; there are %d so far", args.Positional[0], len(steps))
	}
	offset, err := args.Int("offset", 1, 1, 1<<30)
	if err != nil {
		return tools.Result{}, err
	}
	limit, err := args.Int("limit", defaultLines, 1, maxLines)
	if err != nil {
		return tools.Result{}, err
	}
	reply, answer := stepText(steps[n-1])
	all := append(splitLines(reply), splitLines(answer)...)
	head := fmt.Sprintf("step %d of %d", n, len(steps))
	details := recallDetails{Step: n, Lines: len(all)}
	if !args.Has("full") && !args.Has("offset") && !args.Has("limit") {
		text := head + "\n" + headAndTail(reply, n) + headAndTail(answer, n)
		return tools.Result{Output: text, Details: details}, nil
	}
	if offset > len(all) {
		return tools.Result{}, tools.Usagef("step %d has %d lines", n, len(all))
	}
	shown, size := 0, 0
	for _, line := range all[offset-1:] {
		if size += len(line) + 1; shown == limit || size > maxPage {
			break
		}
		shown++
	}
	last := offset - 1 + shown
	text := fmt.Sprintf("%s, lines %d to %d of %d\n%s\n", head, offset, last, len(all), strings.Join(all[offset-1:last], "\n"))
	if last < len(all) {
		text += fmt.Sprintf("[mini-tool recall %d --offset %d goes on]\n", n, last+1)
	}
	return tools.Result{Output: text, Details: details}, nil
}

// search lists the steps that contain query, ignoring case. It skips the newest
// step, which contains the call itself.
func search(query string, steps []agent.Step) (tools.Result, error) {
	query = strings.TrimSpace(query)
	if query == "" || len(query) > maxQuery || strings.Contains(query, "\n") {
		return tools.Result{}, tools.Usagef("--search takes a text of at most %d bytes on one line", maxQuery)
	}
	var b strings.Builder
	var details recallDetails
	for _, s := range steps[:max(0, len(steps)-1)] {
		reply, answer := stepText(s)
		found := matchingLines(append(splitLines(reply), splitLines(answer)...), query)
		if len(found) == 0 {
			continue
		}
		if details.Found = append(details.Found, s.Number); len(details.Found) > maxMatches {
			continue
		}
		fmt.Fprintf(&b, "step %d\n", s.Number)
		for _, line := range found[:min(len(found), maxLinesPerStep)] {
			fmt.Fprintf(&b, "  %s\n", line)
		}
		if more := len(found) - maxLinesPerStep; more > 0 {
			fmt.Fprintf(&b, "  and %s more\n", text.Count(more, "line"))
		}
	}
	n := len(details.Found)
	if n == 0 {
		return tools.Result{Output: fmt.Sprintf("no step before this one has %q\n", query), ExitCode: 1, Details: details}, nil
	}
	if more := n - maxMatches; more > 0 {
		fmt.Fprintf(&b, "and %s more; search for something rarer\n", text.Count(more, "step"))
	}
	return tools.Result{Output: fmt.Sprintf("%q is in %s\n%s", query, text.Count(n, "step"), b.String()), Details: details}, nil
}

// matchingLines returns the lines that contain query, ignoring case. A line is
// cut to matchContext bytes before and after the first match.
func matchingLines(lines []string, query string) []string {
	query = strings.ToLower(query)
	var matches []string
	for _, line := range lines {
		lower := strings.ToLower(line)
		at := strings.Index(lower, query)
		if at < 0 {
			continue
		}
		if len(lower) != len(line) { // lower case changed the length of a letter, so at is an offset in lower only
			line = lower
		}
		from, to := max(0, at-matchContext), min(len(line), at+len(query)+matchContext)
		matches = append(matches, strings.TrimSpace(strings.ToValidUTF8(line[from:to], "")))
	}
	return matches
}

// stepText returns the reply and the results of a step.
func stepText(s agent.Step) (reply, answer string) {
	reply = "--- your reply\n" + s.Reply.Content
	if len(s.Reply.ToolCalls) > 0 { // the text does not contain the commands of tool calls
		for _, command := range s.Commands {
			reply += "\n--- command\n" + command
		}
	}
	answer = "--- what came of it"
	for _, m := range s.Answers {
		answer += "\n" + m.Content
		if n := len(m.Images); n > 0 {
			answer += "\n[" + text.Count(n, "image") + "]"
		}
	}
	if len(s.Answers) == 0 {
		answer += "\nnothing yet"
	}
	return reply, answer
}

// splitLines splits a text into lines of at most maxLine bytes.
func splitLines(text string) []string {
	var list []string
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		for len(line) > maxLine {
			at := maxLine
			for at > maxLine-4 && line[at]&0xC0 == 0x80 { // within a character
				at--
			}
			list, line = append(list, line[:at]), line[at:]
		}
		list = append(list, line)
	}
	return list
}

// headAndTail shortens a text of more than maxExcerpt bytes to its first and
// last lines, with a note about the omitted lines.
func headAndTail(s string, step int) string {
	if s = strings.TrimRight(s, "\n") + "\n"; len(s) <= maxExcerpt {
		return s
	}
	lines := splitLines(s)
	countFitting := func(from, by int) int {
		n, size := 0, 0
		for at := from; at >= 0 && at < len(lines); at += by {
			if size += len(lines[at]) + 1; size > maxExcerpt/2 {
				break
			}
			n++
		}
		return n
	}
	head, tail := countFitting(0, 1), countFitting(len(lines)-1, -1)
	omitted := len(lines) - head - tail
	if omitted <= 0 {
		return s
	}
	return strings.Join(lines[:head], "\n") +
		fmt.Sprintf("\n[%s left out; mini-tool recall %d --full shows them]\n", text.Count(omitted, "line"), step) +
		strings.Join(lines[len(lines)-tail:], "\n") + "\n"
}
