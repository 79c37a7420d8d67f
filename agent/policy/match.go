package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/policy/shell"
)

// subject is a command, read.
type subject struct {
	agent.Proposal
	parts []shell.Part
	place shell.Place
}

// fits says whether a rule holds for a part.
func (r *rule) fits(s *subject, p *shell.Part) shell.Answer {
	if !r.steps.holds(float64(s.Step)) || !r.cost.holds(float64(s.Cost)) || !r.matches(s, p) {
		return shell.No
	}
	answer := shell.Yes
	// Of a part that may run anything, everything may hold.
	holds := func(a shell.Answer) {
		if p.Undecided != "" {
			a = a.Or(shell.Maybe)
		}
		answer = answer.And(a)
	}
	if len(r.Programs) > 0 {
		holds(r.runs(p))
	}
	for _, re := range r.arguments {
		holds(found(re.MatchString, p.Args))
	}
	for _, f := range []struct {
		sides []sided
		modes []shell.Mode
	}{
		{r.paths, []shell.Mode{shell.Reads, shell.Writes}},
		{r.reads, []shell.Mode{shell.Reads}},
		{r.writes, []shell.Mode{shell.Writes}},
	} {
		if len(f.sides) > 0 {
			holds(touches(f.sides, f.modes, s.place, p.Paths))
		}
	}
	if len(r.PipesInto) > 0 {
		holds(pipes(r.PipesInto, p))
	}
	for _, f := range []struct {
		want *bool
		is   shell.Answer
	}{{r.Network, p.Network}, {r.Sudo, p.Sudo}, {r.RecursiveDelete, p.RecursiveDelete}, {r.System, p.System}} {
		if f.want != nil && *f.want {
			answer = answer.And(f.is)
		} else if f.want != nil {
			answer = answer.And(f.is.Not())
		}
	}
	if r.Undecided != nil && *r.Undecided != (p.Undecided != "") {
		return shell.No
	}
	if r.do == agent.Allow && r.pattern == nil && (r.Sudo == nil && p.Sudo != shell.No || r.Undecided == nil && p.Undecided != "") {
		return shell.No // nobody allows these without saying so
	}
	return answer
}

// matches holds the pattern against the text. One that allows covers what
// begins within a match; all others cover the command.
func (r *rule) matches(s *subject, p *shell.Part) bool {
	switch {
	case r.pattern == nil:
		return true
	case r.do != agent.Allow:
		return r.pattern.MatchString(s.Command)
	case r.anchored:
		m := r.pattern.FindStringIndex(s.Command)
		return m != nil && p.Start >= m[0] && p.Start < m[1]
	}
	for _, m := range r.pattern.FindAllStringIndex(s.Command, maxMatches) {
		if p.Start >= m[0] && p.Start < m[1] {
			return true
		}
	}
	return false
}

// maxMatches bounds how often a pattern is looked for in one command.
const maxMatches = 1000

// runs says whether a part runs one of the programs of a rule. What is run by
// it counts for rules that ask or deny; who allows sudo does not allow what it
// runs.
func (r *rule) runs(p *shell.Part) shell.Answer {
	names := []string{p.Program}
	if r.do != agent.Allow {
		names = append(names, p.Via...)
	}
	if !p.Known {
		names = names[1:]
	}
	if slices.ContainsFunc(names, func(name string) bool { return named(r.Programs, name) }) {
		return shell.Yes
	}
	if !p.Known {
		return shell.Maybe
	}
	return shell.No
}

func named(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil && name != ""
	})
}

// found looks for a text in arguments. Where one of them is known only when the
// command runs, it may be there.
func found(match func(string) bool, args []shell.Word) shell.Answer {
	var run []string
	all := true
	for i, a := range args {
		if a.Known {
			run = append(run, a.Text)
			if i < len(args)-1 {
				continue
			}
		} else {
			all = false
		}
		if match(strings.Join(run, " ")) && (all || len(run) > 0) {
			return shell.Yes
		}
		run = nil
	}
	switch {
	case len(args) == 0 && match(""):
		return shell.Yes
	case all:
		return shell.No
	}
	return shell.Maybe
}

func pipes(into []string, p *shell.Part) shell.Answer {
	switch {
	case slices.ContainsFunc(p.PipesInto, func(name string) bool { return named(into, name) }):
		return shell.Yes
	case p.PipesIntoUnknown():
		return shell.Maybe
	}
	return shell.No
}

// touches says whether paths are on a side, or match a pattern.
func touches(sides []sided, modes []shell.Mode, at shell.Place, paths []shell.Path) shell.Answer {
	answer := shell.No
	for _, s := range sides {
		a := shell.No
		for _, q := range paths {
			certain := slices.Contains(modes, q.Mode) || len(modes) > 1
			if !certain && q.Mode != shell.Uses {
				continue
			}
			one := s.holds(q, at)
			if !certain {
				one = one.And(shell.Maybe)
			}
			a = a.Or(one)
		}
		if s.word == "inside" { // none is outside
			a = a.Not()
		}
		answer = answer.Or(a)
	}
	return answer
}

// holds is about one path. Of "inside" it says whether the path is not.
func (s sided) holds(q shell.Path, at shell.Place) shell.Answer {
	switch {
	case q.Where == shell.Unknown:
		return shell.Maybe
	case s.glob == nil && q.Where == shell.Outside:
		return shell.Yes
	case s.glob == nil:
		return shell.No
	}
	if s.base {
		for part := range strings.SplitSeq(strings.Trim(q.Text, "/"), "/") {
			if s.glob.MatchString(part) {
				return shell.Yes
			}
		}
	} else {
		names := []string{q.Text}
		if rest, ok := strings.CutPrefix(q.Text, at.Dir+"/"); ok {
			names = append(names, rest)
		}
		if rest, ok := strings.CutPrefix(q.Text, at.Home+"/"); ok && at.Home != "" {
			names = append(names, "~/"+rest)
		}
		if slices.ContainsFunc(names, s.glob.MatchString) {
			return shell.Yes
		}
	}
	if strings.ContainsAny(q.Text, "*?[") {
		return shell.Maybe // the names that it stands for are not looked up
	}
	return shell.No
}
