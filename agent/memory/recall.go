package memory

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/tools"
)

// Bounds of what is recalled. Bytes are those of UTF-8.
const (
	maxBrief    = 6 << 10  // of a reply, and of what came of it, where not all is asked for
	maxPage     = 32 << 10 // of a page
	maxLines    = 5000     // of a page
	maxLine     = 2000     // of one line; what is longer goes on in the next
	maxQuery    = 200
	maxFound    = 30 // steps
	maxInStep   = 3  // lines of one
	aroundFound = 160
)

// defaultLines is how many lines a page has where nobody says how many.
const defaultLines = 400

// Recall is the tool recall: what was said and done earlier in the attempt, also
// what the model is no longer sent.
type Recall struct{}

// Spec implements tools.Tool.
func (Recall) Spec() tools.Spec {
	return tools.Spec{
		Name:  "recall",
		Usage: "recall STEP [--full] [--offset LINE] [--limit LINES]\nrecall --search TEXT",
		About: "shows an earlier step again, your reply and what came of it, or finds the steps that have a text",
	}
}

// Call implements tools.Tool.
func (Recall) Call(_ context.Context, c tools.Call) (tools.Result, error) {
	args, err := tools.ParseArgs(c.Args,
		tools.Flag{Name: "full", Switch: true}, tools.Flag{Name: "offset"}, tools.Flag{Name: "limit"}, tools.Flag{Name: "search"})
	if err != nil {
		return tools.Result{}, err
	}
	var steps []agent.Step
	if c.Attempt != nil {
		steps = c.Attempt.Steps()
	}
	if !args.Has("search") {
		return page(args, steps)
	}
	if len(args.Rest) > 0 || args.Has("full") || args.Has("offset") || args.Has("limit") {
		return tools.Result{}, tools.Usagef("--search takes one text, in quotes, and nothing stands beside it")
	}
	return search(args.Value("search"), steps)
}

// recallDetails are what is recorded of a call.
type recallDetails struct {
	Step  int   `json:"step,omitempty"`
	Lines int   `json:"lines,omitempty"` // of the whole step
	Found []int `json:"found,omitempty"`
}

// page shows a step, or a page of it.
func page(args tools.Args, steps []agent.Step) (tools.Result, error) {
	if len(args.Rest) != 1 {
		return tools.Result{}, tools.Usagef("say the number of one step, or --search TEXT")
	}
	n, err := strconv.Atoi(args.Rest[0])
	if err != nil || n < 1 || n > len(steps) {
		return tools.Result{}, tools.Usagef("there is no step %.40q; there are %d so far", args.Rest[0], len(steps))
	}
	offset, err := args.Int("offset", 1, 1, 1<<30)
	if err != nil {
		return tools.Result{}, err
	}
	limit, err := args.Int("limit", defaultLines, 1, maxLines)
	if err != nil {
		return tools.Result{}, err
	}
	reply, answer := textOf(steps[n-1])
	all := append(linesOf(reply), linesOf(answer)...)
	head := fmt.Sprintf("step %d of %d", n, len(steps))
	details := recallDetails{Step: n, Lines: len(all)}
	if !args.Has("full") && !args.Has("offset") && !args.Has("limit") {
		text := head + "\n" + brief(reply, n) + brief(answer, n)
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

// search finds the steps that have a text, in any case. The newest step is the one
// that asks.
func search(query string, steps []agent.Step) (tools.Result, error) {
	query = strings.TrimSpace(query)
	if query == "" || len(query) > maxQuery || strings.Contains(query, "\n") {
		return tools.Result{}, tools.Usagef("--search takes a text of at most %d bytes on one line", maxQuery)
	}
	var b strings.Builder
	var details recallDetails
	for _, s := range steps[:max(0, len(steps)-1)] {
		reply, answer := textOf(s)
		found := matches(append(linesOf(reply), linesOf(answer)...), query)
		if len(found) == 0 {
			continue
		}
		if details.Found = append(details.Found, s.Number); len(details.Found) > maxFound {
			continue
		}
		fmt.Fprintf(&b, "step %d\n", s.Number)
		for _, line := range found[:min(len(found), maxInStep)] {
			fmt.Fprintf(&b, "  %s\n", line)
		}
		if more := len(found) - maxInStep; more > 0 {
			fmt.Fprintf(&b, "  and %s more\n", count(more, "line"))
		}
	}
	n := len(details.Found)
	if n == 0 {
		return tools.Result{Output: fmt.Sprintf("no step before this one has %q\n", query), ExitCode: 1, Details: details}, nil
	}
	if more := n - maxFound; more > 0 {
		fmt.Fprintf(&b, "and %s more; search for something rarer\n", count(more, "step"))
	}
	return tools.Result{Output: fmt.Sprintf("%q is in %s\n%s", query, count(n, "step"), b.String()), Details: details}, nil
}

// matches are the lines that have a text, cut to what is around it.
func matches(lines []string, query string) []string {
	query = strings.ToLower(query)
	var found []string
	for _, line := range lines {
		lower := strings.ToLower(line)
		at := strings.Index(lower, query)
		if at < 0 {
			continue
		}
		if len(lower) != len(line) { // some letters have another length in the other case
			line = lower
		}
		from, to := max(0, at-aroundFound), min(len(line), at+len(query)+aroundFound)
		found = append(found, strings.TrimSpace(strings.ToValidUTF8(line[from:to], "")))
	}
	return found
}

// textOf is a step as it is shown: the reply, and what came of it.
func textOf(s agent.Step) (reply, answer string) {
	reply = "--- your reply\n" + s.Reply.Content
	if len(s.Reply.Calls) > 0 { // what runs stands in no text
		for _, command := range s.Commands {
			reply += "\n--- command\n" + command
		}
	}
	answer = "--- what came of it"
	for _, m := range s.Answers {
		answer += "\n" + m.Content
		if n := len(m.Images); n > 0 {
			answer += "\n[" + count(n, "image") + "]"
		}
	}
	if len(s.Answers) == 0 {
		answer += "\nnothing yet"
	}
	return reply, answer
}

// linesOf are the lines of a text; those that are too long are several.
func linesOf(text string) []string {
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

// brief is the beginning and the end of a text, with a word on what is between.
func brief(text string, step int) string {
	if text = strings.TrimRight(text, "\n") + "\n"; len(text) <= maxBrief {
		return text
	}
	lines := linesOf(text)
	fits := func(from, by int) int {
		n, size := 0, 0
		for at := from; at >= 0 && at < len(lines); at += by {
			if size += len(lines[at]) + 1; size > maxBrief/2 {
				break
			}
			n++
		}
		return n
	}
	head, tail := fits(0, 1), fits(len(lines)-1, -1)
	left := len(lines) - head - tail
	if left <= 0 {
		return text
	}
	return strings.Join(lines[:head], "\n") +
		fmt.Sprintf("\n[%s left out; mini-tool recall %d --full shows them]\n", count(left, "line"), step) +
		strings.Join(lines[len(lines)-tail:], "\n") + "\n"
}
