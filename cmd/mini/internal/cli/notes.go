package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/agent/memory"
)

// notesOptions are the flags of mini notes and what is below it.
type notesOptions struct {
	dir, path, category string
	json, yes           bool
}

func newNotes(s Streams) *cobra.Command {
	o := &notesOptions{}
	cmd := &cobra.Command{
		Use:   "notes",
		Short: "List and change what models noted about a folder",
		Long: `Lists the notes that models made while they worked in a folder (mini-tool note,
with memory.notes: workspace), and changes them. They are kept in your state
folder, not in the folder that they are about.`,
		Example: `  mini notes                       those of this folder
  mini notes add --category build "make helper comes first"
  mini notes remove 3`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return o.list(s) },
	}
	f := cmd.PersistentFlags()
	f.SortFlags = false
	f.StringVar(&o.dir, "dir", "", "`DIR` that the notes are about (default: here)")
	f.StringVar(&o.path, "file", "", "`FILE` of notes, as RUN/ID/attempts/1/notes.json")
	f.BoolVar(&o.json, "json", false, "print JSON")
	o.categoryFlag(cmd, "only those of `C`")
	cmd.AddCommand(o.newList(s), o.newAdd(s), o.newRemove(s), o.newClear(s), o.newPath(s))
	return cmd
}

func (o *notesOptions) categoryFlag(cmd *cobra.Command, usage string) {
	cmd.Flags().StringVar(&o.category, "category", "", usage)
	_ = cmd.RegisterFlagCompletionFunc("category", o.completeCategory) // fails only where it has one
}

func (o *notesOptions) newList(s Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List notes by category", Example: "  mini notes list --json", Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return o.list(s) },
	}
	o.categoryFlag(cmd, "only those of `C`")
	return cmd
}

func (o *notesOptions) newAdd(s Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "add TEXT", Short: "Add a note, which models read when they list theirs",
		Example: `  mini notes add --category style "errors are wrapped once"
  git log -3 | mini notes add -`,
		Args: exactlyOne("a text in quotes, or -"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.add(cmd, s, args[0]) },
	}
	o.categoryFlag(cmd, "`C` that it belongs to, a word (default general)")
	return cmd
}

func (o *notesOptions) newRemove(s Streams) *cobra.Command {
	return &cobra.Command{
		Use: "remove ID", Short: "Remove a note", Example: "  mini notes remove 3",
		Args:              exactlyOne("the number of a note"),
		ValidArgsFunction: o.completeID,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.remove(cmd, s, args[0]) },
	}
}

func (o *notesOptions) newClear(s Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "clear", Short: "Remove all notes, or those of a category", Example: "  mini notes clear --category plan",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.clear(cmd, s) },
	}
	o.categoryFlag(cmd, "only those of `C`")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "really all of them")
	return cmd
}

func (o *notesOptions) newPath(s Streams) *cobra.Command {
	return &cobra.Command{
		Use: "path", Short: "Say in which file the notes are", Example: "  mini notes path", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			store, err := o.store()
			if err != nil {
				return err
			}
			return o.print(s, map[string]string{"path": store.Path()}, store.Path()+"\n")
		},
	}
}

// store has the notes that the flags choose.
func (o *notesOptions) store() (*memory.Store, error) {
	if o.path != "" {
		if o.dir != "" {
			return nil, usagef("--dir and --file are two ways to say it; give one of them")
		}
		if info, err := os.Stat(filepath.Dir(o.path)); err != nil || !info.IsDir() {
			return nil, usagef("--file %s: there is no such folder", o.path)
		}
		return memory.NewStore(o.path), nil
	}
	path, err := workspaceNotes(cmp.Or(o.dir, "."))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("--dir %s: there is no such folder", o.dir)
	}
	if err != nil {
		return nil, err
	}
	return memory.NewStore(path), nil
}

// notes are those that the flags choose.
func (o *notesOptions) notes() ([]memory.Note, error) {
	store, err := o.store()
	if err != nil {
		return nil, err
	}
	all, err := store.Notes()
	if err != nil {
		return nil, err
	}
	all, err = memory.Of(all, o.category)
	return all, notesError(err)
}

func (o *notesOptions) list(s Streams) error {
	all, err := o.notes()
	if err != nil {
		return err
	}
	if all == nil {
		all = []memory.Note{}
	}
	var b strings.Builder
	for i, group := range memory.Grouped(all) {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintln(&b, group[0].Category)
		for _, n := range group {
			fmt.Fprintf(&b, "  %d  %s  %s\n", n.ID, n.Time.Local().Format("2006-01-02 15:04"), strings.ReplaceAll(n.Text, "\n", "\n      "))
		}
	}
	if len(all) == 0 {
		b.WriteString("there are no notes\n")
	}
	return o.print(s, all, b.String())
}

func (o *notesOptions) add(cmd *cobra.Command, s Streams, text string) error {
	if text == "-" {
		data, err := io.ReadAll(io.LimitReader(s.In, memory.MaxNote+1))
		if err != nil {
			return fmt.Errorf("read note: %w", err)
		}
		text = string(data)
	}
	store, err := o.store()
	if err != nil {
		return err
	}
	added, err := store.Add(cmd.Context(), o.category, text)
	if err != nil {
		return notesError(err)
	}
	word := "noted as %d in %s\n"
	if added.Known {
		word = "note %d in %s says so already\n"
	}
	return o.print(s, added.Note, fmt.Sprintf(word, added.ID, added.Category))
}

func (o *notesOptions) remove(cmd *cobra.Command, s Streams, word string) error {
	id, err := strconv.Atoi(word)
	if err != nil {
		return usagef("%.40q is no number of a note; mini notes has them", word)
	}
	store, err := o.store()
	if err != nil {
		return err
	}
	gone, err := store.Remove(cmd.Context(), id)
	if err != nil {
		return notesError(err)
	}
	return o.print(s, gone, fmt.Sprintf("note %d is removed\n", gone.ID))
}

func (o *notesOptions) clear(cmd *cobra.Command, s Streams) error {
	if o.category == "" && !o.yes {
		return usagef("this removes all notes; say --yes, or which --category")
	}
	store, err := o.store()
	if err != nil {
		return err
	}
	n, err := store.Clear(cmd.Context(), o.category)
	if err != nil {
		return notesError(err)
	}
	return o.print(s, map[string]int{"removed": n}, fmt.Sprintf("%d removed\n", n))
}

// print prints a value as JSON, or a text that stands for it.
func (o *notesOptions) print(s Streams, value any, text string) error {
	if !o.json {
		_, err := io.WriteString(s.Out, lines(text))
		return err
	}
	return writeJSON(s.Out, value)
}

// notesError gives mistakes the exit code that they have.
func notesError(err error) error {
	if errors.Is(err, memory.ErrMistake) {
		return before(err)
	}
	return err
}

// completeCategory offers the categories that there are, completeID the notes.
func (o *notesOptions) completeCategory(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var list []string
	for _, group := range memory.Grouped(o.there()) {
		list = append(list, group[0].Category)
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

func (o *notesOptions) completeID(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var list []string
	for _, n := range o.there() {
		if len(args) == 0 {
			first, _, _ := strings.Cut(n.Text, "\n")
			list = append(list, fmt.Sprintf("%d\t%s", n.ID, lines(first)))
		}
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

func (o *notesOptions) there() []memory.Note {
	store, err := o.store()
	if err != nil {
		return nil
	}
	all, _ := store.Notes()
	return all
}
