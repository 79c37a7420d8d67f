package schema

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/minibench/mini/trajectories"
)

// whole reads a whole number, which 1.0 is.
func (r *Reader) whole(raw json.RawMessage, v reflect.Value, tag string) bool {
	word, ok := r.digits(raw)
	if !ok || strings.Trim(word, "+-0123456789.eE") != "" {
		return r.Wrong("a whole number is needed, this is %s", trajectories.KindOf(raw))
	}
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		f, err := strconv.ParseFloat(word, 64)
		if err != nil || math.Abs(f) >= 1<<63 {
			return r.Wrong("%.40s is too large", word)
		}
		if f != math.Trunc(f) {
			return r.Wrong("a whole number is needed, this is %.40s", word)
		}
		n = int64(f)
	}
	v.SetInt(n)
	if low, ok := option(tag, "min"); ok {
		if least, _ := strconv.ParseInt(low, 10, 64); n < least {
			return r.Wrong("%d is less than %d", n, least)
		}
	}
	return true
}

// number reads a finite number: others cannot be summed up, nor written as JSON.
func (r *Reader) number(raw json.RawMessage, v reflect.Value) bool {
	word, ok := r.digits(raw)
	if !ok {
		return r.Wrong("a number is needed, this is %s", trajectories.KindOf(raw))
	}
	f, err := strconv.ParseFloat(word, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || strings.ContainsAny(word, "xXpP") {
		return r.Wrong("a number is needed, and a finite one; this is %.40q", word)
	}
	v.SetFloat(f)
	return true
}

// digits are those of a number, or of what stands for one.
func (r *Reader) digits(raw json.RawMessage) (string, bool) {
	switch kind := trajectories.KindOf(raw); {
	case kind == "a number":
		return string(raw), true
	case !r.Lax:
	case kind == "true or false":
		return map[string]string{"true": "1", "false": "0"}[string(raw)], true
	case kind == "a string":
		var s string
		_ = json.Unmarshal(raw, &s) // it is a string
		s = strings.ReplaceAll(strings.TrimSpace(s), "_", "")
		return s, s != ""
	}
	return "", false
}

func (r *Reader) truth(raw json.RawMessage, v reflect.Value) bool {
	kind := trajectories.KindOf(raw)
	word := string(raw)
	if r.Lax && kind == "a string" {
		var s string
		_ = json.Unmarshal(raw, &s) // it is a string
		word = strings.ToLower(s)
	} else if kind != "true or false" && (!r.Lax || kind != "a number") {
		return r.Wrong("true or false is needed, this is %s", kind)
	}
	switch word {
	case "true", "1", "1.0", "on", "t", "y", "yes":
		v.SetBool(true)
	case "false", "0", "0.0", "off", "f", "n", "no":
		v.SetBool(false)
	default:
		return r.Wrong("true or false is needed, this is %s", kind)
	}
	return true
}
