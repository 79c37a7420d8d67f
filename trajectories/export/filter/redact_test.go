package filter_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
	"github.com/minibench/mini/trajectories/export/filter"
)

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
	if err != nil {
		t.Fatal(err)
	}
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
			if got := it.Entries[2].ToolCalls[0].Arguments; got != tt.want {
				t.Errorf("%s\nbecame %s\nwant   %s", tt.value, got, tt.want)
			}
		})
	}
}
