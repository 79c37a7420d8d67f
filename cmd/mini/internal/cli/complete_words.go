package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/hub"
	"github.com/minibench/mini/model/fake"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/control"
	"github.com/minibench/mini/runner/evaluate"
)

// words offers a fixed list, and no files.
func words(list ...string) completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeProgress offers the ways in which a command can show itself.
func completeProgress(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	if cmd.Name() == "eval" {
		return evalProgressKinds, cobra.ShellCompDirectiveNoFileComp
	}
	return progressKinds, cobra.ShellCompDirectiveNoFileComp
}

// completeSubset offers the names of datasets, and files of rows.
func completeSubset(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	found := beginning(subsetNames(), typed)
	return offer(append(found, files(typed, ".jsonl", ".json", ".jsonl.gz", ".json.gz", ".parquet")...))
}

// subsetNames are the datasets that have a name.
func subsetNames() []string {
	return append([]string{demoSubset}, aliasNames()...)
}

func aliasNames() []string {
	var names []string
	for _, a := range hub.Aliases() {
		names = append(names, a.Name)
	}
	return names
}

// offer lets go on typing after what is only the beginning of a word.
func offer(list []string) ([]string, cobra.ShellCompDirective) {
	for _, w := range list {
		if strings.ContainsAny(w[len(w)-1:], "/.=") {
			return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

// completionTime bounds what a key press may wait for.
const completionTime = 2 * time.Second

// completeRow offers the ids of the datasets on the line, and of its runs.
func completeRow(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	ids := idsOnLine(cmd, typed, nil)
	for _, run := range args {
		found, _ := filepath.Glob(filepath.Join(run, "*", "attempts")) // a pattern in its name finds nothing
		for _, path := range found {
			ids = append(ids, beginning([]string{filepath.Base(filepath.Dir(path))}, typed)...)
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// completeShowRow offers ids too, without a dataset on the line of every one
// that has a name.
func completeShowRow(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return idsOnLine(cmd, typed, subsetNames()), cobra.ShellCompDirectiveNoFileComp
}

func idsOnLine(cmd *cobra.Command, typed string, otherwise []string) []string {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	subsets := flagValues(cmd.Flags(), "subset")
	if len(subsets) == 0 {
		subsets = otherwise
	}
	split := strings.Join(flagValues(cmd.Flags(), "split"), "")
	return beginning(completeIDs(ctx, subsets, split), typed)
}

// completeIDs are the ids of datasets, as far as they are on this machine.
// cobra reads the line twice, so that a dataset may be named twice.
func completeIDs(ctx context.Context, subsets []string, split string) []string {
	var all []string
	for i, name := range subsets {
		if slices.Contains(subsets[:i], name) {
			continue
		}
		source, ok := sourceHere(ctx, name, split)
		if !ok {
			continue
		}
		if ids, err := datasets.IDs(ctx, source); err == nil {
			all = append(all, ids...)
		}
	}
	return all
}

// flagValues are what a flag was given, once or many times.
func flagValues(set *pflag.FlagSet, name string) []string {
	f := set.Lookup(name)
	if f == nil || !f.Changed {
		return nil
	}
	if many, ok := f.Value.(pflag.SliceValue); ok {
		return many.GetSlice()
	}
	return []string{f.Value.String()}
}

// completeConfig offers sections, then their keys with =, and YAML files.
func completeConfig(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	if strings.Contains(typed, "=") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return offer(append(beginning(keysAfter(typed, "="), typed), files(typed, ".yaml", ".yml")...))
}

// keysAfter are the sections, or, once a section is typed, its keys with end.
func keysAfter(typed, end string) []string {
	var keys []string
	for _, key := range configs.Keys() {
		section, _, _ := strings.Cut(key, ".")
		if !strings.HasPrefix(typed, section+".") {
			key, end := section+".", ""
			if len(keys) == 0 || keys[len(keys)-1] != key {
				keys = append(keys, key+end)
			}
			continue
		}
		keys = append(keys, key+end)
	}
	return keys
}

// completeShow offers what `mini config show` can show.
func completeShow(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	var offers []string
	if len(args) == 0 {
		offers = []string{"bench", "task"}
	}
	if strings.Contains(typed, ".") {
		offers = keysAfter(typed, "")
	} else {
		offers = append(offers, configs.Sections()...)
	}
	return beginning(offers, typed), cobra.ShellCompDirectiveNoFileComp
}

// completeSet offers keys, and what is set now.
func completeSet(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return offer(beginning(keysAfter(typed, ""), typed))
	}
	d, err := ownDocument()
	if err != nil || len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if value, ok := d.Value(args[0]); ok {
		return beginning([]string{value}, typed), cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// completeUnset offers what is set in the user's own file.
func completeUnset(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	d, err := ownDocument()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return beginning(d.Keys(), typed), cobra.ShellCompDirectiveNoFileComp
}

// completeFolders offers folders.
func completeFolders(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return offer(files(typed))
}

// completeRun offers folders that hold a run.
func completeRun(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	var runs []string
	for _, path := range files(typed) {
		dir := strings.TrimSuffix(path, "/")
		switch {
		case exists(filepath.Join(dir, "run.json")):
			runs = append(runs, dir)
		case len(globbed(filepath.Join(dir, "*", "run.json"))) > 0:
			runs = append(runs, path)
		}
	}
	return offer(runs)
}

// verbsAbout say what mini ctl's verbs do.
var verbsAbout = map[string]string{
	"status": "how the batch stands", "pause": "start nothing more", "resume": "go on",
	"drain": "end with what runs", "requeue": "begin an instance anew", "kill": "end an instance",
}

// completeCtl offers runs, then what can be done, then the instances for it: of a
// batch that runs those that it has, for kill only those that have not ended.
func completeCtl(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	switch {
	case len(args) == 0:
		return completeRun(cmd, args, typed)
	case len(args) == 1:
		var verbs []string
		for _, v := range control.Verbs() {
			verbs = append(verbs, cobra.CompletionWithDesc(v, verbsAbout[v]))
		}
		return verbs, cobra.ShellCompDirectiveNoFileComp
	case len(args) > 2 || !control.Named(args[1]):
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	reply, err := control.Ask(ctx, args[0], control.Request{Verb: control.StatusVerb})
	if err != nil || reply.Status == nil || reply.Status.Standing == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	q := reply.Status.Standing
	ids := slices.Concat(q.Working, q.Waiting)
	if args[1] == string(runner.Requeue) {
		ids = slices.Concat(q.Working, q.Ended, q.Dropped, q.Waiting)
	}
	return beginning(ids, typed), cobra.ShellCompDirectiveNoFileComp
}

// completePatches offers the words, files of predictions, and runs that have
// submitted something.
func completePatches(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	found := beginning([]string{evaluate.GoldModel, evaluate.NoopModel}, typed)
	return offer(append(found, files(typed, ".json", ".jsonl")...))
}

func globbed(pattern string) []string {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil // a name with [ in it
	}
	return paths
}

// maxOffers bounds how much of a folder is looked at.
const maxOffers = 2000

// files are those beside what was typed that have one of the endings, and
// folders, which get a slash.
func files(typed string, endings ...string) []string {
	dir, base := filepath.Split(typed)
	entries, err := os.ReadDir(filepath.Join(".", dir))
	if filepath.IsAbs(typed) {
		entries, err = os.ReadDir(dir)
	}
	if err != nil {
		return nil
	}
	var found []string
	for _, e := range entries[:min(len(entries), maxOffers)] {
		name := e.Name()
		if !strings.HasPrefix(name, base) || strings.HasPrefix(name, ".") && base == "" {
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.IsDir() {
			found = append(found, dir+name+"/")
		} else if slices.ContainsFunc(endings, func(end string) bool { return strings.HasSuffix(name, end) }) {
			found = append(found, dir+name)
		}
	}
	return found
}

func beginning(list []string, typed string) []string {
	var found []string
	for _, w := range list {
		if strings.HasPrefix(w, typed) {
			found = append(found, w)
		}
	}
	return found
}

// completeFault offers the faults of a fake model.
func completeFault(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, f := range fake.Faults() {
		names = append(names, cobra.CompletionWithDesc(f.Name, f.About))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeProfile offers the profiles there are.
func completeProfile(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	all, err := configs.Profiles(profileDirs()...)
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.Name + "\t" + p.About
	}
	return names, cobra.ShellCompDirectiveDefault
}
