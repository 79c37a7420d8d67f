package agent

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"github.com/minibench/mini/trajectories"
)

// recorded is a tool call of the past, and where it is on record.
type recorded struct {
	record int
	trajectories.ToolCall
}

// askedOn passes records on, and keeps the tool calls that stand on the branch
// that is gone on from.
func askedOn(records iter.Seq2[trajectories.Record, error], list *[]recorded) iter.Seq2[trajectories.Record, error] {
	return func(yield func(trajectories.Record, error) bool) {
		for r, err := range records {
			switch {
			case err != nil:
			case r.Type == trajectories.TypeResume: // what came after its parent was left behind
				*list = askedBefore(*list, r.Parent+1)
			case r.Type == trajectories.TypeTool:
				a := recorded{record: r.ID}
				if err = json.Unmarshal(r.Data, &a.ToolCall); err != nil {
					err = fmt.Errorf("record %d: %w", r.ID, err)
				}
				*list = append(*list, a)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// askedBefore are those on record before another record.
func askedBefore(list []recorded, record int) []recorded {
	return slices.DeleteFunc(list, func(a recorded) bool { return a.record >= record })
}

func toolCalls(list []recorded) []trajectories.ToolCall {
	var calls []trajectories.ToolCall
	for _, a := range list {
		calls = append(calls, a.ToolCall)
	}
	return calls
}
