package replay

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
)

// rule describes one kind of noise. A comparison replaces the matches in both
// outputs by the rule's name. It applies rules only to lines that differ, or to
// all lines if it compares them in any order.
type rule struct {
	name        string
	pattern     *regexp.Regexp
	replacement []byte // the replacement; it keeps groups around the noise
}

// Parts of the patterns.
const (
	clock    = `\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: [AP]M)?`
	zone     = `(?: ?(?:Z\b|UTC|GMT|[+-]\d{2}:?\d{2}\b|[A-Z]{3,4}\b))?`
	days     = `(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? +)?`
	months   = `(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}`
	nameChar = `[^\s/'":;,)\]}>]`
	unit     = `(?:s|secs?|seconds?|mins?|minutes?)`
)

// rules returns mini's rules. A comparison applies them in this order, each to the
// result of the previous one. Dates without a time and ports outside the ephemeral
// range are data, not noise.
var rules = sync.OnceValue(func() []rule {
	var all []rule
	add := func(name, replacement string, patterns ...string) {
		replacement = strings.ReplaceAll(replacement, "*", "<"+name+">")
		all = append(all, rule{name, regexp.MustCompile(strings.Join(patterns, "|")), []byte(replacement)})
	}
	add("uuids", "*", `\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b`)
	add("temporary names", "*",
		`/[^\s'"]{0,200}?/mini-scratch-`+nameChar+`+`,
		`\bpytest-of-[^\s/]+/pytest-(?:\d+|current)`,
		`\btmp(?:[a-z0-9_]{8}|\.[A-Za-z0-9]{6,12})\b`,
		`/tmp/`+nameChar+`*\d{5}`+nameChar+`*`,
		`/tmp/cc[A-Za-z0-9]{6}\.\w+`)
	add("containers", "${1}*", `(@|^Linux )[0-9a-f]{12}\b`)
	add("addresses", "${1}*", `\b0x[0-9a-fA-F]{9,16}\b`, `\bat 0x[0-9a-fA-F]{6,16}\b`, `(\w@)[0-9a-f]{5,8}\b`)
	// Ephemeral ports. This rule precedes times, because a port may look like part of a time.
	add("ports", "${1}*", `(?i)((?:\b(?:localhost|\d{1,3}(?:\.\d{1,3}){3})['"]?|\[[0-9a-f:.]*\]|\bport['"]?)(?: ?[:=,] ?| is | ))`+
		`(?:3[2-9]\d{3}|[45]\d{4}|6[0-5]\d{3})\b`)
	add("pids", "${1}${2}*${3}",
		`((?i:\b(?:pid|process(?: id)?))['"]?[ :=#]{1,3}|^==|^\[\d+\][-+]? +)\d+\b`,
		`(\bline \d+: +)\d+( (?:Killed|Terminated|Aborted|Segmentation))`)
	add("times", "*",
		`\b\d{4}[-/]\d{2}[-/]\d{2}[T _-]`+clock+zone,
		`\b20\d{6}[-_T]?\d{6}\b`,
		days+`\b\d{1,2}[ /-]`+months+`[ /-]\d{4}[ :]`+clock+zone,
		days+`\b`+months+` +\d{1,2}(?:,? +\d{4})? +`+clock+zone+`(?: \d{4}\b(?: [+-]\d{4})?)?`,
		`\b1[5-9]\d{8}(?:\.\d+|(?:\d{3}){1,3})?\b`, // Unix time of 2017 to 2033, in seconds or finer
		`\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?\b`)
	// The hashes of commits, which contain their creation time.
	add("commits", "${1}*", `(^commit |^\[[^\]\n]{1,100} |\bHEAD is now at |\bDropped [^\n]{1,100}\(|\b(?:WIP on|On) [^\n:]{1,100}: )[0-9a-f]{7,40}\b`)
	add("durations", "${1}*",
		`(?i)\b(?:\d+h)?\d+m\d+(?:\.\d+)?s\b`,
		`\b\d+(?:\.\d+)?(?:e-?\d+)? ?(?:[nmuµμ]s|(?:nano|micro|milli)seconds?)\b`,
		`\b\d+\.\d+ ?`+unit+`\b(?: \(<times>\))?`,
		`(\b(?:in|took|after|elapsed|duration|time|total)['":= ]{1,4})(?:\d+(?:\.\d+)? ?`+unit+`|\d+\.\d+(?:e-?\d+)?)\b(?: \(<times>\))?`)
	return all
})

// apply replaces the rule's matches in a line. noise is the matched text, or nil if
// nothing matched.
func (r rule) apply(line []byte) (rest, noise []byte) {
	matches := r.pattern.FindAll(line, -1)
	if matches == nil {
		return line, nil
	}
	return r.pattern.ReplaceAll(line, r.replacement), bytes.Join(matches, []byte{0})
}

// linesMatch reports whether two lines are equal except for noise.
func (c *comparison) linesMatch(want, got []byte) bool {
	if !c.useBudget(len(want) + len(got)) {
		return false
	}
	var used []string
	for _, r := range c.rules {
		wantRest, wantNoise := r.apply(want)
		gotRest, gotNoise := r.apply(got)
		if !bytes.Equal(wantNoise, gotNoise) {
			used = append(used, r.name)
		}
		want, got = wantRest, gotRest
	}
	if len(used) > 0 { // the width of replaced numbers changes the alignment
		want, got = collapseFill(want), collapseFill(got)
	}
	if !bytes.Equal(want, got) {
		return false
	}
	for _, name := range used {
		c.addRule(name)
	}
	return true
}

// normalize returns a line without noise.
func (c *comparison) normalize(line []byte) []byte {
	if !c.useBudget(len(line)) {
		return line
	}
	changed := false
	for _, r := range c.rules {
		rest, found := r.apply(line)
		line, changed = rest, changed || found != nil
	}
	if changed {
		line = collapseFill(line)
	}
	return line
}

// useBudget takes n bytes from the budget, or returns false if less is left.
func (c *comparison) useBudget(n int) bool {
	if n > c.budget {
		return false
	}
	c.budget -= n
	return true
}

// collapseFill shortens each run of a fill character to one character.
func collapseFill(line []byte) []byte {
	const fill = " =-_.*#"
	out := make([]byte, 0, len(line))
	for _, b := range line {
		if n := len(out); n > 0 && out[n-1] == b && strings.IndexByte(fill, b) >= 0 {
			continue
		}
		out = append(out, b)
	}
	return out
}
