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
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
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
		require.NoError(t, err)
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
				assert.Equal(t, kind, got, "%s is called", where)
			}
		}
	}
}

// TestEscapedPrivateKey checks private keys in tool call arguments and JSON files.
func TestEscapedPrivateKey(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	data, err := json.Marshal(map[string]string{"command": "cat > key <<'E'\n" + pem(r, "RSA ", 900) + "\nE"})
	require.NoError(t, err)
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
	require.NoError(t, err)
}

// TestNoKeyInRealFiles checks that there are no matches in public trajectories, logs and
// datasets, which contain no keys.
func TestNoKeyInRealFiles(t *testing.T) {
	scan, err := filter.Scanner()
	require.NoError(t, err)
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
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		clean, kinds := scan(text)
		assert.Equal(t, kinds == nil, clean == text, "%d found, and %q became %q", len(kinds), text, clean)
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

// notSearched are the paths of fields that the filter does not search.
var notSearched = map[string]bool{
	"Header.Format": true, "Header.MiniVersion": true, "Header.InstanceID": true, "Header.ModelClass": true, "Header.ModelName": true,
	"Header.EnvironmentClass": true, "Header.Tools.Name": true, "Import.Format": true, "Import.File": true, "Import.SHA256": true,
	"Import.Agent": true, "Import.AgentVersion": true, "Diff.Base": true, "Diff.Start": true, "Diff.Tree": true, "Call.Tree": true, "FailedCalls.Tree": true, "Executions.Tree": true, "SetupExecutions.Tree": true, "ToolCalls.ID": true, "ToolCallID": true,
	"Call.Model": true, "Requests.Model": true, "FailedCalls.Model": true, "Images.MediaType": true, "Images.Data": true,
}

// everyText calls f for each text in v, with the path of its field.
func everyText(v reflect.Value, path string, f func(path string, v reflect.Value)) {
	switch {
	case v.Type() == reflect.TypeFor[trajectories.Origin](), v.Type() == reflect.TypeFor[trajectories.Totals](), v.Type().PkgPath() == "time":
	case v.Kind() == reflect.String && v.Type().PkgPath() == "": // other string types are enumerations
		f(path, v)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		f(path, v)
	case v.Kind() == reflect.Pointer && !v.IsNil():
		everyText(v.Elem(), path, f)
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			everyText(v.Index(i), path, f)
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			field, fieldPath := v.Type().Field(i), path
			if !field.IsExported() {
				continue
			}
			if !field.Anonymous {
				fieldPath += "." + field.Name
			}
			everyText(v.Field(i), fieldPath, f)
		}
	}
}

func isSearched(path string) bool {
	for name := range notSearched {
		if strings.HasSuffix(path, "."+name) {
			return false
		}
	}
	return true
}

// fullItem returns an attempt with all kinds of records.
func fullItem() *export.Item {
	message := model.Message{ToolCalls: []model.ToolCall{{}}, ProviderData: json.RawMessage("{}"), Images: []model.Image{{Data: []byte("x")}}}
	execution := trajectories.Execution{Record: 3, Background: []trajectories.Process{{}}}
	execution.ToolCalls = []trajectories.ToolCall{{Record: 2, Args: []string{""}}}
	call := trajectories.Call{Requests: []trajectories.Request{{}}}
	return &export.Item{Attempt: &trajectories.Attempt{
		Header: trajectories.Header{Tools: []model.ToolDefinition{{}}},
		Import: &trajectories.Import{Losses: []string{""}},
		Entries: []trajectories.Entry{{
			Message: trajectories.Message{Message: message, Actions: []string{""}}, Call: &call,
			Context: &trajectories.PromptContext{Sent: []trajectories.ContextPart{{Message: &message}}}, Executions: []trajectories.Execution{execution},
		}},
		FailedCalls:     []trajectories.Call{call},
		SetupExecutions: []trajectories.Execution{execution}, Diff: &trajectories.Diff{Omitted: []string{""}, OmittedReasons: []string{""}},
		Notes:   []trajectories.Note{{Record: trajectories.Record{ID: 9, Type: trajectories.TypeReplay}}},
		Outcome: &trajectories.Outcome{Class: trajectories.Submitted, Warnings: []string{""}},
	}}
}

// TestEveryTextIsSearched checks that a key in any text of an attempt is redacted. It finds
// texts by reflection, so that it also tests new fields.
func TestEveryTextIsSearched(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	key, own := "ghp_"+randomText(r, 36, alnum), `own"secret\`+randomText(r, 10, alnum)
	quoted, err := json.Marshal("echo " + key + " " + own)
	require.NoError(t, err)
	it := fullItem()
	n := 0
	everyText(reflect.ValueOf(it.Attempt).Elem(), "", func(path string, v reflect.Value) {
		text := key + " " + own
		if v.Type() == reflect.TypeFor[json.RawMessage]() || strings.HasSuffix(path, ".Arguments") {
			text = `{"command":` + string(quoted) + `,"n":1}`
		}
		if n++; v.Kind() == reflect.String {
			v.SetString(text)
		} else {
			v.SetBytes([]byte(text))
		}
	})
	if n < 60 {
		t.Fatalf("there are %d texts", n)
	}
	if _, dropped, _ := runFilter(t, filter.Config{Training: true, KnownSecrets: []filter.KnownSecret{{Name: "OWN", Value: own}}}, it); len(dropped) > 0 {
		t.Fatalf("dropped: %v", dropped)
	}
	everyText(reflect.ValueOf(it.Attempt).Elem(), "", func(path string, v reflect.Value) {
		text := v.String()
		if v.Kind() != reflect.String {
			text = string(v.Bytes())
		}
		left := strings.Contains(text, key) || strings.Contains(text, own) || strings.Contains(text, string(quoted))
		switch {
		case left == isSearched(path):
			t.Errorf("%s: %s", path, text)
		case strings.HasPrefix(text, "{") && !json.Valid([]byte(text)):
			t.Errorf("%s is not valid JSON any more: %s", path, text)
		}
	})
}

// TestJSONStaysJSON checks that redacted JSON is valid and otherwise unchanged.
func TestJSONStaysJSON(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	torn := "-----BEGIN PRIVATE KEY-----\n" + randomText(r, 64, alnum)
	secret := randomText(r, 40, alnum)
	for _, tt := range []struct{ name, value, want string }{
		{"a key without an end", `{"command":"cat ` + strings.ReplaceAll(torn, "\n", `\n`) + `","timeout":5}`, `{"command":"cat [redacted]","timeout":5}`},
		{"with an object after it", `{"k":"` + strings.ReplaceAll(torn, "\n", `\n`) + `","b":{"c":1}}`, `{"k":"[redacted]","b":{"c":1}}`},
		{"a setting", `{"aws_secret_access_key": "` + secret + `"}`, `{"aws_secret_access_key": "[redacted]"}`},
		{"a number", `{"pin":1234567890123456,"x":1}`, `{"pin":"[redacted]","x":1}`},
		{"the name of a member", `{"ghp_` + secret[:36] + `":"a\"b"}`, `{"[redacted]":"a\"b"}`},
		{"nothing", `{"a": [1, "b\\"]}`, `{"a": [1, "b\\"]}`},
		{"no JSON", `{"a": "ghp_` + secret[:36] + ` `, `{"a": "[redacted] `},
	} {
		t.Run(tt.name, func(t *testing.T) {
			it := item("own__name-1", 1, 1, func(it *export.Item) {
				it.Entries[2].ToolCalls = []model.ToolCall{{ID: "1", Name: "bash", Arguments: tt.value}}
			})
			runFilter(t, filter.Config{Training: true, KnownSecrets: []filter.KnownSecret{{Name: "PIN", Value: "1234567890123456"}}}, it)
			assert.Equal(t, tt.want, it.Entries[2].ToolCalls[0].Arguments, "%s\nbecame", tt.value)
		})
	}
}
