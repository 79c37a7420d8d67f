package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"github.com/minibench/mini/agent/skills"
	"github.com/minibench/mini/runner/report"
)

func newSkills(s Streams) *cobra.Command {
	return group(&cobra.Command{
		Use:   "skills",
		Short: "List and check skills: texts that a model reads when it needs them",
		Long: `A skill is a folder with a file SKILL.md: a name and a description, which the
model is told, a text, which it reads by "mini-tool skill NAME", and files that
commands can use. They are looked for in skills.paths, then in your own folder
(skills, beside your config.yaml), then among those that come with mini; of two
with one name the first counts. skills.use turns them on.`,
		Example: "  mini skills list\n  mini skills check ./my-skill",
	}, newSkillsList(s), newSkillsCheck(s))
}

// skillOptions are the flags of mini skills list and check.
type skillOptions struct {
	configFlags
	bench bool
	json  bool
}

func (o *skillOptions) add(cmd *cobra.Command) {
	f := cmd.Flags()
	o.configFlag(f)
	f.BoolVar(&o.bench, "bench", false, "the settings of mini bench, not those of mini")
	f.BoolVar(&o.json, "json", false, "print JSON")
}

// load finds all skills, and those in use.
func (o *skillOptions) load() (found *skills.Set, use []string, err error) {
	kind := "mini"
	if o.bench {
		kind = "swebench"
	}
	cfg, err := o.merge(kind)
	if err != nil {
		return nil, nil, err
	}
	return skills.Load(skillSources(cfg)...), cfg.Skills.Use, nil
}

func newSkillsList(s Streams) *cobra.Command {
	o := &skillOptions{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Say which skills there are, where each is from, and which are in use",
		Example: `  mini skills list
  mini skills list --bench -c mine.yaml --json`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return o.list(s) },
	}
	o.add(cmd)
	return cmd
}

// listed is a skill as --json has it.
type listed struct {
	skills.Skill
	Used bool `json:"used"`
}

func (o *skillOptions) list(s Streams) error {
	found, use, err := o.load()
	if err != nil {
		return err
	}
	list := []listed{}
	for _, one := range found.Skills {
		list = append(list, listed{one, slices.Contains(use, one.Name) || slices.Contains(use, skills.All)})
	}
	if o.json {
		return writeJSON(s.Out, map[string]any{"skills": list, "problems": orNone(found.Problems)})
	}
	var b strings.Builder
	for _, one := range list {
		fmt.Fprintln(&b, one.heading())
		b.WriteString(indented(one.Description))
	}
	if len(list) == 0 {
		b.WriteString("there are no skills\n")
	}
	if _, err := io.WriteString(s.Out, b.String()); err != nil {
		return err
	}
	bad := 0
	for _, p := range found.Problems {
		if !p.Warning {
			bad++
		}
	}
	if bad > 0 {
		_, err = fmt.Fprintln(s.Err, said(report.Count(bad, "problem")+"; those skills are passed over: mini skills check"))
	}
	return err
}

// heading is the first line about a skill.
func (l listed) heading() string {
	text := l.Name
	if l.Version != "" {
		text += " " + l.Version
	}
	if n := len(l.Files); n > 0 {
		text += ", " + report.Count(n, "file")
	}
	text += ", " + l.Source
	if l.Used {
		text += ", in use"
	}
	return report.Printable(text)
}

// indented is a text in lines of a screen, which begin with four spaces.
func indented(text string) string {
	const margin = "    "
	text = ansi.Wrap(report.Printable(text), helpWidth-len(margin), "")
	return margin + strings.ReplaceAll(text, "\n", "\n"+margin) + "\n"
}

// writeJSON writes a value as indented JSON.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func orNone(problems []skills.Problem) []skills.Problem {
	if problems == nil {
		return []skills.Problem{}
	}
	return problems
}

func newSkillsCheck(s Streams) *cobra.Command {
	o := &skillOptions{}
	cmd := &cobra.Command{
		Use:   "check [FOLDER...]",
		Short: "Find the mistakes in skills",
		Long: `Holds skills against the rules: the front matter of SKILL.md, names, sizes,
files and links. Each problem has a line: the file, the line, the reason. A
warning is no problem.

FOLDER is the folder of a skill, or its SKILL.md, or one with several. Without
one all skills are checked that mini would find. The exit code is 0 where all
is fine, 3 where a skill has problems.`,
		Example: `  mini skills check
  mini skills check ./my-skill ./others --json`,
		RunE: func(_ *cobra.Command, args []string) error { return o.check(s, args) },
	}
	o.add(cmd)
	return cmd
}

func (o *skillOptions) check(s Streams, args []string) error {
	var found *skills.Set
	if len(args) == 0 {
		var err error
		if found, _, err = o.load(); err != nil {
			return err
		}
	} else {
		var from []skills.Source
		for _, arg := range args {
			folder := arg
			if filepath.Base(arg) == "SKILL.md" {
				folder = filepath.Dir(arg) // the file itself is meant
			}
			if info, err := os.Stat(folder); err != nil || !info.IsDir() {
				return usagef("there is no folder %s", report.Printable(folder))
			}
			from = append(from, skills.Folder(folder))
		}
		found = skills.Load(from...)
	}
	bad := badSkills(found)
	if len(bad)+len(found.Skills) == 0 {
		found.Problems = append(found.Problems, skills.Problem{File: strings.Join(args, ", "), Text: "there are no skills in it"})
		bad[""] = true
	}
	if err := o.showCheck(s.Out, found, len(bad)); err != nil {
		return err
	}
	if len(bad) > 0 {
		return errIncomplete
	}
	return nil
}

// badSkills are the folders of skills with problems.
func badSkills(found *skills.Set) map[string]bool {
	bad := map[string]bool{}
	for _, p := range found.Problems {
		if !p.Warning {
			bad[p.Folder()] = true
		}
	}
	return bad
}

func (o *skillOptions) showCheck(w io.Writer, found *skills.Set, bad int) error {
	if o.json {
		return writeJSON(w, map[string]any{"problems": orNone(found.Problems), "fine": len(found.Skills), "with_problems": bad})
	}
	var b strings.Builder
	for i, p := range found.Problems {
		const most = 200
		if i == most {
			fmt.Fprintf(&b, "and %d more; --json has them\n", len(found.Problems)-most)
			break
		}
		fmt.Fprintln(&b, report.Printable(p.String()))
	}
	fmt.Fprintf(&b, "%d checked: %d fine, %d with problems\n", len(found.Skills)+bad, len(found.Skills), bad)
	_, err := io.WriteString(w, b.String())
	return err
}
