package inspect

import (
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/convert"
)

// foreign tells of the trajectories in a file of any format. A file that was met
// in a folder, and is none, is passed over.
func (w *walk) foreign(path string, named bool) error {
	info, err := os.Stat(path)
	if err == nil {
		if s, ok := w.known[path]; ok && s.same(info) {
			return w.tell(s.items)
		}
	}
	var items []*Item
	unknown := false
	for f, err := range convert.All(path) {
		if w.ctx.Err() != nil {
			return w.tell(nil)
		}
		if errors.Is(err, convert.ErrUnknown) && !named {
			unknown = true
			continue
		}
		it := &Item{Path: path, Selected: true}
		if err != nil {
			it.ID, it.State, it.Problem = nameOf(path), Broken, err.Error()
			it.Row = -len(items) - 1 // no row: it cannot be opened
		} else {
			it.ID, it.Row, it.Format, it.Attempt = f.Header.InstanceID, f.Row, f.Format, f.Header.Attempt
			it.Model = f.Header.ModelName
			it.sum(f)
		}
		items = append(items, it)
		if len(items)%100 == 0 {
			if err := w.tell(items[len(items)-100:]); err != nil {
				return err
			}
		}
	}
	if unknown && len(items) == 0 {
		return w.tell(nil)
	}
	if info != nil {
		w.known[path] = summary{info.Size(), info.ModTime(), items}
	}
	return w.tell(items)
}

// sum goes through the records once and keeps what the list shows.
func (it *Item) sum(f *convert.File) {
	var usage model.Usage
	var cost model.Cost
	var first, last time.Time
	it.State = Stopped
	for r, err := range f.Records {
		if err != nil {
			it.State, it.Problem = Broken, err.Error()
			return
		}
		if first.IsZero() {
			first = r.Time
		}
		last = r.Time
		switch r.Type {
		case trajectories.TypeMessage:
			var m struct {
				Cause trajectories.Cause `json:"cause"`
			}
			if json.Unmarshal(r.Data, &m) == nil && m.Cause == trajectories.CauseReply {
				it.Steps++
			}
		case trajectories.TypeCall, trajectories.TypeSummary:
			var c trajectories.Call
			if json.Unmarshal(trajectories.Lean(r.Data), &c) == nil {
				usage, cost = usage.Add(c.Usage), cost+c.Cost
			}
		case trajectories.TypeResume:
			it.State = Stopped
		case trajectories.TypeOutcome:
			var o trajectories.Outcome
			if err := json.Unmarshal(r.Data, &o); err != nil {
				it.State, it.Problem = Broken, err.Error()
				return
			}
			it.State, it.Class, it.Status = Ended, o.Class, o.ExitStatus
			usage, cost = o.Usage, o.Cost
			it.Took, it.patchBytes = o.Took(), len(o.Submission)
			it.Flags = nil
			it.flag(o.Autosubmitted, "autosubmitted")
			it.flag(o.Class.Counts() && len(o.Submission) == 0, "empty_patch")
			it.flag(len(o.Warnings) > 0, "warned")
		}
	}
	it.Cost, it.Tokens = cost.Known(usage), usage.Prompt+usage.Completion
	if it.State != Ended && !first.IsZero() {
		it.Took = last.Sub(first)
	}
}
