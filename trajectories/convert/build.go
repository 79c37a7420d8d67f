package convert

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// builder collects the records of an attempt. The header and the import record
// stand before them and are written last, when all is known.
type builder struct {
	src    source
	header trajectories.Header
	from   trajectories.Import
	body   []trajectories.Record
	losses []Loss
	beside map[string]any // what a file says beside its own format, as a verdict

	replies     int
	usage       model.Usage // of the calls
	cost        model.Cost
	first, last time.Time // that are known
	err         error
}

func newBuilder(src source, format string) *builder {
	return &builder{src: src, from: trajectories.Import{
		Format: format, File: src.base(), SHA256: src.sha256, Row: src.row,
	}}
}

// before is the number of records that stand before the body.
const before = 2

// add appends a record and returns its id.
func (b *builder) add(t trajectories.Type, at time.Time, data any) int {
	raw, err := trajectories.Encode(data)
	if err != nil && b.err == nil {
		b.err = fmt.Errorf("%s record: %w", t, err)
	}
	id := before + len(b.body) + 1
	b.body = append(b.body, trajectories.Record{ID: id, Parent: id - 1, Type: t, Time: at, Data: raw})
	b.seen(at)
	return id
}

func (b *builder) seen(at time.Time) {
	if at.IsZero() {
		return
	}
	if b.first.IsZero() || at.Before(b.first) {
		b.first = at
	}
	if at.After(b.last) {
		b.last = at
	}
}

func (b *builder) message(m model.Message, cause trajectories.Cause, at time.Time) int {
	return b.add(trajectories.TypeMessage, at, trajectories.Message{Message: m, Cause: cause})
}

// reply adds what the model said; the call before it where anything is known of
// that.
func (b *builder) reply(m model.Message, actions []string, c *trajectories.Call, at time.Time) int {
	b.replies++
	if c != nil {
		b.usage, b.cost = b.usage.Add(c.Usage), b.cost+c.Cost
		b.add(trajectories.TypeCall, at, *c)
	}
	return b.add(trajectories.TypeMessage, at, trajectories.Message{
		Message: m, Cause: trajectories.CauseReply, Actions: actions,
	})
}

func (b *builder) execution(x trajectories.Execution, at time.Time) int {
	x.Bytes, x.Chars = int64(len(x.Output)), int64(len([]rune(string(x.Output))))
	return b.add(trajectories.TypeExecution, at, x)
}

// lose notes what has no place in a journal.
func (b *builder) lose(what string, times int) {
	if times <= 0 {
		return
	}
	for i := range b.losses {
		if b.losses[i].What == what {
			b.losses[i].Times += times
			return
		}
	}
	b.losses = append(b.losses, Loss{What: what, Times: times})
}

// ending is how an attempt ended, as its file says it.
type ending struct {
	status     string
	submission string
	partial    string // mini's own: the work of an attempt that does not count
	auto       bool   // the submission is not the agent's own word
	worktree   bool   // it is what was found in the working tree, also where the agent was done
	err, stack string
	steps      int // model calls; 0 where the file does not count them
	cost       *model.Cost
	usage      *model.Usage // in all
}

// end adds the outcome. A file that does not say how its attempt ended gives
// none: then the attempt has no result.
func (b *builder) end(e ending) {
	e.steps, e.cost, e.usage = cmp.Or(e.steps, b.replies), cmp.Or(e.cost, &b.cost), cmp.Or(e.usage, &b.usage)
	if *e.cost != 0 {
		e.usage.Unpriced = 0 // the total is known all the same
	}
	if e.status == "" {
		b.lose("the file does not say how the attempt ended: it has no outcome", 1)
		if *e.cost != b.cost {
			b.lose(fmt.Sprintf("a total cost of $%v stands in the import record alone", float64(*e.cost)), 1)
		}
		return
	}
	v := verdictOn(e)
	if v.guessed {
		b.lose(fmt.Sprintf("the exit status %.60q is not known here; it is taken for the class %s", e.status, v.class), 1)
	}
	b.add(trajectories.TypeOutcome, b.last, v.outcome(e, b.first, b.last))
}

// done puts the file together.
func (b *builder) done() (*File, error) {
	if b.err != nil {
		return nil, b.err
	}
	b.header.Format = trajectories.Format
	b.header.Attempt = max(b.header.Attempt, 1)
	if b.header.InstanceID == "" {
		b.header.InstanceID = b.src.name()
		if b.src.row > 0 {
			b.header.InstanceID += fmt.Sprintf("-%d", b.src.row)
		}
	}
	for _, l := range b.losses {
		b.from.Lost = append(b.from.Lost, l.String())
	}
	records := make([]trajectories.Record, 0, before+len(b.body))
	for i, data := range []any{b.header, b.from} {
		raw, err := trajectories.Encode(data)
		if err != nil {
			return nil, fmt.Errorf("header: %w", err)
		}
		t := []trajectories.Type{trajectories.TypeHeader, trajectories.TypeImport}[i]
		records = append(records, trajectories.Record{ID: i + 1, Parent: i, Type: t, Time: b.first, Data: raw})
	}
	records = append(records, b.body...)
	return &File{
		Format: b.from.Format, Header: b.header, SHA256: b.src.sha256, Row: b.src.row,
		Lost: b.from.Lost, Records: sequence(records),
	}, nil
}

func sequence(records []trajectories.Record) func(func(trajectories.Record, error) bool) {
	return func(yield func(trajectories.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// extra keeps what a file says of the whole attempt, but for the fields that
// have a place of their own and for what looks like a key.
func (b *builder) extra(object json.RawMessage, without ...string) {
	var fields map[string]any
	d := json.NewDecoder(strings.NewReader(string(object)))
	d.UseNumber()
	if d.Decode(&fields) != nil {
		fields = map[string]any{}
	}
	if len(b.beside) > 0 {
		fields["file"] = b.beside
	}
	for _, name := range without {
		delete(fields, name)
	}
	b.lose("a setting that looks like a key was left out", withoutKeys(fields))
	raw, err := trajectories.Encode(fields)
	if err != nil && b.err == nil {
		b.err = err
	}
	if len(fields) > 0 {
		b.from.Extra = raw
	}
}

// others keeps the fields of a file that its format does not have.
func (b *builder) others(file json.RawMessage, own ...string) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(file, &fields) != nil {
		return
	}
	for _, name := range own {
		delete(fields, name)
	}
	for name, value := range fields {
		var v any
		d := json.NewDecoder(strings.NewReader(string(value)))
		if d.UseNumber(); d.Decode(&v) != nil || empty(v) {
			continue
		}
		if b.beside == nil {
			b.beside = map[string]any{}
		}
		b.beside[name] = v
	}
}
