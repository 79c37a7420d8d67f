package agent

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/jinja"
	"github.com/minibench/mini/internal/lazyregexp"
)

// GoTemplate translates a prompt in Jinja to a Go template. limits returns the limits of
// outputs that the prompt has, which Go templates take from Config.Observation; nil if it
// has none. notes say what the translation renders in another way.
//
// The error is a *FieldError: the prompt has something that is not translated, or both
// templates render different texts for some sample values.
func GoTemplate(field, text string) (translated string, limits *ObservationConfig, notes []string, err error) {
	j, err := parseJinja(field, text)
	if err != nil {
		return "", nil, nil, err
	}
	source := j.(jinjaTemplate) //nolint:forcetypeassert,errcheck // what parseJinja returns
	c := promptConverter{field: field}
	translated, err = source.tmpl.Go(c.goName)
	if err != nil {
		return "", nil, nil, jinjaError(field, err)
	}
	if limits, err = c.limits(translated); err != nil {
		return "", nil, nil, fieldErrorf(field, "%w", err)
	}
	if err := c.compare(source, translated, limits); err != nil {
		return "", nil, nil, fieldErrorf(field, "%w", err)
	}
	if limits != nil && limits.MaxChars == maxObservation {
		notes = append(notes, fmt.Sprintf("outputs of %d characters and more are shortened", maxObservation))
	}
	if strings.Contains(translated, "toJson ") {
		notes = append(notes, "toJson writes ' and characters beyond ASCII as they are")
	}
	if field == "format_error_template" && strings.Contains(translated, ".error") {
		notes = append(notes, ".error begins with a small letter and has no full stop")
	}
	return translated, limits, notes, nil
}

// promptConverter translates one prompt.
type promptConverter struct {
	field      string
	head, tail []int // bounds of the slices of an output
	whole      bool  // the prompt shows a whole output
}

// goVariables are the expressions of the variables of mini-swe-agent that have another
// name or type in Go templates. ROOT stands for the dot or $.
var goVariables = map[string]jinja.GoExpr{
	"output.returncode":       {Text: "ROOTreturncode", Kind: jinja.Int},
	"output.exception_info":   {Text: "ROOTexception", Kind: jinja.String},
	"output.output|length":    {Text: "ROOToutput_chars", Kind: jinja.Int},
	"actions|length":          {Text: "ROOTn_actions", Kind: jinja.Int},
	"has_tool_calls":          {Text: `and (eq ROOTprotocol "tools") (gt ROOTn_actions 0)`, Kind: jinja.Bool},
	"wall_time_limit_seconds": {Text: "int ROOTwall_time_limit_seconds", Kind: jinja.Int},
	"elapsed_seconds":         {Text: "int ROOTelapsed_seconds", Kind: jinja.Int},
	"timeout":                 {Text: "int ROOTtimeout_seconds", Kind: jinja.Int},
	"step_limit":              {Text: "ROOTstep_limit", Kind: jinja.Int},
	"n_model_calls":           {Text: "ROOTn_model_calls", Kind: jinja.Int},
	"cost_limit":              {Text: "ROOTcost_limit", Kind: jinja.Float},
	"model_cost":              {Text: "ROOTmodel_cost", Kind: jinja.Float},
}

// outputSlice matches a slice at the beginning or the end of an output.
var outputSlice = lazyregexp.New(`^output\.output\[(?:0?:(\d{1,7})|(-\d{1,7}):)\]$`)

// goName implements jinja.GoNames.
func (c *promptConverter) goName(path, root string) (jinja.GoExpr, bool) {
	if e, ok := goVariables[path]; ok {
		e.Text = strings.ReplaceAll(e.Text, "ROOT", root)
		return e, true
	}
	if m := outputSlice.FindStringSubmatch(path); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			c.head = append(c.head, n)
			return jinja.GoExpr{Text: root + "output_head", Kind: jinja.String}, true
		}
		n, _ := strconv.Atoi(m[2]) // the pattern matched digits
		c.tail = append(c.tail, -n)
		return jinja.GoExpr{Text: root + "output_tail", Kind: jinja.String}, true
	}
	if path == "output.output" {
		c.whole = true
		return jinja.GoExpr{Text: root + "output", Kind: jinja.String}, true
	}
	column, isColumn := strings.CutPrefix(path, "instance.")
	if c.field == "env_startup_command" && !strings.ContainsAny(path, ".|[") { // there columns have no prefix
		column, isColumn = path, !slices.Contains(sessionVariables, path)
	}
	own := sessionVariables
	if c.field == "format_error_template" {
		own = formatErrorVariables
	}
	switch {
	case isColumn && columnRef.MatchString(".instance."+column) && !strings.ContainsAny(column, ".|["):
		return jinja.GoExpr{Text: root + "instance." + column}, true
	case slices.Contains(own, path) && !slices.Contains([]string{"instance", "tools", "skills"}, path):
		return jinja.GoExpr{Text: root + path, Kind: jinja.String}, true
	}
	return jinja.GoExpr{}, false
}

// lengthBound matches the comparison of an output's length with a number.
var lengthBound = lazyregexp.New(`\b(lt|le|gt|ge) [.$]*output_chars (\d{1,7})\b`)

// limits returns the limits of outputs in a translated prompt.
func (c *promptConverter) limits(translated string) (*ObservationConfig, error) {
	var o ObservationConfig
	for _, l := range []struct {
		into *int
		all  []int
	}{{&o.HeadChars, c.head}, {&o.TailChars, c.tail}} {
		if len(slices.Compact(l.all)) > 1 {
			return nil, errors.New("it shows parts of an output of different lengths")
		}
		if len(l.all) > 0 {
			*l.into = l.all[0]
		}
	}
	if m := lengthBound.FindStringSubmatch(translated); m != nil {
		o.MaxChars, _ = strconv.Atoi(m[2]) // the pattern matched digits
		if m[1] == "le" || m[1] == "gt" {
			o.MaxChars++
		}
	} else if c.whole && c.head == nil && c.tail == nil {
		o = ObservationConfig{MaxChars: maxObservation, HeadChars: maxObservation / 2, TailChars: maxObservation / 2}
	}
	if o == (ObservationConfig{}) {
		return nil, nil //nolint:nilnil // none
	}
	o.MaxChars = max(o.MaxChars, o.HeadChars+o.TailChars, 1)
	return &o, nil
}

// compare renders both templates with sample values and returns an error if the texts
// differ.
func (c *promptConverter) compare(source jinjaTemplate, translated string, limits *ObservationConfig) error {
	known := sessionVariables
	switch c.field {
	case "observation_template":
		known = observationVariables
	case "format_error_template":
		known = formatErrorVariables
	}
	p, err := (Config{Protocol: protocol.Tools}).ParseProtocol()
	if err != nil {
		return err
	}
	target, err := parseGo(c.field, translated, known, templateFunctions(p))
	if err != nil {
		return err
	}
	for _, vars := range c.samples(source, limits) {
		want, err := source.render(vars)
		if err != nil {
			return err
		}
		if problem, ok := vars["error"].(string); ok { // the words that Jinja is given
			vars = merge(vars, map[string]any{"error": sentence(problem)})
		}
		got, err := target.render(vars)
		if err != nil {
			return err
		}
		if want != got {
			return fmt.Errorf("a Go template would render %s in place of %s", differingPart(got, want), differingPart(want, got))
		}
	}
	return nil
}

// differingPart quotes a text from where it differs from another one.
func differingPart(text, other string) string {
	i := 0
	for i < min(len(text), len(other)) && text[i] == other[i] {
		i++
	}
	return fmt.Sprintf("%.40q", text[max(i-10, 0):])
}

// samples returns values for the comparison. They avoid what notes are about.
func (c *promptConverter) samples(source jinjaTemplate, limits *ObservationConfig) []map[string]any {
	columns := map[string]any{}
	for _, m := range anyColumnRef.FindAllStringSubmatch(source.text, -1) {
		columns[m[1]] = "value of " + m[1]
	}
	if c.field == "env_startup_command" {
		for name := range source.tmpl.Names() {
			columns[name] = "value of " + name
		}
	}
	cfg := Config{Protocol: protocol.Tools, StepLimit: 50, CostLimit: 2.5, WallTimeLimit: 3600, Timeout: 30 * time.Second}
	cfg.JinjaSettings = map[string]any{"timeout": int64(cfg.Timeout.Seconds())}
	var all []map[string]any
	for _, system := range []string{"Linux", "Darwin"} {
		info := env.Info{System: system, Node: "n", Release: "6.1", Version: "#1", Machine: "x86_64", Dir: "/testbed"}
		for _, spent := range []struct {
			steps         int
			cost, elapsed float64
		}{{0, 0.25, 0.5}, {31, 1.75, 3001.25}, {49, 2.25, 3599}} {
			all = append(all, cfg.variables(Task{Text: "Fix <it> & \"that\".", Instance: columns}, info, Capabilities{}, spent.steps, spent.cost, spent.elapsed))
		}
	}
	var own []map[string]any
	switch c.field {
	case "observation_template":
		own = sampleOutputs(limits)
	case "format_error_template":
		for _, finish := range []string{"", "stop", "length", "tool_calls"} {
			for n := range 3 {
				parsed := protocol.ParsedReply{Problem: "a problem", Actions: make([]protocol.Action, n)}
				own = append(own, formatErrorValues(parsed, finish))
			}
		}
	default:
		return all
	}
	var merged []map[string]any
	for _, vars := range all {
		for _, values := range own {
			merged = append(merged, merge(vars, values))
		}
	}
	return merged
}

// sampleOutputs returns the values of observations around the limits.
func sampleOutputs(limits *ObservationConfig) []map[string]any {
	o := DefaultObservation
	if limits != nil {
		o = *limits
	}
	var all []map[string]any
	for _, size := range []int{0, 3, o.HeadChars, o.MaxChars - 1, o.MaxChars, o.MaxChars + 1, 2*o.MaxChars + 7} {
		if size >= maxObservation/2 { // slow, or shortened in Go templates; see notes
			continue
		}
		output := []byte(strings.Repeat("line <&>\n", size/9+1)[:size])
		for _, r := range []env.Result{{}, {ExitCode: 1}, {ExitCode: -1, TimedOut: true}} {
			r.Output, r.Chars = output, int64(size)
			all = append(all, observationValues(o.shorten(r), r, exception(r, time.Minute)))
		}
	}
	return all
}
