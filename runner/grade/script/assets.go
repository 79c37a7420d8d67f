package script

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/minibench/mini/datasets"
)

// Asset is a file that a patch as text could not bring: an image, as a rule.
// Rows of the Multimodal set name them.
type Asset struct {
	Path string // where it has to be in the container, below /image_assets
	URL  string // where it is from, as the row says; may be empty
	into string // where the script copies it, from the repository's folder on
}

const assetsFolder = "/image_assets/"

// assetsOf reads the column image_assets: an object, or a string that holds
// one. Of its lists those of the two patches count, and in them what has a
// path; those of a problem statement are for the model.
func assetsOf(in datasets.Instance) ([]Asset, error) {
	raw := in.Row["image_assets"]
	var inner string
	if json.Unmarshal(raw, &inner) == nil {
		raw = json.RawMessage(inner)
	}
	if len(strings.TrimSpace(string(raw))) == 0 {
		return nil, nil
	}
	var columns map[string]json.RawMessage // others than these two may be of any form
	if err := json.Unmarshal(raw, &columns); err != nil {
		return nil, fmt.Errorf("image_assets: an object of lists is needed: %w", err)
	}
	var assets []Asset
	for _, key := range []string{"test_patch", "patch"} {
		var list []json.RawMessage
		if given := columns[key]; given != nil && string(given) != `""` {
			if err := json.Unmarshal(given, &list); err != nil {
				return nil, fmt.Errorf("image_assets: %s: a list is needed: %w", key, err)
			}
		}
		for i, item := range list {
			var a struct{ Path, URL string }
			if err := json.Unmarshal(item, &a); err != nil || a.Path == "" {
				continue // a bare address, which has no place in the repository
			}
			name := strings.ReplaceAll(a.Path, "/", "__")
			if name == "." || name == ".." || strings.ContainsAny(name, "\x00\n") {
				return nil, fmt.Errorf("image_assets: %s[%d]: the path %.100q cannot name a file", key, i, a.Path)
			}
			assets = append(assets, Asset{Path: assetsFolder + name, URL: a.URL, into: a.Path})
		}
	}
	return assets, nil
}

// withAssets adds the commands that copy the assets, just before the tests;
// without a start marker they come last, after a blank line. Paths are not quoted, as in the
// official script: a row may run what it likes anyway.
func withAssets(text string, assets []Asset) string {
	if len(assets) == 0 {
		return text
	}
	lines := make([]string, len(assets))
	for i, a := range assets {
		lines[i] = fmt.Sprintf("mkdir -p $(dirname %s) && cp %s %s", a.into, a.Path, a.into)
	}
	commands := strings.Join(lines, "\n")
	marker := strings.Index(text, Start)
	if marker < 0 {
		return text + "\n" + commands
	}
	at := strings.LastIndex(text[:marker], "\n") + 1
	return text[:at] + commands + "\n" + text[at:]
}
