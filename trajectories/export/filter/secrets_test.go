package filter_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/trajectories/export/filter"
)

const (
	alnum       = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	base32      = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	hexDigits   = "0123456789abcdef"
	urlSafe     = alnum + "-_"
	base64Chars = alnum + "+/"
)

// randomText returns n random characters of an alphabet. With urlSafe, the first and the
// last character are letters.
func randomText(r *rand.Rand, n int, alphabet string) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	if alphabet == urlSafe {
		b[0], b[n-1] = 'a', 'Z'
	}
	return string(b)
}

// keys returns generated keys of every format, with their kind. The source code contains no
// keys, since secret scanners would report them.
func keys(r *rand.Rand) map[string]string {
	web := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"`+randomText(r, 12, alnum)+`"}`)) +
		"." + randomText(r, 43, urlSafe)
	return map[string]string{
		"sk-ant-" + "api03-" + randomText(r, 95, urlSafe):                                         "Anthropic key",
		"sk-or-v1-" + randomText(r, 64, hexDigits):                                                "OpenRouter key",
		"sk-proj-" + randomText(r, 156, urlSafe):                                                  "OpenAI key",
		"sk-svcacct-" + randomText(r, 60, urlSafe):                                                "OpenAI key",
		"sk-" + randomText(r, 20, alnum) + "T3BlbkFJ" + randomText(r, 20, alnum):                  "OpenAI key",
		"sk-" + randomText(r, 32, hexDigits):                                                      "OpenAI key",
		"gsk_" + randomText(r, 52, alnum):                                                         "Groq key",
		"xai-" + randomText(r, 80, alnum):                                                         "xAI key",
		"pplx-" + randomText(r, 48, alnum):                                                        "Perplexity key",
		"r8_" + randomText(r, 37, alnum):                                                          "Replicate token",
		"nvapi-" + randomText(r, 64, urlSafe):                                                     "NVIDIA key",
		"hf_" + randomText(r, 34, alnum):                                                          "Hugging Face token",
		"AKIA" + randomText(r, 16, base32):                                                        "AWS access key",
		"ASIA" + randomText(r, 16, base32):                                                        "AWS access key",
		"aws_secret_access_key = " + randomText(r, 40, base64Chars):                               "AWS secret key",
		`AWS_SECRET_ACCESS_KEY="` + randomText(r, 40, base64Chars):                                "AWS secret key",
		"ghp_" + randomText(r, 36, alnum):                                                         "GitHub token",
		"gho_" + randomText(r, 36, alnum):                                                         "GitHub token",
		"ghu_" + randomText(r, 36, alnum):                                                         "GitHub token",
		"ghs_" + randomText(r, 36, alnum):                                                         "GitHub token",
		"ghr_" + randomText(r, 76, alnum):                                                         "GitHub token",
		"github_pat_" + randomText(r, 22, alnum) + "_" + randomText(r, 59, alnum):                 "GitHub token",
		"glpat-" + randomText(r, 20, urlSafe):                                                     "GitLab token",
		"dckr_pat_" + randomText(r, 27, urlSafe):                                                  "Docker token",
		"AIza" + randomText(r, 35, urlSafe):                                                       "Google key",
		"ya29." + randomText(r, 120, urlSafe):                                                     "Google token",
		"GOCSPX-" + randomText(r, 28, urlSafe):                                                    "Google client secret",
		"xoxb-" + randomText(r, 12, "123456789") + "-" + randomText(r, 24, alnum):                 "Slack token",
		"xapp-1-A0" + randomText(r, 9, base32) + "-1234567890123-" + randomText(r, 64, hexDigits): "Slack token",
		"hooks.slack.com/services/T" + randomText(r, 8, base32) + "/B" + randomText(r, 10, base32) + "/" + randomText(r, 24, alnum): "Slack webhook",
		"sk_live_" + randomText(r, 24, alnum):                                 "Stripe key",
		"rk_live_" + randomText(r, 99, alnum):                                 "Stripe key",
		"npm_" + randomText(r, 36, alnum):                                     "npm token",
		"pypi-AgEIcHlwaS5vcmc" + randomText(r, 150, urlSafe):                  "PyPI token",
		"SG." + randomText(r, 22, urlSafe) + "." + randomText(r, 43, urlSafe): "SendGrid key",
		"dop_v1_" + randomText(r, 64, hexDigits):                              "DigitalOcean token",
		"dapi" + randomText(r, 32, hexDigits):                                 "Databricks token",
		"shpat_" + randomText(r, 32, hexDigits):                               "Shopify token",
		"lin_api_" + randomText(r, 40, alnum):                                 "Linear key",
		"hvs." + randomText(r, 95, urlSafe):                                   "Vault token",
		"AGE-SECRET-KEY-1" + randomText(r, 58, base32):                        "age key",
		web:                     "web token",
		pem(r, "RSA ", 1600):    "private key",
		pem(r, "", 64):          "private key",
		pem(r, "OPENSSH ", 400): "private key",
		pem(r, "EC ", 160):      "private key",
		strings.Replace(pem(r, "RSA ", 800), "-----\n", "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n", 1): "private key",
	}
}

// pem returns text in the format of a private key of n characters.
func pem(r *rand.Rand, kind string, n int) string {
	var b strings.Builder
	b.WriteString("-----BEGIN " + kind + "PRIVATE KEY-----\n")
	for ; n > 0; n -= 64 {
		b.WriteString(randomText(r, min(n, 64), base64Chars) + "\n")
	}
	return b.String() + "-----END " + kind + "PRIVATE KEY-----"
}

// TestKeysAreFound checks keys of every format in different contexts.
func TestKeysAreFound(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for key, kind := range keys(r) {
		quoted, err := json.Marshal("x\n" + key + "\ny")
		if err != nil {
			t.Fatal(err)
		}
		escaped := strings.Trim(string(quoted), `"`)
		inJSON := strings.ReplaceAll(strings.ReplaceAll(key, "\n", `\n`), `"`, `\"`)
		for where, text := range map[string][2]string{
			"alone":            {key, "[redacted]"},
			"in a sentence":    {"the key is " + key + ", and more", "the key is [redacted], and more"},
			"in quotes":        {`export A="` + key + `"`, `export A="[redacted]"`},
			"in a URL":         {"https://user:" + key + "@host/", "https://user:[redacted]@host/"},
			"after a line":     {"\n" + key + "\n", "\n[redacted]\n"},
			"in a URL's query": {"https://host/?k=%22" + key + "%22", "https://host/?k=%22[redacted]%22"},
			"in colour":        {"\x1b[1;32m" + key + "\x1b[0m", "\x1b[1;32m[redacted]\x1b[0m"},
			"before a dash":    {key + " -", "[redacted] -"},
			"twice":            {key + " " + key, "[redacted] [redacted]"},
			"in JSON in text":  {`{"command":"` + escaped + `"}`, `{"command":"x\n[redacted]\ny"}`},
		} {
			if strings.Contains(inJSON, `\`) && where == "in JSON in text" && kind == "AWS secret key" {
				continue // the quotes in the match are escaped too
			}
			clean, kinds, err := filter.Scan(text[0])
			if err != nil || clean != text[1] {
				t.Errorf("%s %s: %.300q; want %q (%v)", kind, where, clean, text[1], err)
			}
			for _, got := range kinds {
				if got != kind {
					t.Errorf("%s %s is called %s", kind, where, got)
				}
			}
		}
	}
}

// TestEscapedPrivateKey checks private keys in tool call arguments and JSON files.
func TestEscapedPrivateKey(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	data, err := json.Marshal(map[string]string{"command": "cat > key <<'E'\n" + pem(r, "RSA ", 900) + "\nE"})
	if err != nil {
		t.Fatal(err)
	}
	clean, kinds, err := filter.Scan(string(data))
	want := `{"command":"cat \u003e key \u003c\u003c'E'\n[redacted]\nE"}`
	if err != nil || clean != want || len(kinds) != 1 {
		t.Errorf("%s, %v, %v", clean, kinds, err)
	}
	torn := pem(r, "RSA ", 900)
	clean, _, err = filter.Scan("head\n" + torn[:700])
	if err != nil || clean != "head\n[redacted]" {
		t.Errorf("a key without its end: %q, %v", clean, err)
	}
}

// TestNotKeys checks text that is similar to a key but is not a key.
func TestNotKeys(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	hash := randomText(r, 40, hexDigits)
	for _, text := range []string{
		"", "sk", "sk-", "risk-" + randomText(r, 40, alnum), "task-" + randomText(r, 48, alnum), "disk_" + hash,
		"commit " + hash, "sha256:" + randomText(r, 64, hexDigits), "123e4567-e89b-12d3-a456-426614174000",
		"sk-" + strings.Repeat("x", 48), "sk-your-api-key-here", "sk-...", "sk-ant-...", "sk-test", "OPENAI_API_KEY=sk-dummy",
		"AKIAIOSFODNN7EXAMPLE", "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
		"AKIA" + randomText(r, 15, base32), "AKIA" + randomText(r, 17, base32), "XAKIA" + randomText(r, 16, base32),
		"ghp_" + strings.Repeat("X", 36), "ghp_" + randomText(r, 12, alnum), "hf_hub_download_a_file_from_the_hub_now", "hf_" + randomText(r, 33, alnum),
		"npm_config_registry=x", "npm_" + randomText(r, 40, alnum), "AIza" + randomText(r, 34, alnum), "glpat-short",
		"-----BEGIN CERTIFICATE-----\n" + randomText(r, 64, base64Chars) + "\n-----END CERTIFICATE-----",
		"-----BEGIN PUBLIC KEY-----\n" + randomText(r, 64, base64Chars) + "\n-----END PUBLIC KEY-----",
		`if text.startswith("-----BEGIN RSA PRIVATE KEY-----"):`, "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
		"eyJ", "eyJhbGciOiJIUzI1NiJ9", "eyJhbGciOiJIUzI1NiJ9.e30.", base64.StdEncoding.EncodeToString([]byte(`{"a":"` + hash + `"}`)),
		"eyJ" + randomText(r, 30, alnum) + ".eyJ" + randomText(r, 30, alnum) + "." + randomText(r, 30, alnum),
		"xoxb-token", "xoxo-hugs", "SG.something", "sk_test_" + randomText(r, 24, alnum), "x_live_" + randomText(r, 30, alnum),
		"BEGIN PRIVATE KEY", "data:image/png;base64,iVBORw0KGgo" + randomText(r, 4000, base64Chars), "integrity sha512-" + randomText(r, 86, base64Chars) + "==",
		"dapi" + randomText(r, 31, hexDigits), "dapi" + randomText(r, 33, hexDigits), "/api/dapi/x",
	} {
		clean, kinds, err := filter.Scan(text)
		if err != nil || kinds != nil || clean != text {
			t.Errorf("%.100q: %v, %v", text, kinds, err)
		}
	}
}

func TestKnownValues(t *testing.T) {
	const value = "pass/word\"+\u00e4 1"
	known := []filter.KnownSecret{
		{Name: "OWN_KEY", Value: value},
		{Name: "SHORT_KEY", Value: "none"},
		{Name: "EMPTY_KEY", Value: ""},
		{Name: "WORD_KEY", Value: "ordinary"},
		{Name: "A_KEY", Value: "common-beginning"},
		{Name: "B_KEY", Value: "common-beginning-and-more\n"},
		{Name: "C_KEY", Value: `quoted"&more`},
	}
	for text, want := range map[string]string{
		"x" + value + "y":                           "x[redacted]y",
		`{"k":"pass/word\"+` + "\u00e4" + ` 1"}`:    `{"k":"[redacted]"}`,
		`{"k":"quoted\"&more"}`:                     `{"k":"[redacted]"}`,
		`{"k":"{\"a\":\"quoted\\\"\u0026more\"}"}`:  `{"k":"{\"a\":\"[redacted]\"}"}`,
		`{"k":"{\"a\":\"quoted\\\"&more\"}"}`:       `{"k":"{\"a\":\"[redacted]\"}"}`,
		"https://h/?k=pass%2Fword%22%2B%C3%A4+1&x":  "https://h/?k=[redacted]&x",
		"https://h/pass%2Fword%22+%C3%A4%201/x":     "https://h/[redacted]/x",
		"common-beginning-and-more":                 "[redacted]",
		"common-beginning-and-less":                 "[redacted]-and-less",
		"none of this is extraordinary":             "none of this is extraordinary",
		"pass/word":                                 "pass/word",
		strings.Repeat("common-beginning", 3) + "x": strings.Repeat("[redacted]", 3) + "x",
	} {
		clean, kinds, err := filter.Scan(text, known...)
		if err != nil || clean != want {
			t.Errorf("%q: %q, %v, %v; want %q", text, clean, kinds, err, want)
		}
		for _, kind := range kinds {
			if !strings.HasPrefix(kind, "value of ") || strings.Contains(kind, "pass") {
				t.Errorf("%q is called %q", text, kind)
			}
		}
	}
	if _, kinds, _ := filter.Scan("common-beginning-and-more", known...); len(kinds) != 1 || kinds[0] != "value of B_KEY" {
		t.Errorf("the longer one is %v", kinds)
	}
}

// realFiles calls do for every file of the real data in a folder.
func realFiles(t *testing.T, folder string, do func(name string, data []byte)) {
	t.Helper()
	dir := corpustest.RealData(t, folder)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, ".gz") {
			z, err := gzip.NewReader(bytes.NewReader(data))
			if err != nil {
				return err
			}
			if data, err = io.ReadAll(z); err != nil {
				return err
			}
		}
		do(strings.TrimPrefix(path, dir), data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNoKeyInRealFiles checks that there are no matches in public trajectories, logs and
// datasets, which contain no keys.
func TestNoKeyInRealFiles(t *testing.T) {
	scan, err := filter.Scanner()
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"trajectories", "eval-logs", "swebench", "corpus"} {
		t.Run(folder, func(t *testing.T) {
			files, size := 0, 0
			realFiles(t, folder, func(name string, data []byte) {
				files, size = files+1, size+len(data)
				if _, kinds := scan(string(data)); kinds != nil {
					t.Errorf("%s: %v", name, kinds)
				}
			})
			t.Logf("%d files, %d bytes", files, size)
			if size == 0 {
				t.Errorf("nothing was read in %d files", files)
			}
		})
	}
}

func FuzzScan(f *testing.F) {
	r := rand.New(rand.NewPCG(9, 10))
	for key := range keys(r) {
		f.Add("text " + key + " text")
	}
	f.Add(strings.Repeat(" sk- eyJ -----BEGIN PRIVATE KEY-----", 9))
	known := filter.KnownSecret{Name: "MY_KEY", Value: "known-secret-value"}
	scan, err := filter.Scanner(known)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		clean, kinds := scan(text)
		if (clean == text) != (kinds == nil) {
			t.Errorf("%d found, and %q became %q", len(kinds), text, clean)
		}
		if strings.Contains(clean, known.Value) {
			t.Errorf("a known value is left in %q", clean)
		}
		if n := strings.Count(clean, "[redacted]") - strings.Count(text, "[redacted]"); n > len(kinds) {
			t.Errorf("%d marks of %d secrets", n, len(kinds))
		}
		if utf8.ValidString(text) && !utf8.ValidString(clean) {
			t.Errorf("%q became %q, which is not valid UTF-8", text, clean)
		}
	})
}
