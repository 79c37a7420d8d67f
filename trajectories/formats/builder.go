package formats

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// builder collects the records of an attempt. They are encoded when they are read, so that
// readers can change the data of a pointer until the end of the file.
type builder struct {
	src         source
	header      trajectories.Header
	imported    trajectories.Import
	records     []newRecord
	losses      []Loss
	otherFields map[string]any // fields that are not part of the format, such as a verdict

	replies             int         // number of replies
	messageCount        int         // number of messages
	filled              int         // number of messages that are not empty
	usage               model.Usage // total of the calls
	cost                model.Cost  // total of the calls
	firstTime, lastTime time.Time   // of the records; zero if no time is known
}

type newRecord struct {
	trajectories.Record // without Data
	data                any
}

func newBuilder(src source, format string) *builder {
	b := &builder{src: src, imported: trajectories.Import{
		Format: format, File: src.base(), SHA256: src.sha256, Row: src.row,
	}}
	b.add(trajectories.TypeHeader, time.Time{}, &b.header)
	b.add(trajectories.TypeImport, time.Time{}, &b.imported)
	return b
}

// firstRecords is the number of records before those of the conversation: header and import
// record.
const firstRecords = 2

// add adds a record and returns its ID.
func (b *builder) add(t trajectories.Type, at time.Time, data any) int {
	n := len(b.records)
	b.records = append(b.records, newRecord{trajectories.Record{ID: n + 1, Parent: n, Type: t, Time: at}, data})
	if !at.IsZero() && (b.firstTime.IsZero() || at.Before(b.firstTime)) {
		b.firstTime = at
	}
	if at.After(b.lastTime) {
		b.lastTime = at
	}
	return n + 1
}

// addMessage adds a message other than a reply.
func (b *builder) addMessage(m model.Message, cause trajectories.Cause, at time.Time) int {
	b.count(m)
	return b.add(trajectories.TypeMessage, at, trajectories.Message{Message: m, Cause: cause})
}

// addReply adds the call of a reply, unless c is nil, and the reply, which it returns.
func (b *builder) addReply(reply model.Message, actions []string, c *trajectories.Call, at time.Time) *trajectories.Message {
	b.replies++
	b.count(reply)
	if c != nil {
		b.usage, b.cost = b.usage.Add(c.Usage), b.cost+c.Cost
		b.add(trajectories.TypeCall, at, *c)
	}
	m := &trajectories.Message{Message: reply, Cause: trajectories.CauseReply, Actions: actions}
	b.add(trajectories.TypeMessage, at, m)
	return m
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
	if b.messageCount > 0 && b.filled == 0 {
		return nil, fmt.Errorf("%w: all %d messages would be empty", ErrUnknownFormat, b.messageCount)
	}
	b.header.Format = trajectories.Format
	b.header.Attempt = max(b.header.Attempt, 1)
	b.header.InstanceID = cmp.Or(b.header.InstanceID, b.src.instanceID())
	for _, loss := range b.losses {
		b.imported.Losses = append(b.imported.Losses, loss.String())
	}
	for i := range firstRecords {
		b.records[i].Time = b.firstTime
	}
	return &File{
		Format: b.imported.Format, Header: b.header, SHA256: b.src.sha256, Row: b.src.row, Losses: b.imported.Losses,
		Records: func(yield func(trajectories.Record, error) bool) {
			for _, r := range b.records {
				var err error
				if r.Data, err = trajectories.EncodeJSON(r.data); !yield(r.Record, err) {
					return
				}
			}
		},
	}, nil
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
	if len(fields) > 0 {
		b.imported.Extra, _ = trajectories.EncodeJSON(fields) // cannot fail for JSON that was decoded
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

// secretName matches the names of settings that contain secrets. Trajectories of other
// agents contain their whole configuration.
var secretName = lazyregexp.New(`(?i)(api_?key|secret|password|passwd|credential|authorization|access_?token|auth_?token|_token$|_key$|^token$)`)

// removedSecret is the replacement for a secret.
const removedSecret = "(left out)"

// removeSecrets replaces the strings of settings whose names match secretName, at any
// depth, except placeholders and names of variables, as in api_key_env. It returns the number of replaced strings.
func removeSecrets(value any) int {
	n := 0
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if s, ok := member.(string); ok && s != "" && secretName.MatchString(name) && !isPlaceholder(s) && !isVariable(name, s) {
				v[name] = removedSecret
				n++
				continue
			}
			n += removeSecrets(member)
		}
	case []any:
		for _, member := range v {
			n += removeSecrets(member)
		}
	}
	return n
}

// isVariable reports whether a setting names a variable and not a secret.
func isVariable(name, value string) bool {
	return strings.HasSuffix(name, "_env") && value == strings.ToUpper(value)
}

// isPlaceholder reports whether a string is not a secret: it is the replacement of a secret
// or has only asterisks, or it starts with $, as a reference to a variable.
func isPlaceholder(s string) bool {
	return s == removedSecret || strings.HasPrefix(s, "$") || strings.Trim(s, "*") == ""
}
