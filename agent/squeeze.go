package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// squeeze is a conversation that is to become shorter: what of it stays in any
// case, and what may be replaced.
type squeeze struct {
	run    *run
	blocks []trajectories.Block
	keep   int     // the first block of the last messages, which stay
	scale  float64 // tokens by estimated tokens
	step   map[int]int
}

// piece are blocks that go together: a reply with all that answers it, or what
// stands for steps already.
type piece []trajectories.Block

func (r *run) squeeze() *squeeze {
	s := &squeeze{run: r, blocks: r.view.Blocks(), scale: r.factor(), step: map[int]int{}}
	replies := 0
	for i, cause := range r.causes {
		if cause == trajectories.CauseReply {
			replies++
		}
		s.step[r.records[i]] = replies
	}
	// A reply is never parted from what answers it.
	s.keep = max(0, len(s.blocks)-cmp.Or(r.cfg.CompactionKeep, DefaultCompactionKeep))
	for s.keep > 0 && s.answers(s.blocks[s.keep]) {
		s.keep--
	}
	return s
}

func (s *squeeze) tokens(messages []model.Message) int64 {
	return int64(s.scale * float64(s.run.estimate(messages)))
}

// cause is that of a block which stands for one message; empty for others.
func (s *squeeze) cause(b trajectories.Block) trajectories.Cause {
	i, ok := slices.BinarySearch(s.run.records, b.From)
	if !ok || b.From != b.To {
		return ""
	}
	return s.run.causes[i]
}

// answers says whether a block belongs to the reply before it.
func (s *squeeze) answers(b trajectories.Block) bool {
	switch s.cause(b) {
	case trajectories.CauseObservation, trajectories.CauseFormatError, trajectories.CauseRejection,
		trajectories.CauseNotRun, trajectories.CauseMalformedPatch:
		return true
	}
	return b.Role == model.Tool
}

// stays says whether a block is kept whatever happens: the prompts, and what a
// person wrote.
func (s *squeeze) stays(b trajectories.Block) bool {
	if b.Replaced {
		return false
	}
	switch s.cause(b) {
	case trajectories.CausePrompt, trajectories.CauseInterruption, trajectories.CauseSteer,
		trajectories.CauseFollowUp, trajectories.CauseCommand:
		return true
	case "": // another agent's, of which nobody knows more
		return b.Role == model.User || b.Role == model.System
	case trajectories.CauseRejection:
		return strings.HasPrefix(b.Content, rejectionSays)
	}
	return b.Role == model.System
}

// rounds are the steps between what stays, each with its pieces.
func (s *squeeze) rounds() [][]piece {
	var rounds [][]piece
	open := false // the last round goes on
	for i := 0; i < s.keep; {
		end := i + 1
		for end < s.keep && s.answers(s.blocks[end]) {
			end++
		}
		p := piece(s.blocks[i:end])
		i = end
		if slices.ContainsFunc(p, s.stays) {
			open = false
			continue
		}
		if !open {
			rounds = append(rounds, nil)
		}
		n := len(rounds) - 1
		rounds[n], open = append(rounds[n], p), true
	}
	return rounds
}

// old says that a round is nothing but what stands for one.
func old(round []piece) bool {
	return len(round) == 1 && len(round[0]) == 1 && round[0][0].Replaced
}

// span are the records of a round.
func span(round []piece) (from, to int) {
	last := round[len(round)-1]
	return round[0][0].From, last[len(last)-1].To
}

// steps are the first and the last step of a round, from 1.
func (s *squeeze) steps(round []piece) (first, last int) {
	from, to := span(round)
	first, last = s.step[from], s.step[to]
	return max(1, min(first, last)), max(1, last)
}

// worthIt says whether summaries of rounds would save enough. A summary is taken
// for a quarter of what it is of, or as long as it may be. Where the last compaction
// has left more than the limit, which the next will not change, there must be as
// many new messages as are kept: no summary is made for each step.
func (s *squeeze) worthIt(rounds [][]piece) bool {
	var saved int64
	fresh := 0
	longest := int64(float64(s.run.cfg.summaryMaxChars()) / 3.5)
	for _, round := range rounds {
		if old(round) {
			continue
		}
		all := messagesOf(round)
		n := s.run.estimate(all)
		fresh += len(all)
		saved += n - min(longest, n/4)
	}
	if s.run.overlong && fresh < len(s.blocks)-s.keep {
		return false
	}
	return s.scale*float64(saved) >= leastSaved*float64(s.run.cfg.compactionTokens())
}

func messagesOf(round []piece) []model.Message {
	var all []model.Message
	for _, p := range round {
		for _, b := range p {
			all = append(all, b.Message)
		}
	}
	return all
}

// elided has a line in place of each old observation, and where that is not enough
// one in place of the oldest steps.
func (s *squeeze) elided() []trajectories.Replacement {
	var all []trajectories.Replacement
	for _, b := range s.blocks[:s.keep] {
		if s.cause(b) != trajectories.CauseObservation || b.Replaced {
			continue
		}
		line := s.outputLine(b)
		if len(line) >= len(b.Content) && len(b.Images) == 0 {
			continue
		}
		m := model.Message{Role: b.Role, Content: line, CallID: b.CallID}
		all = append(all, trajectories.Replacement{From: b.From, To: b.To, Message: m})
	}
	limit := float64(s.run.cfg.compactionTokens())
	if float64(s.after(all)) <= enough*limit {
		return all
	}
	for _, round := range s.rounds() {
		if old(round) {
			continue
		}
		for n := range round { // one more step at a time
			taken := round[:n+1]
			from, to := span(taken)
			without := slices.DeleteFunc(slices.Clone(all), func(r trajectories.Replacement) bool { return from <= r.From && r.To <= to })
			without = append(without, trajectories.Replacement{From: from, To: to, Join: true, Message: model.Message{
				Role: model.User, Content: s.label(taken, "were taken out to save room"),
			}})
			slices.SortFunc(without, func(a, b trajectories.Replacement) int { return a.From - b.From })
			done := float64(s.after(without)) <= roomy*limit
			if done || n == len(round)-1 {
				all = without
			}
			if done {
				return all
			}
		}
	}
	return all
}

// after is about how long the prompt is with replacements.
func (s *squeeze) after(all []trajectories.Replacement) int64 {
	trial := s.run.view
	trial.Compact(0, trajectories.Compaction{Replaced: all})
	return s.tokens(trial.Messages())
}

// outputLine stands for what a command gave.
func (s *squeeze) outputLine(b trajectories.Block) string {
	how := "run the command again to see it"
	if s.run.recalls() {
		how = fmt.Sprintf("mini-tool recall %d shows it", s.step[b.From])
	}
	return fmt.Sprintf("[What this command gave, %s characters, was taken out to save room; %s]", thousands(utf8.RuneCountInString(b.Content)), how)
}

// label says which steps a message stands for.
func (s *squeeze) label(round []piece, what string) string {
	first, last := s.steps(round)
	steps := fmt.Sprintf("Steps %d to %d ", first, last)
	if first == last {
		steps = fmt.Sprintf("Step %d ", first)
		what = strings.Replace(strings.Replace(what, "were ", "was ", 1), "are ", "is ", 1)
	}
	how := ""
	if s.run.recalls() {
		how = "; mini-tool recall STEP shows a step again"
	}
	return "[" + steps + what + how + "]"
}

// recalls says whether commands can ask for earlier steps.
func (r *run) recalls() bool {
	return slices.ContainsFunc(r.abilities.Tools, func(a Ability) bool { return a.Name == "recall" })
}

func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
