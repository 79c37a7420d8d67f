package formats

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// builder collects the records of an attempt. The header and the import record come
// first, but are encoded last.
type builder struct {
	src         source
	header      trajectories.Header
	imported    trajectories.Import
	body        []trajectories.Record
	losses      []Loss
	otherFields map[string]any // fields that are not part of the format, such as a verdict

	replies             int
	usage               model.Usage // total of the calls
	cost                model.Cost
	firstTime, lastTime time.Time // known times
	err                 error
}

func newBuilder(src source, format string) *builder {
	return &builder{src: src, imported: trajectories.Import{
		Format: format, File: src.base(), SHA256: src.sha256, Row: src.row,
	}}
}

// firstRecords is the number of records before the body.
const firstRecords = 2

// add adds a record and returns its ID.
func (b *builder) add(t trajectories.Type, at time.Time, data any) int {
	raw, err := trajectories.EncodeJSON(data)
	if err != nil && b.err == nil {
		b.err = fmt.Errorf("%s record: %w", t, err)
	}
	id := firstRecords + len(b.body) + 1
	b.body = append(b.body, trajectories.Record{ID: id, Parent: id - 1, Type: t, Time: at, Data: raw})
	b.addTime(at)
	return id
}

func (b *builder) addTime(at time.Time) {
	if at.IsZero() {
		return
	}
	if b.firstTime.IsZero() || at.Before(b.firstTime) {
		b.firstTime = at
	}
	if at.After(b.lastTime) {
		b.lastTime = at
	}
}

func (b *builder) message(m model.Message, cause trajectories.Cause, at time.Time) int {
	return b.add(trajectories.TypeMessage, at, trajectories.Message{Message: m, Cause: cause})
}

// reply adds a reply, after its call if that is known.
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

// addLoss notes information that a journal cannot represent.
func (b *builder) addLoss(description string, count int) {
	if count <= 0 {
		return
	}
	for i := range b.losses {
		if b.losses[i].Description == description {
			b.losses[i].Count += count
			return
		}
	}
	b.losses = append(b.losses, Loss{Description: description, Count: count})
}

// ending is the end of an attempt, as the file describes it.
type ending struct {
	status        string
	submission    string
	partial       string // mini only: the patch of an attempt that does not count
	autosubmitted bool   // the submission was not made by the agent
	fromWorktree  bool   // the submission is the working tree diff, even if the agent finished
	err, stack    string
	steps         int // model calls; 0 if unknown
	cost          *model.Cost
	usage         *model.Usage // total
}

// end adds the outcome. If the file has no exit status, it adds none, so the attempt
// has no result.
func (b *builder) end(e ending) {
	e.steps, e.cost, e.usage = cmp.Or(e.steps, b.replies), cmp.Or(e.cost, &b.cost), cmp.Or(e.usage, &b.usage)
	if *e.cost != 0 {
		e.usage.Unpriced = 0 // the total is known
	}
	if e.status == "" {
		b.addLoss("the file has no exit status, so the attempt has no outcome", 1)
		if *e.cost != b.cost {
			b.addLoss(fmt.Sprintf("a total cost of $%v is only in the import record", float64(*e.cost)), 1)
		}
		return
	}
	v := classify(e)
	if v.guessed {
		b.addLoss(fmt.Sprintf("unknown exit status %.60q, treated as class %s", e.status, v.class), 1)
	}
	b.add(trajectories.TypeOutcome, b.lastTime, v.outcome(e, b.firstTime, b.lastTime))
}

// done returns the file.
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
		b.imported.Losses = append(b.imported.Losses, l.String())
	}
	records := make([]trajectories.Record, 0, firstRecords+len(b.body))
	for i, data := range []any{b.header, b.imported} {
		raw, err := trajectories.EncodeJSON(data)
		if err != nil {
			return nil, fmt.Errorf("header: %w", err)
		}
		t := []trajectories.Type{trajectories.TypeHeader, trajectories.TypeImport}[i]
		records = append(records, trajectories.Record{ID: i + 1, Parent: i, Type: t, Time: b.firstTime, Data: raw})
	}
	records = append(records, b.body...)
	return &File{
		Format: b.imported.Format, Header: b.header, SHA256: b.src.sha256, Row: b.src.row,
		Losses: b.imported.Losses, Records: iterate(records),
	}, nil
}

func iterate(records []trajectories.Record) func(func(trajectories.Record, error) bool) {
	return func(yield func(trajectories.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// keepExtra keeps data about the attempt, except for the given fields and API keys.
func (b *builder) keepExtra(object json.RawMessage, without ...string) {
	var fields map[string]any
	d := json.NewDecoder(strings.NewReader(string(object)))
	d.UseNumber()
	if d.Decode(&fields) != nil {
		fields = map[string]any{}
	}
	if len(b.otherFields) > 0 {
		fields["file"] = b.otherFields
	}
	for _, name := range without {
		delete(fields, name)
	}
	b.addLoss("a setting that may be a secret was removed", removeKeys(fields))
	raw, err := trajectories.EncodeJSON(fields)
	if err != nil && b.err == nil {
		b.err = err
	}
	if len(fields) > 0 {
		b.imported.Extra = raw
	}
}

// keepUnknownFields keeps fields that are not part of the format.
func (b *builder) keepUnknownFields(document json.RawMessage, known ...string) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(document, &fields) != nil {
		return
	}
	for _, name := range known {
		delete(fields, name)
	}
	for name, value := range fields {
		var v any
		d := json.NewDecoder(strings.NewReader(string(value)))
		if d.UseNumber(); d.Decode(&v) != nil || isEmptyValue(v) {
			continue
		}
		if b.otherFields == nil {
			b.otherFields = map[string]any{}
		}
		b.otherFields[name] = v
	}
}
