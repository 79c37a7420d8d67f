package script

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/minibench/mini/datasets"
)

// Asset is a file that a text patch cannot contain, usually an image. Rows of
// the Multimodal dataset list them.
type Asset struct {
	Path     string // its path in the container, below /image_assets
	URL      string // its source according to the row; may be empty
	repoPath string // its path in the repository, to which the script copies it
}

const assetsFolder = "/image_assets/"

// assetsFor parses the column image_assets: an object, or a string that holds
// one. It returns the files of the two patches that have a path. The images of
// the problem statement are for the model only.
func assetsFor(in datasets.Instance) ([]Asset, error) {
	raw := in.Row["image_assets"]
	var inner string
	if json.Unmarshal(raw, &inner) == nil {
		raw = json.RawMessage(inner)
	}
	if len(strings.TrimSpace(string(raw))) == 0 {
		return nil, nil
	}
	var columns map[string]json.RawMessage // other columns may have any type
	if err := json.Unmarshal(raw, &columns); err != nil {
		return nil, fmt.Errorf("image_assets must be an object of lists: %w", err)
	}
	var assets []Asset
	for _, key := range []string{"test_patch", "patch"} {
		var list []json.RawMessage
		if given := columns[key]; given != nil && string(given) != `""` {
			if err := json.Unmarshal(given, &list); err != nil {
				return nil, fmt.Errorf("image_assets: %s must be a list: %w", key, err)
			}
		}
		for i, item := range list {
			var a struct{ Path, URL string }
			if err := json.Unmarshal(item, &a); err != nil || a.Path == "" {
				continue // a URL without a path in the repository
			}
			name := strings.ReplaceAll(a.Path, "/", "__")
			if name == "." || name == ".." || strings.ContainsAny(name, "\x00\n") {
				return nil, fmt.Errorf("image_assets: %s[%d]: invalid path %.100q", key, i, a.Path)
			}
			assets = append(assets, Asset{Path: assetsFolder + name, URL: a.URL, repoPath: a.Path})
		}
	}
	return assets, nil
}

// withAssets inserts the commands that copy the assets before the tests, or
// appends them after a blank line if there is no start marker. Paths are not
// quoted, as in the official script; a row can run any command anyway.
func withAssets(text string, assets []Asset) string {
	if len(assets) == 0 {
		return text
	}
	lines := make([]string, len(assets))
	for i, a := range assets {
		lines[i] = fmt.Sprintf("mkdir -p $(dirname %s) && cp %s %s", a.repoPath, a.Path, a.repoPath)
	}
	commands := strings.Join(lines, "\n")
	marker := strings.Index(text, StartMarker)
	if marker < 0 {
		return text + "\n" + commands
	}
	at := strings.LastIndex(text[:marker], "\n") + 1
	return text[:at] + commands + "\n" + text[at:]
}
