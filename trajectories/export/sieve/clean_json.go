package sieve

import (
	"bytes"
	"encoding/json"
)

// redactJSON takes secrets out of a text that is JSON, and leaves it JSON: what
// a key is said to be may reach from one string of it into the next, as the name
// of a setting and its value, or a private key without an end and all that
// follows. Each string is looked at alone first, then all of it. A text that is
// no JSON is one as any other.
func redactJSON(s *scanner, text []byte, leave func(secret) bool, found func(secret, bool)) []byte {
	if _, ok := next(s, text, 0); !ok {
		return text
	}
	if !json.Valid(text) {
		return redact(s, text, leave, found)
	}
	var out []byte
	rest := text
	for {
		from, to, ok := literal(rest)
		if !ok {
			break
		}
		out = append(append(out, rest[:from]...), redact(s, rest[from:to], leave, found)...)
		rest = rest[to:]
		out, rest = append(out, '"'), rest[1:]
	}
	return across(s, append(out, rest...), leave, found)
}

// literal is where the first string of JSON stands, without its quotes.
func literal(text []byte) (from, to int, ok bool) {
	from = bytes.IndexByte(text, '"') + 1
	if from == 0 {
		return 0, 0, false
	}
	for to = from; to < len(text) && text[to] != '"'; to++ {
		if text[to] == '\\' {
			to++
		}
	}
	return from, to, to < len(text)
}

// across takes out what reaches over the end of a string: of that, what stands
// in the last one. What is no string, as a number, becomes one.
func across(s *scanner, text []byte, leave func(secret) bool, found func(secret, bool)) []byte {
	for from := 0; ; {
		hit, ok := next(s, text, from)
		if !ok {
			return text
		}
		left := leave != nil && leave(hit)
		found(hit, left)
		if from = hit.to; left {
			continue
		}
		start, instead := hit.from, `"`+redacted+`"`
		if quote := bytes.LastIndexByte(text[hit.from:hit.to], '"'); quote >= 0 {
			start, instead = hit.from+quote+1, redacted
		}
		from = start + len(instead)
		text = append(append(bytes.Clone(text[:start]), instead...), text[hit.to:]...)
	}
}
