package atif

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Write makes a document of an attempt: a step for each prompt and each reply,
// with what its commands gave. What is run without a tool call, since the model
// wrote it into its message, becomes a call of the tool "bash" with an id made
// of the step's number. Pictures go into the extras, as data. It says what it
// leaves out. The verdict is the class of the evaluation; empty before one.
//
// An attempt that was read from a document is written as that one was.
func Write(w io.Writer, t *trajectories.Transcript, verdict string) ([]string, error) {
	b := newBuilder(t, t)
	doc, err := b.document(verdict)
	if err != nil {
		return nil, fmt.Errorf("write trajectory: %w", err)
	}
	if err := doc.write(w); err != nil {
		return nil, fmt.Errorf("write trajectory: %w", err)
	}
	return b.lost, nil
}

// write puts one step on a line, as the .traj.json has its messages.
func (t *Trajectory) write(w io.Writer) error {
	head := *t
	head.Steps, head.Subagents = nil, nil
	first, err := trajectories.Encode(head)
	if err != nil {
		return err
	}
	out := bytes.NewBuffer(bytes.TrimSuffix(first, []byte("}")))
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

// writeList appends a member that is a list, with each of its elements on a line.
func writeList[T any](out *bytes.Buffer, name string, elements []T) error {
	fmt.Fprintf(out, ",\n%q: [", name)
	end := "\n"
	for _, e := range elements {
		data, err := trajectories.Encode(e)
		if err != nil {
			return err
		}
		out.WriteString(end)
		out.Write(data)
		end = ",\n"
	}
	out.WriteString("\n]")
	return nil
}

// builder makes a document.
type builder struct {
	t *trajectories.Transcript
	// foreign is set where the attempt came from a document of another agent's:
	// nothing of mini's is added.
	foreign bool
	steps   []Step
	origin  []int // of each step, its entry
	shown   map[shown]bool
	lost    []string
	err     error

	all   *trajectories.Transcript     // has the children
	asked map[int][]trajectories.Child // of whom, by the record of the execution
}

// newBuilder makes the document of an attempt, or of a child of it.
func newBuilder(t, all *trajectories.Transcript) *builder {
	b := &builder{t: t, shown: map[shown]bool{}, all: all}
	if len(all.Children) > 0 {
		b.asked = t.Asked()
	}
	return b
}

// shown is an execution of a step that stands in a result.
type shown struct{ step, ran int }

func (b *builder) document(verdict string) (*Trajectory, error) {
	kept, ok := keptOf(b.t)
	b.foreign = ok
	b.build()
	if b.err != nil {
		return nil, b.err
	}
	if ok {
		return b.restored(kept), nil
	}
	doc := &Trajectory{SchemaVersion: Version, Agent: b.agent(), Steps: b.steps, FinalMetrics: b.totals()}
	session := fmt.Sprintf("%s-%d", b.t.Header.InstanceID, b.t.Header.Attempt)
	doc.SessionID = &session
	if n := len(b.t.Failed); n > 0 {
		doc.Notes = ptr(fmt.Sprintf("final_metrics include %d calls of the model that no reply came of.", n))
	}
	root := ownRoot{
		Journal: trajectories.Format, Verdict: verdict, Outcome: b.t.Outcome, Header: b.t.Header, Import: b.t.Import,
		Diff: b.t.Diff, Failed: b.t.Failed, Records: b.t.Others,
	}
	root.Header.Tools = nil
	for _, ran := range b.t.Setup {
		root.Setup = append(root.Setup, ownResult{Ran: ran.Record, Command: ran.Command, Tools: toolsOf(&ran), Execution: &ran.Execution})
	}
	doc.Extra = b.extra(root)
	b.children(doc)
	b.raw()
	return doc, b.err
}

// agent is who made the attempt.
func (b *builder) agent() Agent {
	a := Agent{Name: "mini", Version: b.t.Header.MiniVersion}
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

// tool is a definition as OpenAI has it in a list of tools.
type tool struct {
	Type     string           `json:"type"`
	Function model.Definition `json:"function"`
}

// raw says that the answers of providers are left out: once, so that whoever
// writes many documents can count.
func (b *builder) raw() {
	if slices.ContainsFunc(b.t.Entries, func(e trajectories.Entry) bool { return e.Call != nil && len(e.Call.Raw) > 0 }) {
		b.lost = append(b.lost, "the provider's own answers to calls, for which the format has no place")
	}
}

// extra is a value in its JSON form; nil where it says nothing.
func (b *builder) extra(v any) json.RawMessage {
	data, err := trajectories.Encode(v)
	if err != nil && b.err == nil {
		b.err = err
	}
	if string(data) == "{}" {
		return nil
	}
	return data
}

func ptr[T any](v T) *T { return &v }
