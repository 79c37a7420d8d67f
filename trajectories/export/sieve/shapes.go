package sieve

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// shape is a well-known form of keys: a pattern, and an anchor in it that is
// rare in other texts.
type shape struct {
	kind, anchor string
	before       int // bytes of the secret before the anchor
	pattern      string
	real         func(match string) bool
}

// keyShapes are the forms as their makers document them, or as their keys have
// been for years. Forms that other texts have too, as forty hexadecimal digits,
// are not among them.
func keyShapes() []shape {
	return []shape{
		{"Anthropic key", "sk-ant-", 0, `sk-ant-[a-z]{2,8}[0-9]{2}-[A-Za-z0-9_-]{60,}`, plausible},
		{"OpenRouter key", "sk-or-", 0, `sk-or-v1-[0-9a-f]{64}`, plausible},
		{"OpenAI key", "sk-proj-", 0, `sk-proj-[A-Za-z0-9_-]{40,}`, plausible},
		{"OpenAI key", "sk-svcacct-", 0, `sk-svcacct-[A-Za-z0-9_-]{40,}`, plausible},
		{"OpenAI key", "sk-admin-", 0, `sk-admin-[A-Za-z0-9_-]{40,}`, plausible},
		{"OpenAI key", "sk-", 0, `sk-[A-Za-z0-9]{32,64}`, plausible}, // and of servers that speak its API
		{"Groq key", "gsk_", 0, `gsk_[A-Za-z0-9]{52}`, plausible},
		{"xAI key", "xai-", 0, `xai-[A-Za-z0-9]{80}`, plausible},
		{"Perplexity key", "pplx-", 0, `pplx-[A-Za-z0-9]{48}`, plausible},
		{"Replicate token", "r8_", 0, `r8_[A-Za-z0-9]{37}`, plausible},
		{"NVIDIA key", "nvapi-", 0, `nvapi-[A-Za-z0-9_-]{60,80}`, plausible},
		{"Hugging Face token", "hf_", 0, `hf_[A-Za-z0-9]{34}`, plausible},
		{"AWS access key", "AKIA", 0, `AKIA[A-Z2-7]{16}`, plausible},
		{"AWS access key", "ASIA", 0, `ASIA[A-Z2-7]{16}`, plausible},
		{"AWS secret key", "_secret_access_key", 3, `aws_secret_access_key\\?["']?\s*[:=]\s*\\?["']?[A-Za-z0-9/+]{40}`, plausible},
		{"AWS secret key", "_SECRET_ACCESS_KEY", 3, `AWS_SECRET_ACCESS_KEY\\?["']?\s*[:=]\s*\\?["']?[A-Za-z0-9/+]{40}`, plausible},
		{"GitHub token", "ghp_", 0, `ghp_[A-Za-z0-9]{36,251}`, plausible},
		{"GitHub token", "gho_", 0, `gho_[A-Za-z0-9]{36,251}`, plausible},
		{"GitHub token", "ghu_", 0, `ghu_[A-Za-z0-9]{36,251}`, plausible},
		{"GitHub token", "ghs_", 0, `ghs_[A-Za-z0-9]{36,251}`, plausible},
		{"GitHub token", "ghr_", 0, `ghr_[A-Za-z0-9]{36,251}`, plausible},
		{"GitHub token", "_pat_", 6, `github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}`, plausible},
		{"GitLab token", "glpat-", 0, `glpat-[A-Za-z0-9_-]{20,60}(?:\.[A-Za-z0-9]{2}\.[A-Za-z0-9]{9})?`, plausible},
		{"Docker token", "_pat_", 4, `dckr_pat_[A-Za-z0-9_-]{27,60}`, plausible},
		{"Google key", "AIza", 0, `AIza[A-Za-z0-9_-]{35}`, plausible},
		{"Google token", "ya29.", 0, `ya29\.[A-Za-z0-9_-]{60,}`, plausible},
		{"Google client secret", "GOCSPX-", 0, `GOCSPX-[A-Za-z0-9_-]{28}`, plausible},
		{"Slack token", "xox", 0, `xox[abeoprs]-[A-Za-z0-9]{1,20}-[A-Za-z0-9-]{20,200}`, plausible},
		{"Slack token", "xapp-", 0, `xapp-[0-9]-[A-Z0-9]{6,20}-[0-9]{6,20}-[a-f0-9]{40,}`, plausible},
		{"Slack webhook", "hooks.slack.com/", 0, `hooks\.slack\.com/services/T[A-Z0-9]{6,12}/B[A-Z0-9]{6,12}/[A-Za-z0-9]{24}`, plausible},
		{"Stripe key", "_live_", 2, `[rs]k_live_[A-Za-z0-9]{24,120}`, plausible},
		{"npm token", "npm_", 0, `npm_[A-Za-z0-9]{36}`, plausible},
		{"PyPI token", "pypi-AgE", 0, `pypi-AgE[A-Za-z0-9_-]{60,}`, plausible},
		{"SendGrid key", "SG.", 0, `SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}`, plausible},
		{"DigitalOcean token", "_v1_", 3, `do[opr]_v1_[0-9a-f]{64}`, plausible},
		{"Databricks token", "dapi", 0, `dapi[0-9a-f]{32}(?:-[0-9])?`, plausible},
		{"Shopify token", "shpat_", 0, `shpat_[0-9a-fA-F]{32}`, plausible},
		{"Linear key", "lin_api_", 0, `lin_api_[A-Za-z0-9]{40}`, plausible},
		{"Vault token", "hvs.", 0, `hvs\.[A-Za-z0-9_-]{90,}`, plausible},
		{"age key", "AGE-SECRET-KEY-", 0, `AGE-SECRET-KEY-1[0-9A-Z]{58}`, plausible},
		{"web token", "eyJ", 0, `eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{20,}`, webToken},
	}
}

// shapes are the rules for the well-known forms.
func shapes() ([]rule, error) {
	all := []shape{{"private key", "BEGIN ", len(fence), `-----BEGIN (?:[A-Z0-9]{2,12} ){0,2}PRIVATE KEY(?: BLOCK)?-----`, nil}}
	var rules []rule
	for _, s := range append(all, keyShapes()...) {
		form, err := regexp.Compile(`\A(?:` + s.pattern + `)`)
		if err != nil {
			return nil, fmt.Errorf("the form of %s: %w", s.kind, err)
		}
		rules = append(rules, rule{kind: s.kind, anchor: s.anchor, before: s.before, form: form, real: s.real})
	}
	return rules, nil
}

// leastDifferent is how many different characters a key of any form has; what
// has fewer stands for a key, as "sk-xxxx".
const leastDifferent = 8

// plausible says that a match is no stand-in of documentation. What comes after
// the last separator is the random part in nearly all forms.
func plausible(match string) bool {
	if strings.Contains(strings.ToLower(match), "example") || strings.Contains(match, "...") {
		return false
	}
	tail := match[max(0, len(match)-20):]
	var seen [256]bool
	n := 0
	for i := range len(tail) {
		if !seen[tail[i]] {
			seen[tail[i]] = true
			n++
		}
	}
	return n >= leastDifferent
}

// webToken says that the first part of a JSON Web Token is what it has to be.
func webToken(match string) bool {
	head, _, _ := strings.Cut(match, ".")
	data, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil {
		return false
	}
	var header struct {
		Alg string `json:"alg"`
	}
	return json.Unmarshal(data, &header) == nil && header.Alg != "" && plausible(match)
}

const fence = "-----"

// reach bounds how far the end of a private key is looked for, in bytes.
const reach = 16 << 10

// leastPrivate is the least that a private key has between its fences, in
// characters of base64: those of Ed25519 have 64. What has less names the format
// only.
const leastPrivate = 60

// privateKey is where a private key ends whose first line has that length: at
// its last line, or, where that is not there, at the last that may belong to it.
func privateKey[T string | []byte](text T, head int) int {
	last, n := head, 0
	for i := head; i < len(text); i++ {
		switch c := text[i]; {
		case c == '-' && string(text[i:min(i+len(fence), len(text))]) == fence:
			tail := string(text[i+len(fence) : min(i+80, len(text))])
			if end := strings.Index(tail, fence); end >= 0 {
				return orNothing(i+end+2*len(fence), n)
			}
			return orNothing(i, n)
		case inWord(c) || strings.IndexByte("+/=", c) >= 0:
			n, last = n+1, i+1
		case strings.IndexByte(" \t\r\n\\\"':,.()@<>", c) < 0: // white space, quotes, escapes, the lines of a header
			return orNothing(last, n)
		}
	}
	return orNothing(last, n)
}

func orNothing(last, n int) int {
	if n < leastPrivate {
		return 0
	}
	return last
}
