package memory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/minibench/mini/agent/tools"
)

// NoteTools are note and notes, over a store.
func NoteTools(s *Store) []tools.Tool { return []tools.Tool{noteTool{s}, notesTool{s}} }

// noteDetails are what is recorded of a call of note.
type noteDetails struct {
	Note  *Note  `json:"note,omitempty"`
	Known bool   `json:"known,omitempty"`
	Gone  *Note  `json:"removed,omitempty"`
	Aside *Aside `json:"set_aside,omitempty"`
}

// listDetails are what is recorded of a call of notes.
type listDetails struct {
	Notes int    `json:"notes"`
	Aside *Aside `json:"set_aside,omitempty"`
}

// errorDetails are what people are told of a failure: where on the host it was,
// which is no affair of the model's.
type errorDetails struct {
	Error string `json:"error"`
	Aside *Aside `json:"set_aside,omitempty"`
}

type noteTool struct{ store *Store }

// Spec implements tools.Tool.
func (noteTool) Spec() tools.Spec {
	return tools.Spec{
		Name:  "note",
		Usage: "note add [--category C] TEXT|-\nnote remove ID",
		About: "keeps what is worth knowing later, under a category of one word; - takes the text from standard input",
	}
}

// Call implements tools.Tool.
func (t noteTool) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	args, err := tools.ParseArgs(c.Args, tools.Flag{Name: "category"})
	if err != nil {
		return tools.Result{}, err
	}
	if len(args.Rest) == 0 {
		return tools.Result{}, tools.Usagef("say add or remove")
	}
	verb := args.Rest[0]
	args.Rest = args.Rest[1:]
	switch verb {
	case "add":
		return t.add(ctx, c, args)
	case "remove":
		return t.remove(ctx, args)
	}
	return tools.Result{}, tools.Usagef("there is no note %.40q: say add or remove", verb)
}

func (t noteTool) add(ctx context.Context, c tools.Call, args tools.Args) (tools.Result, error) {
	text, err := args.Text(c, "note", MaxNote)
	if err != nil {
		return tools.Result{}, err
	}
	a, err := t.store.Add(ctx, args.Value("category"), text)
	if err != nil {
		return failed(err, a.Aside)
	}
	said := fmt.Sprintf("noted as %d in %s\n", a.ID, a.Category)
	if a.Known {
		said = fmt.Sprintf("note %d in %s says so already\n", a.ID, a.Category)
	}
	return tools.Result{Output: said + told(a.Aside), Details: noteDetails{Note: &a.Note, Known: a.Known, Aside: a.Aside}}, nil
}

func (t noteTool) remove(ctx context.Context, args tools.Args) (tools.Result, error) {
	if len(args.Rest) != 1 || args.Has("category") {
		return tools.Result{}, tools.Usagef("remove takes the number of a note, and nothing else")
	}
	id, err := strconv.Atoi(args.Rest[0])
	if err != nil {
		return tools.Result{}, tools.Usagef("%.40q is no number of a note", args.Rest[0])
	}
	gone, aside, err := t.store.Remove(ctx, id)
	if err != nil {
		return failed(err, aside)
	}
	return tools.Result{Output: fmt.Sprintf("note %d is removed\n", id) + told(aside), Details: noteDetails{Gone: &gone, Aside: aside}}, nil
}

type notesTool struct{ store *Store }

// Spec implements tools.Tool.
func (notesTool) Spec() tools.Spec {
	return tools.Spec{
		Name:  "notes",
		Usage: "notes [--category C] [--limit N]",
		About: "lists what was noted here before, by category and with times",
	}
}

// Call implements tools.Tool.
func (t notesTool) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	args, err := tools.ParseArgs(c.Args, tools.Flag{Name: "category"}, tools.Flag{Name: "limit"})
	if err != nil {
		return tools.Result{}, err
	}
	if len(args.Rest) > 0 {
		return tools.Result{}, tools.Usagef("notes takes flags only, not %.40q", args.Rest[0])
	}
	limit, err := args.Int("limit", DefaultListed, 1, MaxNotes)
	if err != nil {
		return tools.Result{}, err
	}
	all, aside, err := t.store.Notes(ctx)
	if err != nil {
		return failed(err, aside)
	}
	if all, err = Of(all, args.Value("category")); err != nil {
		return failed(err, aside)
	}
	return tools.Result{Output: List(all, limit) + told(aside), Details: listDetails{len(all), aside}}, nil
}

// told says that a file was put aside.
func told(a *Aside) string {
	if a == nil {
		return ""
	}
	return fmt.Sprintf("The notes that there were could not be read (%s). Their file was put aside as %s, where people find it; notes begin anew.\n",
		harmless(a.Why), a.Name)
}

// failed is an error in words for the model, who is not told of paths on the host.
func failed(err error, aside *Aside) (tools.Result, error) {
	if errors.Is(err, ErrMistake) {
		return tools.Result{Details: asideOnly(aside)}, tools.Usagef("%v", err)
	}
	said := err
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		said = fmt.Errorf("notes cannot be kept: %w", at.Err)
	} else if at, ok := errors.AsType[*os.LinkError](err); ok {
		said = fmt.Errorf("notes cannot be kept: %w", at.Err)
	}
	return tools.Result{Details: errorDetails{err.Error(), aside}}, said
}

func asideOnly(aside *Aside) any {
	if aside == nil {
		return nil
	}
	return noteDetails{Aside: aside}
}
