package filter

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// keyFormat describes a kind of API key. The fields are those of rule.
type keyFormat struct {
	kind, anchor string // anchor is a part of the key that is rare in other text
	anchorOffset int
	pattern      string
	isReal       func(match string) bool
}

// keyFormats returns the formats that providers document or have used for years. It omits
// formats that are common in other text, such as 40 hexadecimal digits.
func keyFormats() []keyFormat {
	return []keyFormat{
		{"Anthropic key", "sk-ant-", 0, `sk-ant-[a-z]{2,8}[0-9]{2}-[A-Za-z0-9_-]{60,}`, isPlausible},
		{"OpenRouter key", "sk-or-", 0, `sk-or-v1-[0-9a-f]{64}`, isPlausible},
		{"OpenAI key", "sk-proj-", 0, `sk-proj-[A-Za-z0-9_-]{40,}`, isPlausible},
		{"OpenAI key", "sk-svcacct-", 0, `sk-svcacct-[A-Za-z0-9_-]{40,}`, isPlausible},
		{"OpenAI key", "sk-admin-", 0, `sk-admin-[A-Za-z0-9_-]{40,}`, isPlausible},
		{"OpenAI key", "sk-", 0, `sk-[A-Za-z0-9]{32,64}`, isPlausible}, // also used by compatible servers
		{"Groq key", "gsk_", 0, `gsk_[A-Za-z0-9]{52}`, isPlausible},
		{"xAI key", "xai-", 0, `xai-[A-Za-z0-9]{80}`, isPlausible},
		{"Perplexity key", "pplx-", 0, `pplx-[A-Za-z0-9]{48}`, isPlausible},
		{"Replicate token", "r8_", 0, `r8_[A-Za-z0-9]{37}`, isPlausible},
		{"NVIDIA key", "nvapi-", 0, `nvapi-[A-Za-z0-9_-]{60,80}`, isPlausible},
		{"Hugging Face token", "hf_", 0, `hf_[A-Za-z0-9]{34}`, isPlausible},
		{"AWS access key", "AKIA", 0, `AKIA[A-Z2-7]{16}`, isPlausible},
		{"AWS access key", "ASIA", 0, `ASIA[A-Z2-7]{16}`, isPlausible},
		{"AWS secret key", "_secret_access_key", 3, `aws_secret_access_key\\?["']?\s*[:=]\s*\\?["']?[A-Za-z0-9/+]{40}`, isPlausible},
		{"AWS secret key", "_SECRET_ACCESS_KEY", 3, `AWS_SECRET_ACCESS_KEY\\?["']?\s*[:=]\s*\\?["']?[A-Za-z0-9/+]{40}`, isPlausible},
		{"GitHub token", "ghp_", 0, `ghp_[A-Za-z0-9]{36,251}`, isPlausible},
		{"GitHub token", "gho_", 0, `gho_[A-Za-z0-9]{36,251}`, isPlausible},
		{"GitHub token", "ghu_", 0, `ghu_[A-Za-z0-9]{36,251}`, isPlausible},
		{"GitHub token", "ghs_", 0, `ghs_[A-Za-z0-9]{36,251}`, isPlausible},
		{"GitHub token", "ghr_", 0, `ghr_[A-Za-z0-9]{36,251}`, isPlausible},
		{"GitHub token", "_pat_", 6, `github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}`, isPlausible},
		{"GitLab token", "glpat-", 0, `glpat-[A-Za-z0-9_-]{20,60}(?:\.[A-Za-z0-9]{2}\.[A-Za-z0-9]{9})?`, isPlausible},
		{"Docker token", "_pat_", 4, `dckr_pat_[A-Za-z0-9_-]{27,60}`, isPlausible},
		{"Google key", "AIza", 0, `AIza[A-Za-z0-9_-]{35}`, isPlausible},
		{"Google token", "ya29.", 0, `ya29\.[A-Za-z0-9_-]{60,}`, isPlausible},
		{"Google client secret", "GOCSPX-", 0, `GOCSPX-[A-Za-z0-9_-]{28}`, isPlausible},
		{"Slack token", "xox", 0, `xox[abeoprs]-[A-Za-z0-9]{1,20}-[A-Za-z0-9-]{20,200}`, isPlausible},
		{"Slack token", "xapp-", 0, `xapp-[0-9]-[A-Z0-9]{6,20}-[0-9]{6,20}-[a-f0-9]{40,}`, isPlausible},
		{"Slack webhook", "hooks.slack.com/", 0, `hooks\.slack\.com/services/T[A-Z0-9]{6,12}/B[A-Z0-9]{6,12}/[A-Za-z0-9]{24}`, isPlausible},
		{"Stripe key", "_live_", 2, `[rs]k_live_[A-Za-z0-9]{24,120}`, isPlausible},
		{"npm token", "npm_", 0, `npm_[A-Za-z0-9]{36}`, isPlausible},
		{"PyPI token", "pypi-AgE", 0, `pypi-AgE[A-Za-z0-9_-]{60,}`, isPlausible},
		{"SendGrid key", "SG.", 0, `SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}`, isPlausible},
		{"DigitalOcean token", "_v1_", 3, `do[opr]_v1_[0-9a-f]{64}`, isPlausible},
		{"Databricks token", "dapi", 0, `dapi[0-9a-f]{32}(?:-[0-9])?`, isPlausible},
		{"Shopify token", "shpat_", 0, `shpat_[0-9a-fA-F]{32}`, isPlausible},
		{"Linear key", "lin_api_", 0, `lin_api_[A-Za-z0-9]{40}`, isPlausible},
		{"Vault token", "hvs.", 0, `hvs\.[A-Za-z0-9_-]{90,}`, isPlausible},
		{"age key", "AGE-SECRET-KEY-", 0, `AGE-SECRET-KEY-1[0-9A-Z]{58}`, isPlausible},
		{"web token", "eyJ", 0, `eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{20,}`, isWebToken},
	}
}

// keyRules returns the rules for private keys and the key formats.
func keyRules() ([]rule, error) {
	formats := []keyFormat{{"private key", "BEGIN ", len(fence), `-----BEGIN (?:[A-Z0-9]{2,12} ){0,2}PRIVATE KEY(?: BLOCK)?-----`, nil}}
	var rules []rule
	for _, k := range append(formats, keyFormats()...) {
		pattern, err := regexp.Compile(`\A(?:` + k.pattern + `)`)
		if err != nil {
			return nil, fmt.Errorf("the form of %s: %w", k.kind, err)
		}
		rules = append(rules, rule{kind: k.kind, anchor: k.anchor, anchorOffset: k.anchorOffset, pattern: pattern, isReal: k.isReal})
	}
	return rules, nil
}

// minDistinct is the minimum number of different characters at the end of a key.
// Placeholders such as "sk-xxxx" have fewer.
const minDistinct = 8

// isPlausible reports whether a match can be a key, and not a placeholder as used in
// documentation. It counts the different characters at the end of the match, where most
// formats are random.
func isPlausible(match string) bool {
	if strings.Contains(strings.ToLower(match), "example") || strings.Contains(match, "...") {
		return false
	}
	tail := match[max(0, len(match)-20):]
	var seen [256]bool
	distinct := 0
	for i := range len(tail) {
		if !seen[tail[i]] {
			seen[tail[i]] = true
			distinct++
		}
	}
	return distinct >= minDistinct
}

// isWebToken reports whether a match is plausible and starts with the header of a JSON
// Web Token.
func isWebToken(match string) bool {
	head, _, _ := strings.Cut(match, ".")
	data, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil {
		return false
	}
	var header struct {
		Alg string `json:"alg"`
	}
	return json.Unmarshal(data, &header) == nil && header.Alg != "" && isPlausible(match)
}

// fence encloses the title in the first and the last line of a private key.
const fence = "-----"

// maxPrivateKey bounds the length of a private key, in bytes.
const maxPrivateKey = 16 << 10

// minPrivateKey is the minimum number of base64 characters in a private key. Ed25519 keys
// have 64. Shorter text is an example of the format without a key.
const minPrivateKey = 60

// privateKeyEnd returns the length of the private key at the start of text, whose first
// line has the given length. If the last line is missing, the key ends with the last
// character that can be part of a key. privateKeyEnd returns 0 if the text is too short.
func privateKeyEnd(text string, firstLine int) int {
	last, keyChars := firstLine, 0
	for i := firstLine; i < len(text); i++ {
		switch c := text[i]; {
		case c == '-' && strings.HasPrefix(text[i:], fence):
			tail := text[i+len(fence) : min(i+80, len(text))]
			if end := strings.Index(tail, fence); end >= 0 {
				return endIfLong(i+end+2*len(fence), keyChars)
			}
			return endIfLong(i, keyChars)
		case isWordByte(c) || strings.IndexByte("+/=", c) >= 0:
			keyChars, last = keyChars+1, i+1
		case strings.IndexByte(" \t\r\n\\\"':,.()@<>", c) < 0: // white space, quotes, escapes, header lines
			return endIfLong(last, keyChars)
		}
	}
	return endIfLong(last, keyChars)
}

// endIfLong returns end, or 0 if there are too few characters for a private key.
func endIfLong(end, keyChars int) int {
	if keyChars < minPrivateKey {
		return 0
	}
	return end
}
