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
	var err error
	if document := importedDocument(t); document != nil {
		var indented bytes.Buffer
		if err = json.Indent(&indented, document, "", "  "); err == nil {
			_, err = fmt.Fprintln(w, indented.String())
		}
	} else if doc := b.document(verdict); b.err != nil {
		err = b.err
	} else {
		err = doc.write(w)
	}
	if err != nil {
		return nil, fmt.Errorf("write trajectory: %w", err)
	}
	return b.losses, nil
}

// importedDocument returns the document from which an attempt was imported; the import
// record contains it. importedDocument returns nil if there is none, or if the attempt is a
// fork and may have more steps than the document.
func importedDocument(t *trajectories.Attempt) json.RawMessage {
	if t.Import == nil || !strings.HasPrefix(t.Import.Format, "ATIF-") || t.Header.Origin != nil {
		return nil
	}
	return t.Import.Extra
}

// write writes the document with each step on its own line, for readability.
func (t *document) write(w io.Writer) error {
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
	steps     []step
	entries   []trajectories.Entry // of each step; empty for a compaction
	hasResult map[int]bool         // whether a step has the result of an execution, by record ID
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
func (b *builder) document(verdict string) *document {
	b.addSteps()
	doc := &document{SchemaVersion: WriteVersion, Agent: b.agent(), Steps: b.steps, FinalMetrics: b.totals()}
	doc.SessionID = fmt.Sprintf("%s-%d", b.t.Header.InstanceID, b.t.Header.Attempt)
	if n := len(b.t.FailedCalls); n > 0 {
		doc.Notes = fmt.Sprintf("final_metrics include %d model calls without a reply.", n)
	}
	root := extraRoot{Journal: trajectories.Format, Verdict: verdict, Outcome: b.t.Outcome}
	if o := b.t.Outcome; o != nil && (o.Usage != (model.Usage{}) || o.Cost != 0) {
		root.Usage, root.Cost = &o.Usage, knownCost(o.Cost, o.Usage)
	}
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
		b.losses = append(b.losses, "attempts without the raw responses of the provider, for which ATIF has no field")
	}
	return &t
}

// agent returns the description of the agent.
func (b *builder) agent() agent {
	a := agent{Name: b.t.Header.AgentName(), Version: b.t.Header.MiniVersion}
	for _, run := range trajectories.NotesOf[trajectories.AgentRun](b.t) {
		a.Version = cmp.Or(run.Version, "unknown") // mini is not the agent
	}
	if i := b.t.Import; i != nil {
		a.Name, a.Version = i.Agent, i.AgentVersion
	}
	a.Name, a.Version = cmp.Or(a.Name, "unknown"), cmp.Or(a.Version, "unknown")
	a.ModelName = b.t.Header.ModelName
	for _, d := range b.t.Header.Tools {
		a.Tools = append(a.Tools, tool{"function", d})
	}
	return a
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

// metrics returns the metrics of a call; nil if the call has neither usage, cost nor tokens.
func (b *builder) metrics(c *trajectories.Call) *metrics {
	u := c.Usage
	if u == (model.Usage{}) && c.Cost == 0 && c.Tokens == nil {
		return nil
	}
	m := &metrics{Cached: u.CacheRead, Cost: knownCost(c.Cost, u)}
	if u.Prompt > 0 || u.Completion > 0 {
		m.Prompt, m.Completion = &u.Prompt, &u.Completion
	}
	if t := c.Tokens; t != nil {
		m.PromptIDs, m.CompletionIDs, m.Logprobs = t.Prompt(), t.Completion, t.Logprobs
	}
	m.Extra = b.extra(extraMetrics{u.Reasoning, u.CacheWrite, u.CacheWriteHour, u.Unpriced})
	return m
}

// knownCost returns the cost, or nil if it is unknown. A cost of 0 means free.
func knownCost(c model.Cost, u model.Usage) *float64 {
	if c == 0 && u.Unpriced > 0 {
		return nil
	}
	return ptr(float64(c))
}

// totals returns the totals of the outcome or, without an outcome, of the attempt's own
// calls, with the number of steps of the document.
func (b *builder) totals() finalMetrics {
	var u model.Usage
	var cost model.Cost
	calls := len(b.t.FailedCalls)
	add := func(c trajectories.Call) { u, cost = u.Add(c.Usage), cost+c.Cost }
	for _, c := range b.t.FailedCalls {
		add(c)
	}
	for _, e := range b.t.Entries {
		if e.Call != nil {
			calls++
			add(*e.Call)
		}
	}
	for _, c := range trajectories.NotesOf[trajectories.Summary](b.t) {
		add(trajectories.Call(c))
	}
	if o := b.t.Outcome; o != nil {
		calls, u, cost = o.Steps, o.Usage, o.Cost
	}
	m := finalMetrics{Steps: len(b.steps)}
	if u != (model.Usage{}) || cost != 0 {
		m.Cost = knownCost(cost, u)
	}
	if u.Prompt > 0 || u.Completion > 0 {
		m.Prompt, m.Completion = &u.Prompt, &u.Completion
	}
	if u.CacheRead > 0 {
		m.Cached = &u.CacheRead
	}
	m.Extra = b.extra(struct {
		Calls int `json:"model_calls,omitempty"`
		extraMetrics
	}{calls, extraMetrics{u.Reasoning, u.CacheWrite, u.CacheWriteHour, u.Unpriced}})
	return m
}

// addChildren adds the trajectories of the children of an attempt to its document.
func (b *builder) addChildren(doc *document) {
	number := 0
	if p := b.t.Header.Parent; p != nil {
		number = p.Child
		doc.TrajectoryID = childID(number)
	}
	for _, child := range b.root.ChildrenOf(number) {
		childBuilder := newBuilder(child, b.root)
		childDoc := childBuilder.document("")
		b.err = cmp.Or(b.err, childBuilder.err)
		for _, loss := range childBuilder.losses {
			if !slices.Contains(b.losses, loss) {
				b.losses = append(b.losses, loss)
			}
		}
		if childDoc != nil && len(childDoc.Steps) == 0 { // ATIF does not allow a trajectory without steps
			b.losses = append(b.losses, fmt.Sprintf("child %d, which ended before its first message", child.Header.Parent.Child))
			continue
		}
		if childDoc != nil {
			doc.Subagents = append(doc.Subagents, *childDoc)
		}
	}
}

// childID returns the trajectory ID of child n.
func childID(n int) string { return fmt.Sprintf("child-%d", n) }

// refs returns the references to the children that the execution with the given record ID
// started. It omits children without messages.
func (b *builder) refs(execution int) []ref {
	if execution == 0 {
		return nil
	}
	var refs []ref
	for _, c := range b.childResults[execution] {
		exists := slices.ContainsFunc(b.root.Children, func(t *trajectories.Attempt) bool {
			return t.Header.Parent != nil && t.Header.Parent.Child == c.Child && len(t.Entries) > 0
		})
		if exists {
			refs = append(refs, ref{TrajectoryID: childID(c.Child)})
		}
	}
	return refs
}
