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

// builder collects the records of an attempt. It encodes the header and the import record
// last, since readers change them until the end.
type builder struct {
	src         source
	header      trajectories.Header
	imported    trajectories.Import
	body        []trajectories.Record // all records after the import record
	losses      []Loss
	otherFields map[string]any // fields that are not part of the format, such as a verdict

	replies             int         // number of replies
	messageCount        int         // number of messages
	filled              int         // number of messages that are not empty
	usage               model.Usage // total of the calls
	cost                model.Cost  // total of the calls
	firstTime, lastTime time.Time   // of the records; zero if no time is known
	err                 error       // first error
}

func newBuilder(src source, format string) *builder {
	return &builder{src: src, imported: trajectories.Import{
		Format: format, File: src.base(), SHA256: src.sha256, Row: src.row,
	}}
}

// firstRecords is the number of records before builder.body: header and import record.
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

// addTime updates firstTime and lastTime.
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

// addMessage adds a message other than a reply.
func (b *builder) addMessage(m model.Message, cause trajectories.Cause, at time.Time) int {
	b.count(m)
	return b.add(trajectories.TypeMessage, at, trajectories.Message{Message: m, Cause: cause})
}

// addReply adds the call of a reply, unless c is nil, and the reply.
func (b *builder) addReply(m model.Message, actions []string, c *trajectories.Call, at time.Time) int {
	b.replies++
	b.count(m)
	if c != nil {
		b.usage, b.cost = b.usage.Add(c.Usage), b.cost+c.Cost
		b.add(trajectories.TypeCall, at, *c)
	}
	return b.add(trajectories.TypeMessage, at, trajectories.Message{
		Message: m, Cause: trajectories.CauseReply, Actions: actions,
	})
}

// count counts a message, and whether anything was read of it.
func (b *builder) count(m model.Message) {
	b.messageCount++
	if strings.TrimSpace(m.Content+m.Reasoning) != "" || len(m.ToolCalls) > 0 || len(m.Images) > 0 {
		b.filled++
	}
}

// addExecution adds an execution and sets the size of its output.
func (b *builder) addExecution(x trajectories.Execution, at time.Time) int {
	x.Bytes, x.Chars = int64(len(x.Output)), int64(len([]rune(string(x.Output))))
	return b.add(trajectories.TypeExecution, at, x)
}

// addLoss adds count occurrences of a loss. It does nothing if count is not positive.
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

// ending describes the end of an attempt in the words of the file.
type ending struct {
	status        string // exit status
	submission    string
	partial       string // patch of an attempt that is not a result; only mini writes it
	autosubmitted bool   // the agent did not submit the submission itself
	fromWorktree  bool   // the submission is the working tree diff, even if the agent finished
	err, stack    string
	steps         int          // number of model calls; 0 if unknown
	cost          *model.Cost  // total; nil if unknown
	usage         *model.Usage // total; nil if unknown
}

// end adds the outcome. If the file has no exit status, end adds no outcome, so the
// attempt is not a result.
func (b *builder) end(e ending) {
	e.steps, e.cost, e.usage = cmp.Or(e.steps, b.replies), cmp.Or(e.cost, &b.cost), cmp.Or(e.usage, &b.usage)
	if *e.cost != 0 {
		e.usage.Unpriced = 0 // a total in the file includes all calls
	}
	if e.status == "" {
		b.addLoss("the file has no exit status, so the attempt has no outcome", 1)
		if *e.cost != b.cost {
			b.addLoss(fmt.Sprintf("a total cost of $%v is only in the import record", float64(*e.cost)), 1)
		}
		return
	}
	classified := classify(e)
	if classified.guessed {
		b.addLoss(fmt.Sprintf("unknown exit status %.60q, treated as class %s", e.status, classified.class), 1)
	}
	b.add(trajectories.TypeOutcome, b.lastTime, classified.outcome(e, b.firstTime, b.lastTime))
}

// file completes the header and the import record, and returns the file.
func (b *builder) file() (*File, error) {
	if b.err != nil {
		return nil, b.err
	}
	if b.messageCount > 0 && b.filled == 0 {
		return nil, fmt.Errorf("%w: all %d messages would be empty", ErrUnknownFormat, b.messageCount)
	}
	b.header.Format = trajectories.Format
	b.header.Attempt = max(b.header.Attempt, 1)
	if b.header.InstanceID == "" {
		b.header.InstanceID = b.src.name()
		if b.src.row > 0 {
			b.header.InstanceID += fmt.Sprintf("-%d", b.src.row)
		}
	}
	for _, loss := range b.losses {
		b.imported.Losses = append(b.imported.Losses, loss.String())
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

// setExtra sets Import.Extra to the fields of an object without the omitted ones.
// removeSecrets replaces the secrets in them. setExtra adds otherFields as "file".
func (b *builder) setExtra(object json.RawMessage, omitted ...string) {
	var fields map[string]any
	d := json.NewDecoder(strings.NewReader(string(object)))
	d.UseNumber()
	if d.Decode(&fields) != nil {
		fields = map[string]any{}
	}
	if len(b.otherFields) > 0 {
		fields["file"] = b.otherFields
	}
	for _, name := range omitted {
		delete(fields, name)
	}
	b.addLoss("a setting that may be a secret was removed", removeSecrets(fields))
	raw, err := trajectories.EncodeJSON(fields)
	if err != nil && b.err == nil {
		b.err = err
	}
	if len(fields) > 0 {
		b.imported.Extra = raw
	}
}

// setOtherFields sets otherFields to the fields of a document except for the known ones
// and those with an empty value.
func (b *builder) setOtherFields(document json.RawMessage, known ...string) {
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
