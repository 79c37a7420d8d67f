package config

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"github.com/minibench/mini/agent/tools/skills"
	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner/setup"
)

// NewSkills returns the command mini skills.
func NewSkills(a *app.App) *cobra.Command {
	return cmdutil.WithSubcommands(&cobra.Command{
		Use:   "skills",
		Short: "List and check skills",
		Long: `A skill is a folder with a file SKILL.md and files that commands can use.
The prompt contains its name and description. The model reads its text with
"mini-tool skill NAME". mini searches skills.paths, then the folder "skills"
beside your config.yaml, then the built-in skills. The first skill of a name is
used. skills.use enables skills.`,
		Example: "  mini skills list\n  mini skills check ./my-skill",
	}, newSkillsList(a), newSkillsCheck(a))
}

// SkillsOptions are the flags of mini skills list and check.
type SkillsOptions struct {
	settings.Flags
	bench bool
	json  bool
}

// newSkillsCommand adds the flags of the subcommands.
func newSkillsCommand(cmd *cobra.Command, run func(context.Context, *SkillsOptions, []string) error) *cobra.Command {
	o := &SkillsOptions{}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), o, args) }
	o.AddConfigFlag(cmd.Flags())
	cmd.Flags().BoolVar(&o.bench, "bench", false, "use the settings of mini bench instead of mini")
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

// load returns all skills and the value of skills.use, the names of the enabled ones.
func (o *SkillsOptions) load(ctx context.Context, a *app.App) (set *skills.Set, enabled []string, err error) {
	cfg, err := a.ConfigWithoutModel(ctx, &o.Flags, baseOf(o.bench))
	if err != nil {
		return nil, nil, err
	}
	return skills.Load(setup.SkillSources(cfg)...), cfg.Skills.Use, nil
}

func newSkillsList(a *app.App) *cobra.Command {
	return newSkillsCommand(&cobra.Command{
		Use:   "list",
		Short: "List skills, their sources and whether they are in use",
		Example: `  mini skills list
  mini skills list --bench -c mine.yaml --json`,
		Args: cmdutil.NoArgs,
	}, func(ctx context.Context, o *SkillsOptions, _ []string) error { return listSkills(ctx, a, o) })
}

// listedSkill is a skill in the output of --json.
type listedSkill struct {
	skills.Skill
	Used bool `json:"used"`
}

func listSkills(ctx context.Context, a *app.App, o *SkillsOptions) error {
	set, enabled, err := o.load(ctx, a)
	if err != nil {
		return err
	}
	list := []listedSkill{}
	for _, skill := range set.Skills {
		list = append(list, listedSkill{skill, slices.Contains(enabled, skill.Name) || slices.Contains(enabled, skills.All)})
	}
	if o.json {
		return cmdutil.WriteJSON(a.Out, map[string]any{"skills": list, "problems": append([]skills.Problem{}, set.Problems...)})
	}
	var b strings.Builder
	for _, skill := range list {
		const margin = "    "
		about := ansi.Wrap(text.Printable(skill.Description), cmdutil.TextWidth-len(margin), "")
		fmt.Fprintf(&b, "%s\n%s%s\n", skill.heading(), margin, strings.ReplaceAll(about, "\n", "\n"+margin))
	}
	if len(list) == 0 {
		b.WriteString("no skills\n")
	}
	if _, err := io.WriteString(a.Out, b.String()); err != nil {
		return err
	}
	problems := 0
	for _, p := range set.Problems {
		if !p.Warning {
			problems++
		}
	}
	if problems > 0 {
		_, err = fmt.Fprintln(a.Err, cmdutil.FormatNote(text.Count(problems, "problem")+"; mini ignores those skills; run mini skills check"))
	}
	return err
}

// heading returns the first line that mini skills list prints for a skill.
func (l listedSkill) heading() string {
	line := l.Name
	if l.Version != "" {
		line += " " + l.Version
	}
	if n := len(l.Files); n > 0 {
		line += ", " + text.Count(n, "file")
	}
	line += ", " + l.Source
	if l.Used {
		line += ", in use"
	}
	return text.Printable(line)
}

func newSkillsCheck(a *app.App) *cobra.Command {
	return newSkillsCommand(&cobra.Command{
		Use:   "check [FOLDER...]",
		Short: "Check skills for errors",
		Long: `Checks the front matter of SKILL.md, names, sizes, files and links. For each
problem, it prints a line with the file, the line number and the reason.
Warnings do not count as problems.

FOLDER is the folder of a skill, its SKILL.md, or a folder of several skills.
Without FOLDER, it checks all skills that mini finds. The exit code is 3 if a
skill has problems.`,
		Example: `  mini skills check
  mini skills check ./my-skill ./others --json`,
	}, func(ctx context.Context, o *SkillsOptions, args []string) error { return checkSkills(ctx, a, o, args) })
}

func checkSkills(ctx context.Context, a *app.App, o *SkillsOptions, args []string) error {
	var set *skills.Set
	if len(args) == 0 {
		var err error
		if set, _, err = o.load(ctx, a); err != nil {
			return err
		}
	} else {
		var sources []skills.Source
		for _, arg := range args {
			folder := arg
			if filepath.Base(arg) == "SKILL.md" {
				folder = filepath.Dir(arg) // the argument is the file of a skill
			}
			if info, err := os.Stat(folder); err != nil || !info.IsDir() {
				return usage.Errorf("no such folder: %s", text.Printable(folder))
			}
			sources = append(sources, skills.DirSource(folder))
		}
		set = skills.Load(sources...)
	}
	badSkills := setup.BadSkills(set)
	if len(badSkills)+len(set.Skills) == 0 {
		set.Problems = append(set.Problems, skills.Problem{File: strings.Join(args, ", "), Text: "no skills found"})
		badSkills[""] = true
	}
	var err error
	if o.json {
		err = cmdutil.WriteJSON(a.Out, map[string]any{
			"problems": append([]skills.Problem{}, set.Problems...), "fine": len(set.Skills), "with_problems": len(badSkills),
		})
	} else {
		var b strings.Builder
		for i, p := range set.Problems {
			const maxShown = 200
			if i == maxShown {
				fmt.Fprintf(&b, "and %d more; --json prints all\n", len(set.Problems)-maxShown)
				break
			}
			fmt.Fprintln(&b, text.Printable(p.String()))
		}
		fmt.Fprintf(&b, "%d checked: %d valid, %d with problems\n", len(set.Skills)+len(badSkills), len(set.Skills), len(badSkills))
		_, err = io.WriteString(a.Out, b.String())
	}
	if err == nil && len(badSkills) > 0 {
		return cmdutil.ErrIncomplete
	}
	return err
}
