package check

import (
	"encoding/json"
	"reflect"

	"github.com/minibench/mini/trajectories"
)

// shape is what the data of a record must be: a struct, with the fields that
// may not be missing.
type shape struct {
	of   reflect.Type
	must []string
}

func shapeOf[T any](must ...string) shape { return shape{reflect.TypeFor[T](), must} }

// shapes are those of the types of records.
var shapes = map[trajectories.Type]shape{
	trajectories.TypeHeader:     shapeOf[trajectories.Header]("format", "instance_id", "attempt"),
	trajectories.TypeImport:     shapeOf[trajectories.Import]("format", "file", "sha256"),
	trajectories.TypeResume:     shapeOf[trajectories.Resume]("record"),
	trajectories.TypeReplay:     shapeOf[trajectories.Replay]("record", "match"),
	trajectories.TypeMessage:    shapeOf[trajectories.Message]("role", "content", "cause"),
	trajectories.TypeContext:    shapeOf[trajectories.Context]("sent"),
	trajectories.TypeSummary:    shapeOf[trajectories.Call]("usage", "cost", "start"),
	trajectories.TypeCompaction: shapeOf[trajectories.Compaction]("policy", "replaced"),
	trajectories.TypeCall:       shapeOf[trajectories.Call]("usage", "cost", "start"),
	trajectories.TypeExecution:  shapeOf[trajectories.Execution]("command", "output", "returncode"),
	trajectories.TypeSpent:      shapeOf[trajectories.Spent]("child", "usage", "cost"),
	trajectories.TypeDecision:   shapeOf[trajectories.Decision]("command", "action"),
	trajectories.TypeLimits:     shapeOf[trajectories.Limits]("steps", "cost"),
	trajectories.TypeScrub:      shapeOf[trajectories.Scrub]("ok"),
	trajectories.TypeStart:      shapeOf[trajectories.Start]("base", "tree"),
	trajectories.TypeCheck:      shapeOf[trajectories.Check]("applies"),
	trajectories.TypeDiff:       shapeOf[trajectories.Diff]("patch"),
	trajectories.TypeOutcome:    shapeOf[trajectories.Outcome]("class", "exit_status", "submission", "steps", "usage", "cost"),
	trajectories.TypeTool:       shapeOf[trajectories.ToolCall]("name", "output", "returncode", "start", "duration"),
}

// data reads the data of a record; it is as much of the struct as could be read.
func (j *journal) data(s shape, raw json.RawMessage) any {
	v := reflect.New(s.of).Interface()
	j.fields.At("data", func() { j.fields.Read(raw, v, s.must...) })
	return v
}
