package atif

import (
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/minibench/mini/trajectories"
)

func text(r *reader, v json.RawMessage, at *place) (string, bool) {
	var s string
	if trajectories.KindOf(v) != "a string" || json.Unmarshal(v, &s) != nil {
		r.wrong(at, "a string is needed, this is %s", trajectories.KindOf(v))
		return "", false
	}
	return s, true
}

// wholeText is what the reference takes for a whole number in a string.
var wholeText = regexp.MustCompile(`^\s*[+-]?[0-9]+(?:_[0-9]+)*(?:\.0+)?\s*$`)

func whole(r *reader, v json.RawMessage, at *place) (int64, bool) {
	kind := trajectories.KindOf(v)
	word := string(v)
	switch kind {
	case "true or false":
		return map[string]int64{"true": 1}[word], true
	case "a string":
		var s string
		if json.Unmarshal(v, &s) != nil || !wholeText.MatchString(s) {
			r.wrong(at, "a whole number is needed, this is a string that holds none")
			return 0, false
		}
		word, _, _ = strings.Cut(strings.ReplaceAll(strings.TrimSpace(s), "_", ""), ".")
	case "a number":
	default:
		r.wrong(at, "a whole number is needed, this is %s", kind)
		return 0, false
	}
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(word, 64)
	switch {
	case err != nil || math.Abs(f) >= 1<<63:
		r.wrong(at, "%.40s is too large", word)
		return 0, false
	case f != math.Trunc(f):
		r.wrong(at, "a whole number is needed, this is %.40s", word)
		return 0, false
	}
	return int64(f), true
}

// atLeast is a whole number from low on.
func atLeast(low int64) read[int64] {
	return func(r *reader, v json.RawMessage, at *place) (int64, bool) {
		n, ok := whole(r, v, at)
		if ok && n < low {
			r.wrong(at, "%d is less than %d", n, low)
			return 0, false
		}
		return n, ok
	}
}

// number is a finite one: what is none cannot be summed up, nor be written as
// JSON.
func number(r *reader, v json.RawMessage, at *place) (float64, bool) {
	word := string(v)
	switch kind := trajectories.KindOf(v); kind {
	case "true or false":
		return map[string]float64{"true": 1}[word], true
	case "a string":
		var s string
		_ = json.Unmarshal(v, &s) // it is a string
		if word = strings.TrimSpace(s); strings.ContainsAny(word, "xXpP") {
			word = "" // Go would read hexadecimal
		}
	case "a number":
	default:
		r.wrong(at, "a number is needed, this is %s", kind)
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(word, "_", ""), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		r.wrong(at, "a number is needed, and a finite one; this is %.40q", word)
		return 0, false
	}
	return f, true
}

func truth(r *reader, v json.RawMessage, at *place) (bool, bool) {
	word := string(v)
	switch trajectories.KindOf(v) {
	case "true or false":
		return word == "true", true
	case "a string":
		var s string
		_ = json.Unmarshal(v, &s) // it is a string
		switch strings.ToLower(s) {
		case "1", "on", "t", "true", "y", "yes":
			return true, true
		case "0", "off", "f", "false", "n", "no":
			return false, true
		}
	case "a number":
		if f, err := strconv.ParseFloat(word, 64); err == nil && (f == 0 || f == 1) {
			return f == 1, true
		}
	}
	r.wrong(at, "true or false is needed, this is %s", trajectories.KindOf(v))
	return false, false
}

// mapping is an object that may hold anything.
func mapping(r *reader, v json.RawMessage, at *place) (json.RawMessage, bool) {
	if trajectories.KindOf(v) != "an object" {
		r.wrong(at, "an object is needed, this is %s", trajectories.KindOf(v))
		return nil, false
	}
	return v, true
}

// oneOf is a string out of a closed list.
func oneOf(words ...string) read[string] {
	return func(r *reader, v json.RawMessage, at *place) (string, bool) {
		s, ok := text(r, v, at)
		if !ok {
			return "", false
		}
		for _, w := range words {
			if s == w {
				return s, true
			}
		}
		r.wrong(at, "one of %s is needed, got %.60q", strings.Join(words, ", "), s)
		return "", false
	}
}

// effort is a string or a number.
func effort(r *reader, v json.RawMessage, at *place) (json.RawMessage, bool) {
	switch trajectories.KindOf(v) {
	case "a string":
		return v, true
	case "a number", "true or false":
		_, ok := number(r, v, at)
		return v, ok
	}
	r.wrong(at, "a string or a number is needed, this is %s", trajectories.KindOf(v))
	return nil, false
}
