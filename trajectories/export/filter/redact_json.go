package filter

import (
	"bytes"
	"encoding/json"
)

// redactJSON is redact for JSON, which stays valid. It searches each string and then the
// whole text, since a secret may span strings: a setting and its value, or a private key
// whose last line is missing. It treats invalid JSON as text.
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
		start, end, ok := firstString(rest)
		if !ok {
			break
		}
		out = append(append(out, rest[:start]...), redact(s, rest[start:end], keep, found)...)
		rest = rest[end:]
		out, rest = append(out, '"'), rest[1:]
	}
	return redactAcrossStrings(s, append(out, rest...), keep, found)
}

// firstString returns the start and the end of the first JSON string in text, without its
// quotes.
func firstString(text []byte) (start, end int, ok bool) {
	start = bytes.IndexByte(text, '"') + 1
	if start == 0 {
		return 0, 0, false
	}
	for end = start; end < len(text) && text[end] != '"'; end++ {
		if text[end] == '\\' {
			end++
		}
	}
	return start, end, end < len(text)
}

// redactAcrossStrings removes secrets that span strings. It replaces the part of a secret
// that is in the last string. A secret without quotes is replaced by a string.
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
