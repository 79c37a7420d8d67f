package replay

import (
	"bytes"
	"regexp"
)

// rule is one kind of noise. What its pattern finds, or the pattern's first
// group where it has one, gives way to <name> on both sides.
type rule struct {
	name string
	// hints are bytes of which a line must have one for the pattern to be tried;
	// empty tries it on every line.
	hints string
	find  *regexp.Regexp
	// noise looks closer at what was found; nil believes the pattern. A number
	// that could be data is noise only where it says what a clock said when the
	// command ran, or what the kernel hands out.
	noise func(found []byte, s span) bool
	// whole takes all that the pattern finds, whatever groups it has.
	whole bool
}

// digits are the hints of most rules.
const digits = "0123456789"

const (
	months = `(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}`
	days   = `(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? +)?`
	clock  = `\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: [AP]M)?`
	zone   = `(?: ?(?:Z\b|UTC|GMT|[+-]\d{2}:?\d{2}\b|[A-Z]{3,4}\b))?`
)

// rules are tried in this order: what is found by one is not seen by the next.
// They are applied to lines that differ, and to nothing else.
var rules = []rule{
	// Names that somebody drew by lot.
	{name: "uuids", hints: "-", find: regexp.MustCompile(`\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b`)},
	{name: "temporary names", hints: "/", find: regexp.MustCompile(`/[^\s'"]{0,200}?/mini-scratch-[^\s/'":;,)\]}>]+`)},
	{name: "temporary names", hints: "/", find: regexp.MustCompile(`\bpytest-of-[^\s/]+/pytest-(?:\d+|current)`)},
	{name: "temporary names", hints: "/", find: regexp.MustCompile(`(?:/tmp|/var/tmp|/dev/shm|/T)/([^\s/'":;,)\]}>]+)`), noise: drawn},
	{name: "temporary names", hints: "tT", find: regexp.MustCompile(`\btmp(?:[a-z0-9_]{8}\b|\.[A-Za-z0-9]{6,12}\b)`)},
	{name: "containers", hints: "abcdef", find: regexp.MustCompile(`\b[0-9a-f]{12}\b`), noise: mixed},

	// Where things lie in memory.
	{name: "addresses", hints: "x", find: regexp.MustCompile(`\b0x[0-9a-fA-F]{9,16}\b|\bat 0x[0-9a-fA-F]{6,16}\b`)},
	{name: "addresses", hints: "@", find: regexp.MustCompile(`\w@([0-9a-f]{5,8})\b`)},
	{name: "addresses", hints: digits, find: regexp.MustCompile(`\b(?:1[34]\d{13}|9[34]\d{12})\b`)},

	// Numbers that the kernel hands out. Before the times, since a process and a
	// port may look like part of one.
	{name: "ports", hints: digits, find: regexp.MustCompile(`(?i)(?:\b(?:localhost|\d{1,3}(?:\.\d{1,3}){3})['"]?|\[[0-9a-f:.]*\]|\bport['"]?)(?: ?[:=,] ?| is | )(\d{5})\b`), noise: ephemeral},
	{name: "pids", hints: digits, find: regexp.MustCompile(`(?i)\b(?:pid|process(?: id)?)['"]?[ :=#]{1,3}(\d+)\b`)},
	{name: "pids", hints: "[", find: regexp.MustCompile(`^\[\d+\][-+]? +(\d+)\b|\b[a-z][\w.-]{0,40}\[(\d{2,7})\]: `)},
	{name: "pids", hints: digits, find: regexp.MustCompile(`\bline \d+: +(\d+) (?:Killed|Terminated|Aborted|Segmentation|Bus error|Illegal|Floating|Hangup|Interrupt|Quit|Broken|Trace)`)},
	{name: "pids", hints: "=", find: regexp.MustCompile(`^==(\d+)==`)},

	// When it was.
	{name: "times", hints: "-/", find: regexp.MustCompile(`\b\d{4}[-/]\d{2}[-/]\d{2}(?:[T _-]` + clock + zone + `)?`), noise: today},
	{name: "times", hints: digits, find: regexp.MustCompile(`\b\d{8}(?:[-_T]?\d{6})?\b`), noise: today},
	{name: "times", hints: digits, find: regexp.MustCompile(days + `\b\d{1,2}[ /-]` + months + `[ /-]\d{4}(?:[ :]` + clock + zone + `)?`), noise: today},
	{name: "times", hints: digits, find: regexp.MustCompile(days + `\b` + months + ` +\d{1,2}(?:,? +\d{4}\b)?(?: +` + clock + zone + `(?: \d{4}\b(?: [+-]\d{4})?)?)?`), noise: today},
	{name: "times", hints: digits, find: regexp.MustCompile(`\b1\d{9}(?:\.\d+|\d{3}|\d{6}|\d{9})?\b`), noise: epoch},
	{name: "times", hints: ":", find: regexp.MustCompile(`\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?\b`)},
	// Objects that hold the time of their making.
	{name: "commits", hints: "cHD[W", find: regexp.MustCompile(
		`^commit ([0-9a-f]{40})\b|^\[[^\]\n]{1,100} ([0-9a-f]{7,12})\] |\bHEAD is now at ([0-9a-f]{7,12})\b|\bDropped [^\n]{1,100}\(([0-9a-f]{40})\)|\b(?:WIP on|On) [^\n:]{1,100}: ([0-9a-f]{7,12}) `)},

	// How long it took.
	{name: "durations", hints: "m", find: regexp.MustCompile(`\b(?:\d+h)?\d+m\d+(?:\.\d+)?s\b`)},
	{name: "durations", hints: "s", find: regexp.MustCompile(`(?i)\b\d+(?:\.\d+)?(?:e-?\d+)? ?(?:[nmuµμ]s|(?:nano|micro|milli)seconds?)\b`)},
	{name: "durations", hints: ".", find: regexp.MustCompile(`(?i)\b\d+\.\d+ ?(?:s|secs?|seconds?|mins?|minutes?)\b(?: \(<times>\))?`)},
	{name: "durations", hints: digits, find: regexp.MustCompile(`(?i)\b(?:in|took|after|elapsed|duration|time|total)['":= ]{1,4}(\d+(?:\.\d+)? ?(?:s|secs?|seconds?|mins?|minutes?)|\d+\.\d+(?:e-?\d+)?)\b`)},
}

// apply is a line without what the rule finds in it, and what that was.
func (r rule) apply(line []byte, s span) (rest, found []byte) {
	if r.hints != "" && !bytes.ContainsAny(line, r.hints) {
		return line, nil
	}
	from := 0
	for _, m := range r.find.FindAllSubmatchIndex(line, -1) {
		at, end := m[0], m[1]
		for g := 2; g < len(m) && !r.whole; g += 2 { // the group that took part
			if m[g] >= 0 {
				at, end = m[g], m[g+1]
			}
		}
		if r.noise != nil && !r.noise(line[at:end], s) {
			continue
		}
		rest = append(append(rest, line[from:at]...), "<"+r.name+">"...)
		found = append(append(found, line[at:end]...), 0)
		from = end
	}
	if from == 0 {
		return line, nil
	}
	return append(rest, line[from:]...), found
}

// alike says whether two lines are the same but for noise.
func (c *comparison) alike(then, now []byte) bool {
	if !c.afford(len(then) + len(now)) {
		return false
	}
	if c.same(then, now, c.recorded) {
		return true
	}
	// Where nobody knows when a command ran, every date may be noise, or data.
	return c.recorded.unknown() && c.same(then, now, c.now)
}

func (c *comparison) same(then, now []byte, s span) bool {
	var used []string
	for _, r := range c.rules {
		x, a := r.apply(then, s)
		y, b := r.apply(now, c.now)
		if !bytes.Equal(a, b) {
			used = append(used, r.name)
		}
		then, now = x, y
	}
	if len(used) > 0 { // what is printed beside a number is moved by its width
		then, now = squeeze(then), squeeze(now)
	}
	if !bytes.Equal(then, now) {
		if then, now = sortMembers(then), sortMembers(now); !bytes.Equal(then, now) {
			return false
		}
		used = append(used, "hash order")
	}
	for _, name := range used {
		c.use(name)
	}
	return true
}

// plain is a line without noise, for one that is looked for elsewhere.
func (c *comparison) plain(line []byte, s span) []byte {
	if !c.afford(len(line)) {
		return line
	}
	hit := false
	for _, r := range c.rules {
		x, found := r.apply(line, s)
		line, hit = x, hit || found != nil
	}
	if hit {
		line = squeeze(line)
	}
	return sortMembers(line)
}

// afford says whether so many bytes may still be normalised.
func (c *comparison) afford(n int) bool {
	if n > c.budget {
		return false
	}
	c.budget -= n
	return true
}
