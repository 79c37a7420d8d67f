package sieve_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/minibench/mini/runner/grade/corpustest"
	"github.com/minibench/mini/trajectories/export/sieve"
)

const (
	alnum   = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	base32  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	hexes   = "0123456789abcdef"
	urls    = alnum + "-_"
	base64s = alnum + "+/"
)

// some are n random characters, the last an ordinary one.
func some(r *rand.Rand, n int, of string) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = of[r.IntN(len(of))]
	}
	if of == urls {
		b[0], b[n-1] = 'a', 'Z'
	}
	return string(b)
}

// keys are made-up ones of every form; none stands in the source, where others'
// scanners would find it.
func keys(r *rand.Rand) map[string]string {
	web := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"`+some(r, 12, alnum)+`"}`)) + "." + some(r, 43, urls)
	return map[string]string{
		"sk-ant-" + "api03-" + some(r, 95, urls):                                  "Anthropic key",
		"sk-or-v1-" + some(r, 64, hexes):                                          "OpenRouter key",
		"sk-proj-" + some(r, 156, urls):                                           "OpenAI key",
		"sk-svcacct-" + some(r, 60, urls):                                         "OpenAI key",
		"sk-" + some(r, 20, alnum) + "T3BlbkFJ" + some(r, 20, alnum):              "OpenAI key",
		"sk-" + some(r, 32, hexes):                                                "OpenAI key",
		"gsk_" + some(r, 52, alnum):                                               "Groq key",
		"xai-" + some(r, 80, alnum):                                               "xAI key",
		"pplx-" + some(r, 48, alnum):                                              "Perplexity key",
		"r8_" + some(r, 37, alnum):                                                "Replicate token",
		"nvapi-" + some(r, 64, urls):                                              "NVIDIA key",
		"hf_" + some(r, 34, alnum):                                                "Hugging Face token",
		"AKIA" + some(r, 16, base32):                                              "AWS access key",
		"ASIA" + some(r, 16, base32):                                              "AWS access key",
		"aws_secret_access_key = " + some(r, 40, base64s):                         "AWS secret key",
		`AWS_SECRET_ACCESS_KEY="` + some(r, 40, base64s):                          "AWS secret key",
		"ghp_" + some(r, 36, alnum):                                               "GitHub token",
		"gho_" + some(r, 36, alnum):                                               "GitHub token",
		"ghu_" + some(r, 36, alnum):                                               "GitHub token",
		"ghs_" + some(r, 36, alnum):                                               "GitHub token",
		"ghr_" + some(r, 76, alnum):                                               "GitHub token",
		"github_pat_" + some(r, 22, alnum) + "_" + some(r, 59, alnum):             "GitHub token",
		"glpat-" + some(r, 20, urls):                                              "GitLab token",
		"dckr_pat_" + some(r, 27, urls):                                           "Docker token",
		"AIza" + some(r, 35, urls):                                                "Google key",
		"ya29." + some(r, 120, urls):                                              "Google token",
		"GOCSPX-" + some(r, 28, urls):                                             "Google client secret",
		"xoxb-" + some(r, 12, "123456789") + "-" + some(r, 24, alnum):             "Slack token",
		"xapp-1-A0" + some(r, 9, base32) + "-1234567890123-" + some(r, 64, hexes): "Slack token",
		"hooks.slack.com/services/T" + some(r, 8, base32) + "/B" + some(r, 10, base32) + "/" + some(r, 24, alnum): "Slack webhook",
		"sk_live_" + some(r, 24, alnum):                     "Stripe key",
		"rk_live_" + some(r, 99, alnum):                     "Stripe key",
		"npm_" + some(r, 36, alnum):                         "npm token",
		"pypi-AgEIcHlwaS5vcmc" + some(r, 150, urls):         "PyPI token",
		"SG." + some(r, 22, urls) + "." + some(r, 43, urls): "SendGrid key",
		"dop_v1_" + some(r, 64, hexes):                      "DigitalOcean token",
		"dapi" + some(r, 32, hexes):                         "Databricks token",
		"shpat_" + some(r, 32, hexes):                       "Shopify token",
		"lin_api_" + some(r, 40, alnum):                     "Linear key",
		"hvs." + some(r, 95, urls):                          "Vault token",
		"AGE-SECRET-KEY-1" + some(r, 58, base32):            "age key",
		web:                                                 "web token",
		pem(r, "RSA ", 1600):                                "private key",
		pem(r, "", 64):                                      "private key",
		pem(r, "OPENSSH ", 400):                             "private key",
		pem(r, "EC ", 160):                                  "private key",
		strings.Replace(pem(r, "RSA ", 800), "-----\n", "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n", 1): "private key",
	}
}

// pem is what looks like a private key of n characters.
func pem(r *rand.Rand, kind string, n int) string {
	var b strings.Builder
	b.WriteString("-----BEGIN " + kind + "PRIVATE KEY-----\n")
	for ; n > 0; n -= 64 {
		b.WriteString(some(r, min(n, 64), base64s) + "\n")
	}
	return b.String() + "-----END " + kind + "PRIVATE KEY-----"
}

// TestKeysAreFound puts keys of every form into what texts have around them.
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
				continue // its quotes are escaped too
			}
			clean, kinds, err := sieve.Scan(text[0])
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

// TestEscapedPrivateKey is how arguments of calls and files of JSON have one.
func TestEscapedPrivateKey(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	data, err := json.Marshal(map[string]string{"command": "cat > key <<'E'\n" + pem(r, "RSA ", 900) + "\nE"})
	if err != nil {
		t.Fatal(err)
	}
	clean, kinds, err := sieve.Scan(string(data))
	want := `{"command":"cat \u003e key \u003c\u003c'E'\n[redacted]\nE"}`
	if err != nil || clean != want || len(kinds) != 1 {
		t.Errorf("%s, %v, %v", clean, kinds, err)
	}
	torn := pem(r, "RSA ", 900)
	clean, _, err = sieve.Scan("head\n" + torn[:700])
	if err != nil || clean != "head\n[redacted]" {
		t.Errorf("a key without its end: %q, %v", clean, err)
	}
}

// TestWhatIsNoKey has what looks like keys, and is not.
func TestWhatIsNoKey(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	hash := some(r, 40, hexes)
	for _, text := range []string{
		"", "sk", "sk-", "risk-" + some(r, 40, alnum), "task-" + some(r, 48, alnum), "disk_" + hash,
		"commit " + hash, "sha256:" + some(r, 64, hexes), "123e4567-e89b-12d3-a456-426614174000",
		"sk-" + strings.Repeat("x", 48), "sk-your-api-key-here", "sk-...", "sk-ant-...", "sk-test", "OPENAI_API_KEY=sk-dummy",
		"AKIAIOSFODNN7EXAMPLE", "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
		"AKIA" + some(r, 15, base32), "AKIA" + some(r, 17, base32), "XAKIA" + some(r, 16, base32),
		"ghp_" + strings.Repeat("X", 36), "ghp_" + some(r, 12, alnum), "hf_hub_download_a_file_from_the_hub_now", "hf_" + some(r, 33, alnum),
		"npm_config_registry=x", "npm_" + some(r, 40, alnum), "AIza" + some(r, 34, alnum), "glpat-short",
		"-----BEGIN CERTIFICATE-----\n" + some(r, 64, base64s) + "\n-----END CERTIFICATE-----",
		"-----BEGIN PUBLIC KEY-----\n" + some(r, 64, base64s) + "\n-----END PUBLIC KEY-----",
		`if text.startswith("-----BEGIN RSA PRIVATE KEY-----"):`, "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
		"eyJ", "eyJhbGciOiJIUzI1NiJ9", "eyJhbGciOiJIUzI1NiJ9.e30.", base64.StdEncoding.EncodeToString([]byte(`{"a":"` + hash + `"}`)),
		"eyJ" + some(r, 30, alnum) + ".eyJ" + some(r, 30, alnum) + "." + some(r, 30, alnum),
		"xoxb-token", "xoxo-hugs", "SG.something", "sk_test_" + some(r, 24, alnum), "x_live_" + some(r, 30, alnum),
		"BEGIN PRIVATE KEY", "data:image/png;base64,iVBORw0KGgo" + some(r, 4000, base64s), "integrity sha512-" + some(r, 86, base64s) + "==",
		"dapi" + some(r, 31, hexes), "dapi" + some(r, 33, hexes), "/api/dapi/x",
	} {
		clean, kinds, err := sieve.Scan(text)
		if err != nil || kinds != nil || clean != text {
			t.Errorf("%.100q: %v, %v", text, kinds, err)
		}
	}
}

// TestNoKeyInNoise scans what is random: base64, hexadecimal, and letters with
// all the signs that anchors have.
func TestNoKeyInNoise(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	scan, err := sieve.Scanner()
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]string{
		"base64": base64s, "base64 for URLs": urls, "hexadecimal": hexes, "base32": base32, "with signs": alnum + "-_./ \n\"'=:",
	} {
		text := []byte(some(r, 4<<20, of))
		if _, kinds := scan(text); kinds != nil {
			t.Errorf("%s: %v", name, kinds)
		}
	}
	var ids bytes.Buffer
	for range 20_000 {
		fmt.Fprintf(&ids, "%s %s-%s-4%s-a%s-%s\n", some(r, 40, hexes), some(r, 8, hexes), some(r, 4, hexes), some(r, 3, hexes), some(r, 3, hexes), some(r, 12, hexes))
	}
	if _, kinds := scan(ids.Bytes()); kinds != nil {
		t.Errorf("ids: %v", kinds)
	}
}

func TestKnownValues(t *testing.T) {
	const value = "pass/word\"+\u00e4 1"
	known := []sieve.Known{
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
		clean, kinds, err := sieve.Scan(text, known...)
		if err != nil || clean != want {
			t.Errorf("%q: %q, %v, %v; want %q", text, clean, kinds, err, want)
		}
		for _, kind := range kinds {
			if !strings.HasPrefix(kind, "value of ") || strings.Contains(kind, "pass") {
				t.Errorf("%q is called %q", text, kind)
			}
		}
	}
	if _, kinds, _ := sieve.Scan("common-beginning-and-more", known...); len(kinds) != 1 || kinds[0] != "value of B_KEY" {
		t.Errorf("the longer one is %v", kinds)
	}
}

// realFiles calls do for every file of the real data below a folder of it.
func realFiles(t *testing.T, folder string, do func(name string, data []byte)) {
	t.Helper()
	dir := corpustest.Beside(t, folder)
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

// TestNoKeyInRealFiles: in public trajectories, logs and rows of datasets is no
// key; nearly all that was found there would be a mistake of the scanner.
func TestNoKeyInRealFiles(t *testing.T) {
	scan, err := sieve.Scanner()
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"trajectories", "eval-logs", "swebench", "corpus"} {
		t.Run(folder, func(t *testing.T) {
			files, size := 0, 0
			realFiles(t, folder, func(name string, data []byte) {
				files, size = files+1, size+len(data)
				if _, kinds := scan(data); kinds != nil {
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
	known := sieve.Known{Name: "MY_KEY", Value: "known-secret-value"}
	scan, err := sieve.Scanner(known)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out, kinds := scan([]byte(text))
		clean := string(out)
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
			t.Errorf("%q became %q, which is no text", text, clean)
		}
	})
}
