package check

import (
	"encoding/json"
	"reflect"

	"github.com/minibench/mini/trajectories"
)

// recordSchema is the Go type of a record's data, and the fields that are required.
type recordSchema struct {
	typ      reflect.Type
	required []string
}

func schemaOf[T any](required ...string) recordSchema {
	return recordSchema{reflect.TypeFor[T](), required}
}

// recordSchemas are the schemas by record type.
var recordSchemas = map[trajectories.Type]recordSchema{
	trajectories.TypeHeader:     schemaOf[trajectories.Header]("format", "instance_id", "attempt"),
	trajectories.TypeImport:     schemaOf[trajectories.Import]("format", "file", "sha256"),
	trajectories.TypeResume:     schemaOf[trajectories.Resume]("record"),
	trajectories.TypeReplay:     schemaOf[trajectories.Replay]("record", "match"),
	trajectories.TypeMessage:    schemaOf[trajectories.Message]("role", "content", "cause"),
	trajectories.TypeContext:    schemaOf[trajectories.PromptContext]("sent"),
	trajectories.TypeSummary:    schemaOf[trajectories.Call]("usage", "cost", "start"),
	trajectories.TypeCompaction: schemaOf[trajectories.Compaction]("policy", "replaced"),
	trajectories.TypeCall:       schemaOf[trajectories.Call]("usage", "cost", "start"),
	trajectories.TypeExecution:  schemaOf[trajectories.Execution]("command", "output", "returncode"),
	trajectories.TypeChildCall:  schemaOf[trajectories.ChildCall]("child", "usage", "cost"),
	trajectories.TypeExchange:   schemaOf[trajectories.Exchange]("dialect", "thread", "request", "usage", "cost", "start"),
	trajectories.TypeAgentRun:   schemaOf[trajectories.AgentRun]("name", "command", "exit_code", "output"),
	trajectories.TypeDecision:   schemaOf[trajectories.CommandDecision]("command", "action"),
	trajectories.TypeLimits:     schemaOf[trajectories.Limits]("steps", "cost"),
	trajectories.TypeModel:      schemaOf[trajectories.ModelChange]("name"),
	trajectories.TypeScrub:      schemaOf[trajectories.Scrub]("ok"),
	trajectories.TypeStartState: schemaOf[trajectories.StartState]("base", "tree"),
	trajectories.TypePatchCheck: schemaOf[trajectories.PatchCheck]("applies"),
	trajectories.TypeDiff:       schemaOf[trajectories.Diff]("patch"),
	trajectories.TypeOutcome:    schemaOf[trajectories.Outcome]("class", "exit_status", "submission", "steps", "usage", "cost"),
	trajectories.TypeTool:       schemaOf[trajectories.ToolCall]("name", "output", "returncode", "start", "duration"),
}

// data decodes the data of a record, as far as it is valid, and reports problems.
func (j *journalChecker) data(s recordSchema, raw json.RawMessage) any {
	v := reflect.New(s.typ).Interface()
	j.fields.Within("data", func() { j.fields.Read(raw, v, s.required...) })
	return v
}
