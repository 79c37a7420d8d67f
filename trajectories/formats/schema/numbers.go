package schema

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/minibench/mini/trajectories"
)

// integer decodes an integer. It accepts numbers such as 1.0 too.
func (r *Reader) integer(raw json.RawMessage, v reflect.Value, tag string) bool {
	text, ok := r.numberText(raw)
	if !ok || strings.Trim(text, "+-0123456789.eE") != "" {
		return r.Report("a whole number expected, got %s", trajectories.JSONKind(raw))
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		float, err := strconv.ParseFloat(text, 64)
		if err != nil || math.Abs(float) >= 1<<63 {
			return r.Report("%.40s is too large", text)
		}
		if float != math.Trunc(float) {
			return r.Report("a whole number expected, got %.40s", text)
		}
		n = int64(float)
	}
	v.SetInt(n)
	if minimum, ok := optionValue(tag, "min"); ok {
		if limit, _ := strconv.ParseInt(minimum, 10, 64); n < limit {
			return r.Report("%d is less than %d", n, limit)
		}
	}
	return true
}

// number decodes a number. It must be finite, since JSON cannot represent other numbers.
func (r *Reader) number(raw json.RawMessage, v reflect.Value) bool {
	text, ok := r.numberText(raw)
	if !ok {
		return r.Report("a number expected, got %s", trajectories.JSONKind(raw))
	}
	float, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(float) || math.IsInf(float, 0) || strings.ContainsAny(text, "xXpP") {
		return r.Report("a finite number expected, got %.40q", text)
	}
	v.SetFloat(float)
	return true
}

// numberText returns the text of a number. If r.Lenient is set, it accepts booleans, as 1
// and 0, and strings too.
func (r *Reader) numberText(raw json.RawMessage) (string, bool) {
	switch kind := trajectories.JSONKind(raw); {
	case kind == "a number":
		return string(raw), true
	case !r.Lenient:
	case kind == "true or false":
		return map[string]string{"true": "1", "false": "0"}[string(raw)], true
	case kind == "a string":
		var s string
		_ = json.Unmarshal(raw, &s) // cannot fail for a string
		s = strings.ReplaceAll(strings.TrimSpace(s), "_", "")
		return s, s != ""
	}
	return "", false
}

// boolean decodes a boolean. If r.Lenient is set, it accepts strings and numbers too.
func (r *Reader) boolean(raw json.RawMessage, v reflect.Value) bool {
	kind := trajectories.JSONKind(raw)
	text := string(raw)
	if r.Lenient && kind == "a string" {
		var s string
		_ = json.Unmarshal(raw, &s) // cannot fail for a string
		text = strings.ToLower(s)
	} else if kind != "true or false" && (!r.Lenient || kind != "a number") {
		return r.Report("true or false expected, got %s", kind)
	}
	switch text {
	case "true", "1", "1.0", "on", "t", "y", "yes":
		v.SetBool(true)
	case "false", "0", "0.0", "off", "f", "n", "no":
		v.SetBool(false)
	default:
		return r.Report("true or false expected, got %s", kind)
	}
	return true
}
