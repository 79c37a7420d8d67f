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

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// maxQuoted bounds what a prompt for a summary shows of one message, in characters.
const maxQuoted = 4000

// maxReason bounds why there is no summary, in bytes.
const maxReason = 500

func (c Config) summaryMaxChars() int { return cmp.Or(c.SummaryMaxChars, DefaultSummaryMaxChars) }

// summarize has a summary in place of each round that is not one already. All of
// them are asked for in one call; where it fails, or leaves some out, extracts
// stand for them, and fallback says why.
func (r *run) summarize(ctx context.Context, s *squeeze, rounds [][]piece) (all []trajectories.Replacement, fallback string, err error) {
	var fresh [][]piece
	for _, round := range rounds {
		if !old(round) {
			fresh = append(fresh, round)
		}
	}
	prompt, err := s.summaryPrompt(fresh)
	if err != nil {
		return nil, "", err
	}
	reply, err := r.askForSummary(ctx, prompt)
	if _, halted := errors.AsType[*Feedback](err); err != nil && (halted || ctx.Err() != nil || errors.Is(err, errNotRecorded)) {
		return nil, "", err
	}
	var texts []string
	if err == nil {
		texts, err = parts(reply.Message.Content, len(fresh))
	}
	if err != nil {
		fallback = clipped(strings.ToValidUTF8(err.Error(), "?"), maxReason)
		r.warnOfExtracts(fallback)
	}
	for i, round := range fresh {
		text, what := "", "are shown as an extract"
		if i < len(texts) {
			text = texts[i]
		}
		if text == "" {
			text = s.extract(round)
		} else {
			text, what = clipped(text, r.cfg.summaryMaxChars()), "are shown in summary"
		}
		from, to := span(round)
		all = append(all, trajectories.Replacement{From: from, To: to, Join: true, Message: model.Message{
			Role: model.User, Content: s.label(round, what+" to save room") + "\n\n" + text,
		}})
	}
	return all, fallback, nil
}

// warnOfExtracts says once that there are summaries missing.
func (r *run) warnOfExtracts(why string) {
	if !r.extracted {
		r.extracted = true
		r.warnings = append(r.warnings, "an extract of commands stands where a summary of old steps was wanted: "+why)
	}
}

// errNotRecorded is that the journal could not be written, which ends the attempt.
var errNotRecorded = errors.New("what a summary took could not be recorded")

// askForSummary makes the one call. What it takes counts as cost and time, and not
// as a step.
func (r *run) askForSummary(ctx context.Context, prompt string) (model.Reply, error) {
	m := r.Summary
	if m == nil {
		m = r.Model
	}
	within, done := r.Talk.begin(ctx)
	defer done()
	start := time.Now()
	r.began(Thinking, "")
	reply, err := m.Query(within, []model.Message{{Role: model.User, Content: prompt}})
	r.usage, r.cost = r.usage.Add(reply.Usage), r.cost+reply.Cost
	if _, recErr := r.record(trajectories.TypeSummary, callRecord(start, reply, err)); recErr != nil {
		return reply, errors.Join(errNotRecorded, recErr)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	case err != nil && errors.Is(context.Cause(within), errHalted):
		err = &Feedback{Reason: "UserInterruption"}
	case err == nil && strings.TrimSpace(reply.Message.Content) == "":
		err = errors.New("the model wrote no summary")
	}
	return reply, err
}

// callRecord is what a query took.
func callRecord(start time.Time, reply model.Reply, err error) trajectories.Call {
	call := trajectories.Call{
		Usage: reply.Usage, Cost: reply.Cost, Finish: reply.Finish, Model: reply.Model,
		Start: start, Duration: trajectories.Seconds(time.Since(start)),
		Waited: trajectories.Seconds(reply.Waited), Tries: reply.Tries, Raw: reply.Raw,
		Attempts: trajectories.Attempts(reply.Attempts),
	}
	if err != nil {
		call.Error = err.Error()
	}
	return call
}

// summaryPrompt is the template's, with the rounds in it.
func (s *squeeze) summaryPrompt(rounds [][]piece) (string, error) {
	list := make([]map[string]any, len(rounds))
	for i, round := range rounds {
		first, last := s.steps(round)
		list[i] = summaryPart(i+1, first, last, s.quoted(round))
	}
	return s.run.templates.summary.render(merged(s.run.variables(), summaryValues(list, s.run.cfg.summaryMaxChars())))
}

// quoted is a round for who is to sum it up.
func (s *squeeze) quoted(round []piece) string {
	var t strings.Builder
	for _, p := range round {
		for _, b := range p {
			text := clippedMiddle(b.Content, maxQuoted)
			switch {
			case b.Replaced && s.cause(b) == "":
				_, text, _ = strings.Cut(b.Content, "\n\n")
				fmt.Fprintf(&t, "[summary of what came before]\n%s\n\n", cmp.Or(text, b.Content))
				continue
			case b.Role == model.Assistant:
				fmt.Fprintf(&t, "[step %d, the assistant]\n", s.step[b.From])
			default:
				t.WriteString("[what it was answered]\n")
			}
			t.WriteString(text)
			for _, c := range b.Calls {
				t.WriteString("\n" + clippedMiddle(c.Arguments, maxQuoted))
			}
			t.WriteString("\n\n")
		}
	}
	return strings.TrimSpace(t.String())
}

// partLine begins the summary of a part.
var partLine = lazyregexp.New(`(?m)^[=#* ]*Part (\d{1,6})\b[^\n]*$`)

// parts takes a reply apart. A part that is not there is empty; where none is, all
// of the reply is the last one's.
func parts(reply string, n int) ([]string, error) {
	texts := make([]string, n)
	marks := partLine.FindAllStringSubmatchIndex(reply, -1)
	for i, m := range marks {
		end := len(reply)
		if i+1 < len(marks) {
			end = marks[i+1][0]
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

// extract is what can be said of a round without a model: which commands were run,
// how they ended and the last line of each.
func (s *squeeze) extract(round []piece) string {
	most := s.run.cfg.summaryMaxChars()
	var before string
	var lines []string
	for _, p := range round {
		for _, b := range p {
			if b.Replaced && s.cause(b) == "" {
				_, text, _ := strings.Cut(b.Content, "\n\n")
				before = clippedMiddle(text, most/2) + "\n"
			}
			for _, f := range s.run.facts {
				if f.record == b.From {
					lines = append(lines, fmt.Sprintf("step %d: %s", s.step[b.From], f))
				}
			}
		}
	}
	room, first := most-utf8.RuneCountInString(before)-60, len(lines)
	for first > 0 && room-utf8.RuneCountInString(lines[first-1])-1 > 0 {
		first--
		room -= utf8.RuneCountInString(lines[first]) + 1
	}
	if first > 0 {
		before += fmt.Sprintf("(%d earlier commands are left out)\n", first)
	}
	return clipped(before+strings.Join(lines[first:], "\n"), most)
}

// clipped is the beginning of a text, in characters.
func clipped(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return text[:prefix([]byte(text), max(0, most-4))] + " ..."
}

// clippedMiddle is the beginning and the end of a text.
func clippedMiddle(text string, most int) string {
	n := utf8.RuneCountInString(text)
	if n <= most {
		return text
	}
	b := []byte(text)
	return text[:prefix(b, most/2)] + fmt.Sprintf("\n[... %d characters left out ...]\n", n-most/2*2) + text[suffix(b, most/2):]
}
