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

// compactor is the state of one compaction: which blocks are kept, and which
// may be replaced.
type compactor struct {
	run      *run
	blocks   []trajectories.Block
	keepFrom int     // index of the first of the last messages, which are kept
	scale    float64 // provider tokens per estimated token
	step     map[int]int
}

// turn is a reply with the messages that answer it, or a block that already
// replaces steps.
type turn []trajectories.Block

func (r *run) newCompactor() *compactor {
	c := &compactor{run: r, blocks: r.history.Blocks(), scale: r.tokenScale(), step: map[int]int{}}
	replies := 0
	for i, cause := range r.causes {
		if cause == trajectories.CauseReply {
			replies++
		}
		c.step[r.history.Records()[i]] = replies
	}
	// A reply is not separated from the messages that answer it.
	c.keepFrom = max(0, len(c.blocks)-cmp.Or(r.cfg.CompactionKeep, DefaultCompactionKeep))
	for c.keepFrom > 0 && c.isAnswer(c.blocks[c.keepFrom]) {
		c.keepFrom--
	}
	return c
}

func (c *compactor) tokens(messages []model.Message) int64 {
	return int64(c.scale * float64(model.EstimateTokens(messages)))
}

// cause returns the cause of a block that is one message; empty for others.
func (c *compactor) cause(b trajectories.Block) trajectories.Cause {
	i, ok := slices.BinarySearch(c.run.history.Records(), b.From)
	if !ok || b.From != b.To {
		return ""
	}
	return c.run.causes[i]
}

// isAnswer reports whether a block belongs to the reply before it.
func (c *compactor) isAnswer(b trajectories.Block) bool {
	switch c.cause(b) {
	case trajectories.CauseObservation, trajectories.CauseFormatError, trajectories.CauseRejection,
		trajectories.CauseNotRun, trajectories.CauseMalformedPatch:
		return true
	}
	return b.Role == model.Tool
}

// isPinned reports whether a block is always kept: prompts and messages of the
// user.
func (c *compactor) isPinned(b trajectories.Block) bool {
	if b.IsReplacement {
		return false
	}
	switch c.cause(b) {
	case trajectories.CausePrompt, trajectories.CauseInterruption, trajectories.CauseSteer,
		trajectories.CauseFollowUp, trajectories.CauseUserCommand:
		return true
	case "": // imported from another agent: the cause is unknown
		return b.Role == model.User || b.Role == model.System
	case trajectories.CauseRejection:
		return strings.HasPrefix(b.Content, userRejection)
	}
	return b.Role == model.System
}

// segments returns the turns between pinned blocks.
func (c *compactor) segments() [][]turn {
	var segments [][]turn
	continues := false // the last segment continues
	for i := 0; i < c.keepFrom; {
		end := i + 1
		for end < c.keepFrom && c.isAnswer(c.blocks[end]) {
			end++
		}
		t := turn(c.blocks[i:end])
		i = end
		if slices.ContainsFunc(t, c.isPinned) {
			continues = false
			continue
		}
		if !continues {
			segments = append(segments, nil)
		}
		n := len(segments) - 1
		segments[n], continues = append(segments[n], t), true
	}
	return segments
}

// isReplaced reports whether a segment is only the replacement of an earlier
// one.
func isReplaced(segment []turn) bool {
	return len(segment) == 1 && len(segment[0]) == 1 && segment[0][0].IsReplacement
}

// recordRange returns the first and the last record of a segment.
func recordRange(segment []turn) (from, to int) {
	last := segment[len(segment)-1]
	return segment[0][0].From, last[len(last)-1].To
}

// stepRange returns the first and the last step of a segment, from 1.
func (c *compactor) stepRange(segment []turn) (first, last int) {
	from, to := recordRange(segment)
	first, last = c.step[from], c.step[to]
	return max(1, min(first, last)), max(1, last)
}

// isWorthwhile reports whether summaries would save enough tokens. It estimates
// a summary at a quarter of its text, or at the maximum length. If the last
// compaction left more than the limit, at least as many new messages as are
// kept must have come since, so that a summary is not made for each step.
func (c *compactor) isWorthwhile(segments [][]turn) bool {
	var saved int64
	newMessages := 0
	maxSummary := int64(float64(c.run.cfg.summaryMaxChars()) / 3.5)
	for _, segment := range segments {
		if isReplaced(segment) {
			continue
		}
		messages := messagesOf(segment)
		n := model.EstimateTokens(messages)
		newMessages += len(messages)
		saved += n - min(maxSummary, n/4)
	}
	if c.run.stillTooLong && newMessages < len(c.blocks)-c.keepFrom {
		return false
	}
	return c.scale*float64(saved) >= minSaved*float64(c.run.cfg.compactionTokens())
}

func messagesOf(segment []turn) []model.Message {
	var all []model.Message
	for _, turn := range segment {
		for _, b := range turn {
			all = append(all, b.Message)
		}
	}
	return all
}

// elideOutputs replaces each old observation by a line and, if that is not
// enough, the oldest steps.
func (c *compactor) elideOutputs() []trajectories.Replacement {
	var replacements []trajectories.Replacement
	for _, b := range c.blocks[:c.keepFrom] {
		if c.cause(b) != trajectories.CauseObservation || b.IsReplacement {
			continue
		}
		line := c.elidedOutputNote(b)
		if len(line) >= len(b.Content) && len(b.Images) == 0 {
			continue
		}
		m := model.Message{Role: b.Role, Content: line, ToolCallID: b.ToolCallID}
		replacements = append(replacements, trajectories.Replacement{From: b.From, To: b.To, Message: m})
	}
	return c.elideSteps(replacements)
}

// elideSteps adds to replacements of outputs, if they are not enough, a line in
// place of the oldest steps of each segment, until the target is reached.
func (c *compactor) elideSteps(replacements []trajectories.Replacement) []trajectories.Replacement {
	limit := float64(c.run.cfg.compactionTokens())
	size, total := c.sizes(replacements)
	if c.scale*float64(total) <= elideStepsAbove*limit {
		return replacements
	}
	for _, segment := range c.segments() {
		if isReplaced(segment) {
			continue
		}
		n, line := 0, trajectories.Replacement{}
		for done := false; n < len(segment) && !done; {
			for _, b := range segment[n] {
				total -= size[b.From]
			}
			n++
			done = c.scale*float64(total) <= elideStepsTo*limit
		}
		line.From, line.To = recordRange(segment[:n])
		line.Join, line.Message = true, model.Message{Role: model.User, Content: c.segmentNote(segment[:n], "were taken out to save room")}
		replacements = slices.DeleteFunc(replacements, func(r trajectories.Replacement) bool { return line.From <= r.From && r.To <= line.To })
		replacements = append(replacements, line)
		if n < len(segment) {
			break
		}
	}
	slices.SortFunc(replacements, func(a, b trajectories.Replacement) int { return a.From - b.From })
	return replacements
}

// sizes estimates the tokens of each block, by its first record and after the
// given replacements, and of all blocks.
func (c *compactor) sizes(replacements []trajectories.Replacement) (size map[int]int64, total int64) {
	size = map[int]int64{}
	next := 0
	for _, b := range c.blocks {
		m := b.Message
		if next < len(replacements) && replacements[next].From == b.From {
			m, next = replacements[next].Message, next+1
		}
		size[b.From] = model.EstimateTokens([]model.Message{m})
		total += size[b.From]
	}
	return size, total
}

// elidedOutputNote is the line in place of a command's output.
func (c *compactor) elidedOutputNote(b trajectories.Block) string {
	hint := "run the command again to see it"
	if c.run.hasRecall() {
		hint = fmt.Sprintf("mini-tool recall %d shows it", c.step[b.From])
	}
	return fmt.Sprintf("[What this command gave, %s characters, was taken out to save room; %s]", thousands(utf8.RuneCountInString(b.Content)), hint)
}

// segmentNote says which steps a message replaces.
func (c *compactor) segmentNote(segment []turn, what string) string {
	first, last := c.stepRange(segment)
	steps := fmt.Sprintf("Steps %d to %d ", first, last)
	if first == last {
		steps = fmt.Sprintf("Step %d ", first)
		what = strings.Replace(strings.Replace(what, "were ", "was ", 1), "are ", "is ", 1)
	}
	hint := ""
	if c.run.hasRecall() {
		hint = "; mini-tool recall STEP shows a step again"
	}
	return "[" + steps + what + hint + "]"
}

// hasRecall reports whether commands can call the recall tool.
func (r *run) hasRecall() bool {
	return slices.ContainsFunc(r.capabilities.Tools, func(a Capability) bool { return a.Name == "recall" })
}

func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
