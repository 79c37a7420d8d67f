package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/policy/shell"
)

// evaluation is an approval request with its parsed command.
type evaluation struct {
	agent.ApprovalRequest
	parts     []shell.Part
	workspace shell.Workspace
	simple    func() []string // the words of the command if it is a simple one
}

// matches reports whether all conditions of r hold for part p. A rule that allows
// also has to name sudo and undecided parts; see the end.
func (r *rule) matches(e *evaluation, p *shell.Part) shell.Tristate {
	if !r.steps.isTrue(float64(e.Step)) || !r.cost.isTrue(float64(e.Cost)) || !r.matchesText(e, p) {
		return shell.No
	}
	if len(r.command) > 0 && !r.matchesCommand(e, p) {
		return shell.No
	}
	result := shell.Yes
	// An undecided part may run anything, so these conditions are at least Maybe.
	// The analysis of network, sudo, recursive_delete and system covers undecided
	// parts already.
	require := func(a shell.Tristate) {
		if p.UndecidedReason != "" {
			a = a.Or(shell.Maybe)
		}
		result = result.And(a)
	}
	if len(r.Programs) > 0 {
		require(r.matchesProgram(p))
	}
	for _, re := range r.arguments {
		require(matchesArguments(re.MatchString, p.Args))
	}
	for _, f := range []struct {
		patterns []pathPattern
		modes    []shell.Mode
	}{
		{r.paths, []shell.Mode{shell.Reads, shell.Writes}},
		{r.reads, []shell.Mode{shell.Reads}},
		{r.writes, []shell.Mode{shell.Writes}},
	} {
		if len(f.patterns) > 0 {
			require(matchesPaths(f.patterns, f.modes, e.workspace, p.Paths))
		}
	}
	if len(r.PipesInto) > 0 {
		require(matchesPipe(r.PipesInto, p))
	}
	for _, f := range []struct {
		want *bool
		is   shell.Tristate
	}{{r.Network, p.Network}, {r.Sudo, p.Sudo}, {r.RecursiveDelete, p.RecursiveDelete}, {r.System, p.System}} {
		if f.want != nil && *f.want {
			result = result.And(f.is)
		} else if f.want != nil {
			result = result.And(f.is.Not())
		}
	}
	if r.Undecided != nil && *r.Undecided != (p.UndecidedReason != "") {
		return shell.No
	}
	if r.action == agent.Allow && r.pattern == nil {
		// Without a pattern, a rule allows sudo only with the key sudo, and an
		// undecided part only with the key undecided or, if mini does not know the
		// program, with its name.
		isNamed := r.Undecided != nil || p.IsUnlisted() && len(r.Programs) > 0
		if p.UndecidedReason != "" && !isNamed || r.Sudo == nil && (p.Sudo == shell.Yes || p.Sudo == shell.Maybe && !isNamed) {
			return shell.No
		}
	}
	return result
}

// matchesCommand reports whether the whole command begins with the words of the
// rule and does nothing that rules usually ask about. Every doubt is a no: the rule
// allows no more than its text says.
func (r *rule) matchesCommand(e *evaluation, p *shell.Part) bool {
	words := e.simple()
	isOutside := func(path shell.Path) bool { return path.Location != shell.Inside }
	return len(e.parts) == 1 && len(words) >= len(r.command) && slices.Equal(words[:len(r.command)], r.command) &&
		p.Known && len(p.Via) == 0 && p.UndecidedReason == "" && !slices.ContainsFunc(p.Paths, isOutside) &&
		p.Network == shell.No && p.Sudo == shell.No && p.RecursiveDelete == shell.No && p.System == shell.No
}

// matchesText reports whether the rule's pattern matches the text of the
// command. For a rule that allows, the part must begin within a match. For other
// rules, a match anywhere in the command counts for all of its parts.
func (r *rule) matchesText(e *evaluation, p *shell.Part) bool {
	switch {
	case r.pattern == nil:
		return true
	case r.action != agent.Allow:
		return r.pattern.MatchString(e.Command)
	case r.anchored:
		m := r.pattern.FindStringIndex(e.Command)
		return m != nil && p.Start >= m[0] && p.Start < m[1]
	}
	for _, m := range r.pattern.FindAllStringIndex(e.Command, maxMatches) {
		if p.Start >= m[0] && p.Start < m[1] {
			return true
		}
	}
	return false
}

// maxMatches bounds the matches of a pattern in one command.
const maxMatches = 1000

// matchesProgram reports whether a part runs one of the rule's programs.
// Wrappers (such as sudo) count for rules that ask or deny. They do not count
// for rules that allow: allowing sudo does not allow what sudo runs.
func (r *rule) matchesProgram(p *shell.Part) shell.Tristate {
	names := []string{p.Program}
	if r.action != agent.Allow {
		names = append(names, p.Via...)
	}
	if !p.Known {
		names = names[1:]
	}
	if slices.ContainsFunc(names, func(name string) bool { return matchesName(r.Programs, name) }) {
		return shell.Yes
	}
	if !p.Known {
		return shell.Maybe
	}
	return shell.No
}

// matchesName reports whether name matches one of the patterns of path.Match.
func matchesName(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil && name != ""
	})
}

// matchesArguments reports whether match accepts the arguments, joined by
// spaces. Arguments whose value is unknown split the list: match is called for
// each group of known arguments between them, and one match gives Yes. If no
// group matches, the result is Maybe if a value is unknown, else No.
func matchesArguments(match func(string) bool, args []shell.Word) shell.Tristate {
	var known []string // consecutive known arguments
	all := true        // whether all arguments are known
	for i, a := range args {
		if a.Known {
			known = append(known, a.Text)
			if i < len(args)-1 {
				continue
			}
		} else {
			all = false
		}
		if match(strings.Join(known, " ")) && (all || len(known) > 0) {
			return shell.Yes
		}
		known = nil
	}
	switch {
	case len(args) == 0 && match(""):
		return shell.Yes
	case all:
		return shell.No
	}
	return shell.Maybe
}

// matchesPipe reports whether the part's output goes to one of the programs.
func matchesPipe(into []string, p *shell.Part) shell.Tristate {
	switch {
	case slices.ContainsFunc(p.PipesInto, func(name string) bool { return matchesName(into, name) }):
		return shell.Yes
	case p.PipesIntoUnknownProgram():
		return shell.Maybe
	}
	return shell.No
}

// matchesPaths reports whether one of the patterns matches the paths of a part
// that have one of the access modes: Reads, Writes or both. A path with the mode
// shell.Uses may have either, so it counts fully for both, and as Maybe for one.
func matchesPaths(patterns []pathPattern, modes []shell.Mode, ws shell.Workspace, paths []shell.Path) shell.Tristate {
	anyPattern := shell.No
	for _, pattern := range patterns {
		result := shell.No
		for _, path := range paths {
			certain := slices.Contains(modes, path.Mode) || len(modes) > 1
			if !certain && path.Mode != shell.Uses {
				continue
			}
			match := pattern.matches(path, ws)
			if !certain {
				match = match.And(shell.Maybe)
			}
			result = result.Or(match)
		}
		if pattern.keyword == "inside" { // "inside" means that no path is outside
			result = result.Not()
		}
		anyPattern = anyPattern.Or(result)
	}
	return anyPattern
}

// matches reports whether the pattern matches one path. For "inside" and
// "outside" it reports whether the path is outside; matchesPaths negates the
// result for "inside".
func (pattern pathPattern) matches(path shell.Path, workspace shell.Workspace) shell.Tristate {
	switch {
	case path.Location == shell.Unknown:
		return shell.Maybe
	case pattern.glob == nil && path.Location == shell.Outside:
		return shell.Yes
	case pattern.glob == nil:
		return shell.No
	}
	if pattern.anyElement {
		for part := range strings.SplitSeq(strings.Trim(path.Text, "/"), "/") {
			if pattern.glob.MatchString(part) {
				return shell.Yes
			}
		}
	} else {
		names := []string{path.Text}
		if rest, ok := strings.CutPrefix(path.Text, workspace.Dir+"/"); ok {
			names = append(names, rest)
		}
		if rest, ok := strings.CutPrefix(path.Text, workspace.Home+"/"); ok && workspace.Home != "" {
			names = append(names, "~/"+rest)
		}
		if slices.ContainsFunc(names, pattern.glob.MatchString) {
			return shell.Yes
		}
	}
	if strings.ContainsAny(path.Text, "*?[") {
		return shell.Maybe // the path has wildcards, which only the shell expands
	}
	return shell.No
}
