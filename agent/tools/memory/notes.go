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

// NoteTools returns the tools note and notes for a store.
func NoteTools(s *Store) []tools.Tool { return []tools.Tool{noteTool{s}, notesTool{s}} }

// noteDetails are recorded with a call of note.
type noteDetails struct {
	Note      *Note `json:"note,omitempty"`
	Duplicate bool  `json:"known,omitempty"`
	Removed   *Note `json:"removed,omitempty"`
}

// listDetails are recorded with a call of notes.
type listDetails struct {
	Notes int `json:"notes"`
}

// errorDetails are recorded with a failure. They contain paths on the host,
// which the model does not see.
type errorDetails struct {
	Error string `json:"error"`
}

type noteTool struct{ store *Store }

// Spec implements tools.Tool.
func (noteTool) Spec() tools.Spec {
	return tools.Spec{
		Name:        "note",
		Usage:       "note add [--category C] TEXT|-\nnote remove ID",
		Description: "keeps what is worth knowing later, under a category of one word; - takes the text from standard input",
	}
}

// Call implements tools.Tool.
func (t noteTool) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	args, err := tools.ParseArgs(c.Args, tools.Flag{Name: "category"})
	if err != nil {
		return tools.Result{}, err
	}
	if len(args.Positional) == 0 {
		return tools.Result{}, tools.Usagef("say add or remove")
	}
	verb := args.Positional[0]
	args.Positional = args.Positional[1:]
	switch verb {
	case "add":
		return t.add(ctx, c, args)
	case "remove":
		return t.remove(ctx, args)
	}
	return tools.Result{}, tools.Usagef("there is no note %.40q: say add or remove", verb)
}

func (t noteTool) add(ctx context.Context, c tools.Call, args tools.Args) (tools.Result, error) {
	text, err := args.Text(c, "note", MaxNoteBytes)
	if err != nil {
		return tools.Result{}, err
	}
	added, err := t.store.Add(ctx, args.Value("category"), text)
	if err != nil {
		return toolError(err)
	}
	output := fmt.Sprintf("noted as %d in %s\n", added.ID, added.Category)
	if added.Duplicate {
		output = fmt.Sprintf("note %d in %s says so already\n", added.ID, added.Category)
	}
	return tools.Result{Output: output, Details: noteDetails{Note: &added.Note, Duplicate: added.Duplicate}}, nil
}

func (t noteTool) remove(ctx context.Context, args tools.Args) (tools.Result, error) {
	if len(args.Positional) != 1 || args.Has("category") {
		return tools.Result{}, tools.Usagef("remove takes the number of a note, and nothing else")
	}
	id, err := strconv.Atoi(args.Positional[0])
	if err != nil {
		return tools.Result{}, tools.Usagef("%.40q is no number of a note", args.Positional[0])
	}
	removed, err := t.store.Remove(ctx, id)
	if err != nil {
		return toolError(err)
	}
	return tools.Result{Output: fmt.Sprintf("note %d is removed\n", id), Details: noteDetails{Removed: &removed}}, nil
}

type notesTool struct{ store *Store }

// Spec implements tools.Tool.
func (notesTool) Spec() tools.Spec {
	return tools.Spec{
		Name:        "notes",
		Usage:       "notes [--category C] [--limit N]",
		Description: "lists what was noted here before, by category and with times",
	}
}

// Call implements tools.Tool.
func (t notesTool) Call(_ context.Context, c tools.Call) (tools.Result, error) {
	args, err := tools.ParseArgs(c.Args, tools.Flag{Name: "category"}, tools.Flag{Name: "limit"})
	if err != nil {
		return tools.Result{}, err
	}
	if len(args.Positional) > 0 {
		return tools.Result{}, tools.Usagef("notes takes flags only, not %.40q", args.Positional[0])
	}
	limit, err := args.Int("limit", DefaultListLimit, 1, MaxNotes)
	if err != nil {
		return tools.Result{}, err
	}
	all, err := t.store.Notes()
	if err != nil {
		return toolError(err)
	}
	if all, err = FilterByCategory(all, args.Value("category")); err != nil {
		return toolError(err)
	}
	return tools.Result{Output: FormatNotes(all, limit), Details: listDetails{len(all)}}, nil
}

// toolError returns an error for the model, without paths on the host.
func toolError(err error) (tools.Result, error) {
	if errors.Is(err, ErrInvalid) {
		return tools.Result{}, tools.Usagef("%v", err)
	}
	visible := err
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		visible = fmt.Errorf("notes cannot be kept: %w", at.Err)
	} else if at, ok := errors.AsType[*os.LinkError](err); ok {
		visible = fmt.Errorf("notes cannot be kept: %w", at.Err)
	}
	return tools.Result{Details: errorDetails{err.Error()}}, visible
}
