package atif

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Write writes an attempt as a document. The document has a step for each message, except
// that the results of commands are in the step of the reply. A command in the text of a
// reply becomes a call of the tool "bash", with an ID made from the step number. The extra
// data of the document contains the records of the journal, so that Read can restore the
// journal. Write returns sentences about information that the document does not contain.
// verdict is the result of the evaluation, or empty.
//
// For an attempt that was imported from an ATIF document, Write writes that document.
func Write(w io.Writer, t *trajectories.Attempt, verdict string) ([]string, error) {
	b := newBuilder(t, t)
	doc, ok := importedDocument(t)
	if !ok {
		doc = b.document(verdict)
	}
	err := b.err
	if err == nil {
		err = doc.write(w)
	}
	if err != nil {
		return nil, fmt.Errorf("write trajectory: %w", err)
	}
	return b.losses, nil
}

// importedDocument returns the document from which an attempt was imported; the import
// record contains it. importedDocument returns false if there is none, or if the attempt is
// a fork and may have more steps than the document.
func importedDocument(t *trajectories.Attempt) (*Trajectory, bool) {
	if t.Import == nil || !strings.HasPrefix(t.Import.Format, "ATIF-") || len(t.Import.Extra) == 0 || t.Header.Origin != nil {
		return nil, false
	}
	doc := &Trajectory{}
	err := json.Unmarshal(t.Import.Extra, doc)
	return doc, err == nil && len(doc.Steps) > 0
}

// write writes the document with each step on its own line, for readability.
func (t *Trajectory) write(w io.Writer) error {
	head := *t
	head.Steps, head.Subagents = nil, nil
	encoded, err := trajectories.EncodeJSON(head)
	if err != nil {
		return err
	}
	out := bytes.NewBuffer(bytes.TrimSuffix(encoded, []byte("}")))
	if err := writeList(out, "steps", t.Steps); err != nil {
		return err
	}
	if len(t.Subagents) > 0 {
		if err := writeList(out, "subagent_trajectories", t.Subagents); err != nil {
			return err
		}
	}
	out.WriteString("}\n")
	_, err = out.WriteTo(w)
	return err
}

// writeList appends a member of an object that is a list, with one element per line.
func writeList[T any](out *bytes.Buffer, name string, elements []T) error {
	fmt.Fprintf(out, ",\n%q: [", name)
	separator := "\n"
	for _, e := range elements {
		data, err := trajectories.EncodeJSON(e)
		if err != nil {
			return err
		}
		out.WriteString(separator)
		out.Write(data)
		separator = ",\n"
	}
	out.WriteString("\n]")
	return nil
}

// builder builds a document.
type builder struct {
	t         *trajectories.Attempt
	steps     []Step
	entries   []int        // index of the entry of each step; -1 for a compaction
	hasResult map[int]bool // whether a step has the result of an execution, by record ID
	losses    []string
	err       error // first error

	root         *trajectories.Attempt              // the attempt with all children
	childResults map[int][]trajectories.ChildResult // by record ID of the execution
}

// newBuilder returns a builder for t, which is root or one of its children.
func newBuilder(t, root *trajectories.Attempt) *builder {
	b := &builder{t: t, hasResult: map[int]bool{}, root: root}
	if len(root.Children) > 0 {
		b.childResults = t.ChildrenByExecution()
	}
	return b
}

// document returns the document, or nil on an error, which is stored in b.err.
func (b *builder) document(verdict string) *Trajectory {
	b.addSteps()
	doc := &Trajectory{SchemaVersion: WriteVersion, Agent: b.agent(), Steps: b.steps, FinalMetrics: b.totals()}
	session := fmt.Sprintf("%s-%d", b.t.Header.InstanceID, b.t.Header.Attempt)
	doc.SessionID = &session
	if n := len(b.t.FailedCalls); n > 0 {
		doc.Notes = ptr(fmt.Sprintf("final_metrics include %d model calls without a reply.", n))
	}
	root := extraRoot{Journal: trajectories.Format, Verdict: verdict, Outcome: b.t.Outcome}
	for r, err := range b.withoutResponses().Records() {
		if err != nil {
			b.err = err
			return nil
		}
		root.Records = append(root.Records, r)
	}
	doc.Extra = b.extra(root)
	b.addChildren(doc)
	return doc
}

// withoutResponses returns a copy of the attempt without provider responses, except those
// to summaries. If it removed any, it adds one loss.
func (b *builder) withoutResponses() *trajectories.Attempt {
	t, found := *b.t, false
	strip := func(c trajectories.Call) trajectories.Call {
		found = found || len(c.Raw) > 0
		c.Raw = nil
		return c
	}
	t.Entries, t.FailedCalls = slices.Clone(t.Entries), slices.Clone(t.FailedCalls)
	for i := range t.Entries {
		if c := t.Entries[i].Call; c != nil {
			t.Entries[i].Call = ptr(strip(*c))
		}
	}
	for i, c := range t.FailedCalls {
		t.FailedCalls[i] = strip(c)
	}
	if found {
		b.losses = append(b.losses, "the provider's responses")
	}
	return &t
}

// agent returns the description of the agent.
func (b *builder) agent() Agent {
	a := Agent{Name: b.t.Header.AgentName(), Version: b.t.Header.MiniVersion}
	for _, run := range trajectories.NotesOf[trajectories.AgentRun](b.t) {
		a.Version = cmp.Or(run.Version, "unknown") // mini is not the agent
	}
	if i := b.t.Import; i != nil {
		a.Name, a.Version = i.Agent, i.AgentVersion
	}
	a.Name, a.Version = cmp.Or(a.Name, "unknown"), cmp.Or(a.Version, "unknown")
	if name := b.t.Header.ModelName; name != "" {
		a.ModelName = &name
	}
	for _, d := range b.t.Header.Tools {
		a.Tools = append(a.Tools, b.extra(tool{"function", d}))
	}
	return a
}

// tool is a tool definition in OpenAI's format.
type tool struct {
	Type     string               `json:"type"`
	Function model.ToolDefinition `json:"function"`
}

// extra encodes a value as JSON. It returns nil for an empty object.
func (b *builder) extra(v any) json.RawMessage {
	data, err := trajectories.EncodeJSON(v)
	if err != nil && b.err == nil {
		b.err = err
	}
	if string(data) == "{}" {
		return nil
	}
	return data
}

func ptr[T any](v T) *T { return &v }
