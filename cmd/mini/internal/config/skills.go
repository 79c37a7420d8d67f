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

// skillOptions are the flags of mini skills list and check.
type skillOptions struct {
	settings.Flags
	bench bool
	json  bool
}

// addFlags adds the flags to cmd.
func (o *skillOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	o.AddConfigFlag(f)
	f.BoolVar(&o.bench, "bench", false, "use the settings of mini bench instead of mini")
	f.BoolVar(&o.json, "json", false, "print JSON")
}

// load returns all skills and the value of skills.use, the names of the enabled ones.
func (o *skillOptions) load(ctx context.Context, a *app.App) (set *skills.Set, enabled []string, err error) {
	builtin := "mini"
	if o.bench {
		builtin = "swebench"
	}
	cfg, err := a.ConfigWithoutModel(ctx, &o.Flags, builtin)
	if err != nil {
		return nil, nil, err
	}
	return skills.Load(setup.SkillSources(cfg)...), cfg.Skills.Use, nil
}

func newSkillsList(a *app.App) *cobra.Command {
	o := &skillOptions{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List skills, their sources and whether they are in use",
		Example: `  mini skills list
  mini skills list --bench -c mine.yaml --json`,
		Args: cmdutil.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.list(cmd.Context(), a) },
	}
	o.addFlags(cmd)
	return cmd
}

// listedSkill is a skill in the output of --json.
type listedSkill struct {
	skills.Skill
	Used bool `json:"used"`
}

func (o *skillOptions) list(ctx context.Context, a *app.App) error {
	set, enabled, err := o.load(ctx, a)
	if err != nil {
		return err
	}
	list := []listedSkill{}
	for _, skill := range set.Skills {
		list = append(list, listedSkill{skill, slices.Contains(enabled, skill.Name) || slices.Contains(enabled, skills.All)})
	}
	if o.json {
		return cmdutil.WriteJSON(a.Out, map[string]any{"skills": list, "problems": nonNil(set.Problems)})
	}
	var b strings.Builder
	for _, skill := range list {
		fmt.Fprintln(&b, skill.heading())
		b.WriteString(indented(skill.Description))
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

// indented wraps text into lines that are indented by four spaces.
func indented(line string) string {
	const margin = "    "
	line = ansi.Wrap(text.Printable(line), cmdutil.TextWidth-len(margin), "")
	return margin + strings.ReplaceAll(line, "\n", "\n"+margin) + "\n"
}

// nonNil returns an empty list for nil, so that the JSON contains [] instead of null.
func nonNil(problems []skills.Problem) []skills.Problem {
	if problems == nil {
		return []skills.Problem{}
	}
	return problems
}

func newSkillsCheck(a *app.App) *cobra.Command {
	o := &skillOptions{}
	cmd := &cobra.Command{
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
		RunE: func(cmd *cobra.Command, args []string) error { return o.check(cmd.Context(), a, args) },
	}
	o.addFlags(cmd)
	return cmd
}

func (o *skillOptions) check(ctx context.Context, a *app.App, args []string) error {
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
	if err := o.showCheck(a.Out, set, len(badSkills)); err != nil {
		return err
	}
	if len(badSkills) > 0 {
		return cmdutil.ErrIncomplete
	}
	return nil
}

// showCheck prints the problems and the number of valid and bad skills.
func (o *skillOptions) showCheck(w io.Writer, set *skills.Set, badCount int) error {
	if o.json {
		return cmdutil.WriteJSON(w, map[string]any{"problems": nonNil(set.Problems), "fine": len(set.Skills), "with_problems": badCount})
	}
	var b strings.Builder
	for i, p := range set.Problems {
		const maxShown = 200
		if i == maxShown {
			fmt.Fprintf(&b, "and %d more; --json prints all\n", len(set.Problems)-maxShown)
			break
		}
		fmt.Fprintln(&b, text.Printable(p.String()))
	}
	fmt.Fprintf(&b, "%d checked: %d valid, %d with problems\n", len(set.Skills)+badCount, len(set.Skills), badCount)
	_, err := io.WriteString(w, b.String())
	return err
}
