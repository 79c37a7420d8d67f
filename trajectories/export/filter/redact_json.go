package filter

import (
	"bytes"
	"encoding/json"
)

// redactJSON removes secrets from JSON so that it stays valid. It searches each
// string, then the whole text, since a match may span strings: the name of a setting
// and its value, or a private key without an end. Invalid JSON is searched as text.
func redactJSON(s *scanner, text []byte, keep func(secret) bool, found func(secret, bool)) []byte {
	if _, ok := nextSecret(s, text, 0); !ok {
		return text
	}
	if !json.Valid(text) {
		return redact(s, text, keep, found)
	}
	var out []byte
	rest := text
	for {
		from, to, ok := firstString(rest)
		if !ok {
			break
		}
		out = append(append(out, rest[:from]...), redact(s, rest[from:to], keep, found)...)
		rest = rest[to:]
		out, rest = append(out, '"'), rest[1:]
	}
	return redactAcrossStrings(s, append(out, rest...), keep, found)
}

// firstString returns the position of the first JSON string, without its quotes.
func firstString(text []byte) (from, to int, ok bool) {
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

// redactAcrossStrings removes matches that span strings. It replaces the part in the
// last string; a value that is not a string becomes one.
func redactAcrossStrings(s *scanner, text []byte, keep func(secret) bool, found func(secret, bool)) []byte {
	for from := 0; ; {
		hit, ok := nextSecret(s, text, from)
		if !ok {
			return text
		}
		kept := keep != nil && keep(hit)
		found(hit, kept)
		if from = hit.to; kept {
			continue
		}
		start, replacement := hit.from, `"`+redacted+`"`
		if quote := bytes.LastIndexByte(text[hit.from:hit.to], '"'); quote >= 0 {
			start, replacement = hit.from+quote+1, redacted
		}
		from = start + len(replacement)
		text = append(append(bytes.Clone(text[:start]), replacement...), text[hit.to:]...)
	}
}
