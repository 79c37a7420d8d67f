package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/agent/tools/memory"
	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner/setup"
)

// NotesOptions are the flags of mini notes and its subcommands.
type NotesOptions struct {
	dir, path, category string
	json                bool
}

// NewNotes returns the command mini notes.
func NewNotes(a *app.App) *cobra.Command {
	o := &NotesOptions{}
	cmd := &cobra.Command{
		Use:   "notes",
		Short: "List, add and remove the notes of models",
		Long: `Lists the notes that models wrote while they worked in a folder (mini-tool note,
with memory.notes: workspace). Subcommands add and remove notes. mini stores
them in your state folder, not in the folder that they are about.`,
		Example: `  mini notes                       the notes of this folder
  mini notes add --category build "make helper comes first"
  mini notes remove 3`,
		Args: cmdutil.NoArgs,
		RunE: func(*cobra.Command, []string) error { return listNotes(a, o) },
	}
	f := cmd.PersistentFlags()
	f.StringVar(&o.dir, "dir", "", "`DIR` that the notes are about (default: the current folder)")
	f.StringVar(&o.path, "file", "", "`FILE` of notes, for example RUN/ID/attempts/1/notes.json")
	f.BoolVar(&o.json, "json", false, "print JSON")
	cmd.Flags().StringVar(&o.category, "category", "", "only notes of category `C`")
	add := &cobra.Command{
		Use: "add TEXT", Short: "Add a note for models",
		Example: `  mini notes add --category style "errors are wrapped once"
  git log -3 | mini notes add -`,
		Args: cmdutil.ExactlyOne("a text in quotes, or - for stdin"),
		RunE: func(cmd *cobra.Command, args []string) error { return addNote(cmd.Context(), a, o, args[0]) },
	}
	add.Flags().StringVar(&o.category, "category", "", "category `C` of the note, one word (default general)")
	cmd.AddCommand(add, &cobra.Command{
		Use: "remove ID", Short: "Remove a note", Example: "  mini notes remove 3",
		Args: cmdutil.ExactlyOne("the number of a note"),
		RunE: func(cmd *cobra.Command, args []string) error { return removeNote(cmd.Context(), a, o, args[0]) },
	}, &cobra.Command{
		Use: "path", Short: "Print the path of the file of notes", Example: "  mini notes path", Args: cmdutil.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			store, err := o.store()
			if err != nil {
				return err
			}
			return o.print(a, map[string]string{"path": store.Path()}, store.Path()+"\n")
		},
	})
	return cmd
}

// store returns the store that --dir or --file selects.
func (o *NotesOptions) store() (*memory.Store, error) {
	if o.path != "" {
		if o.dir != "" {
			return nil, usage.Errorf("--dir and --file exclude each other; pass one of them")
		}
		if info, err := os.Stat(filepath.Dir(o.path)); err != nil || !info.IsDir() {
			return nil, usage.Errorf("--file %s: its folder does not exist", o.path)
		}
		return memory.NewStore(o.path), nil
	}
	path, err := setup.WorkspaceNotes(cmp.Or(o.dir, "."))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usage.Errorf("--dir %s: no such folder", o.dir)
	}
	if err != nil {
		return nil, err
	}
	return memory.NewStore(path), nil
}

func listNotes(a *app.App, o *NotesOptions) error {
	store, err := o.store()
	if err != nil {
		return err
	}
	notes, err := store.Notes()
	if err != nil {
		return err
	}
	if notes, err = memory.FilterByCategory(notes, o.category); err != nil {
		return notesError(err)
	}
	if notes == nil {
		notes = []memory.Note{}
	}
	var b strings.Builder
	for i, group := range memory.GroupByCategory(notes) {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintln(&b, group[0].Category)
		for _, n := range group {
			fmt.Fprintf(&b, "  %d  %s  %s\n", n.ID, n.Time.Local().Format("2006-01-02 15:04"), strings.ReplaceAll(n.Text, "\n", "\n      "))
		}
	}
	if len(notes) == 0 {
		b.WriteString("there are no notes\n")
	}
	return o.print(a, notes, b.String())
}

func addNote(ctx context.Context, a *app.App, o *NotesOptions, text string) error {
	if text == "-" {
		data, err := io.ReadAll(io.LimitReader(a.In, memory.MaxNoteBytes+1))
		if err != nil {
			return fmt.Errorf("read note: %w", err)
		}
		text = string(data)
	}
	store, err := o.store()
	if err != nil {
		return err
	}
	added, err := store.Add(ctx, o.category, text)
	if err != nil {
		return notesError(err)
	}
	message := "added note %d in %s\n"
	if added.Duplicate {
		message = "note %d in %s has the same text already\n"
	}
	return o.print(a, added.Note, fmt.Sprintf(message, added.ID, added.Category))
}

func removeNote(ctx context.Context, a *app.App, o *NotesOptions, number string) error {
	id, err := strconv.Atoi(number)
	if err != nil {
		return usage.Errorf("%.40q is not the number of a note; mini notes lists them", number)
	}
	store, err := o.store()
	if err != nil {
		return err
	}
	removed, err := store.Remove(ctx, id)
	if err != nil {
		return notesError(err)
	}
	return o.print(a, removed, fmt.Sprintf("removed note %d\n", removed.ID))
}

// print prints value as JSON with --json, else text.
func (o *NotesOptions) print(a *app.App, value any, text string) error {
	if !o.json {
		_, err := io.WriteString(a.Out, cmdutil.Sanitize(text))
		return err
	}
	return cmdutil.WriteJSON(a.Out, value)
}

// notesError turns errors about invalid input into usage errors.
func notesError(err error) error {
	if errors.Is(err, memory.ErrInvalid) {
		return usage.Wrap(err)
	}
	return err
}
