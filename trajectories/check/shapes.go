package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

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

// data reads the data of a record field by field, so that what is wrong has a
// path; it is as much of the struct as could be read.
func (j *journal) data(s shape, raw json.RawMessage) any {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		j.problem(j.line, "data", "%s", plain(err))
		return nil
	}
	for _, name := range s.must {
		if v, ok := fields[name]; !ok || string(v) == "null" {
			j.problem(j.line, "data."+name, "required field is missing")
		}
	}
	v := reflect.New(s.of)
	j.fill(v.Elem(), fields)
	return v.Interface()
}

func (j *journal) fill(v reflect.Value, fields map[string]json.RawMessage) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			j.fill(v.Field(i), fields)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		raw, ok := fields[name]
		if !ok || name == "" || name == "-" || string(raw) == "null" {
			continue
		}
		if err := json.Unmarshal(raw, v.Field(i).Addr().Interface()); err != nil {
			path := "data." + name
			text := plain(err)
			if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
				path = join(path, wrong.Field)
				text = fmt.Sprintf("%s is needed, this is %s", wantedOf(wrong.Type), valueWord(wrong.Value))
			}
			j.problem(j.line, path, "%s", text)
		}
	}
}

func join(path, more string) string {
	switch {
	case path == "":
		return more
	case more == "":
		return path
	}
	return path + "." + more
}

func wanted(v any) string { return wantedOf(reflect.TypeOf(v)) }

// wantedOf says in words what a Go type takes.
func wantedOf(t reflect.Type) string {
	if t == reflect.TypeFor[time.Time]() {
		return "a time of RFC 3339"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64, reflect.Float32:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Pointer:
		return wantedOf(t.Elem())
	}
	return "a whole number"
}

// valueWord is what encoding/json calls a value, in the words used here.
func valueWord(v string) string {
	switch {
	case v == "object":
		return "an object"
	case v == "array":
		return "a list"
	case v == "bool":
		return "true or false"
	case v == "string":
		return "a string"
	case strings.HasPrefix(v, "number"):
		return strings.TrimSpace("the " + v)
	}
	return v
}

// plain is an error of encoding/json, short and without Go's names.
func plain(err error) string {
	text := strings.TrimPrefix(err.Error(), "json: ")
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		text = fmt.Sprintf("%s is needed, this is %s", wantedOf(wrong.Type), valueWord(wrong.Value))
	}
	if len(text) > 300 {
		text = text[:300] + "..."
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

var plainKey = regexp.MustCompile(`^[\w$-]{1,80}$`)

// clip bounds and cleans a key of a stranger's.
func clip(key string) string {
	if plainKey.MatchString(key) {
		return key
	}
	return fmt.Sprintf("%.80q", key)
}
