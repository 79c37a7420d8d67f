package script

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/minibench/mini/datasets"
)

// Asset is a file that a text patch cannot contain, usually an image. Rows of the
// Multimodal dataset list such files in the column image_assets.
type Asset struct {
	Path     string // path in the container, below /image_assets
	URL      string // source according to the row; may be empty
	repoPath string // path in the repository, to which the script copies the file
}

const assetsFolder = "/image_assets/"

// assetsFor parses the column image_assets, which is a JSON object or a string that
// contains one. It returns the files of the two patches that have a path. The object
// also lists the images of the problem statement, which the script does not need.
func assetsFor(in datasets.Instance) ([]Asset, error) {
	raw := in.Row["image_assets"]
	var inner string
	if json.Unmarshal(raw, &inner) == nil {
		raw = json.RawMessage(inner)
	}
	if len(strings.TrimSpace(string(raw))) == 0 {
		return nil, nil
	}
	var columns map[string]json.RawMessage // keys that are not used may have any type
	if err := json.Unmarshal(raw, &columns); err != nil {
		return nil, fmt.Errorf("image_assets must be an object of lists: %w", err)
	}
	var assets []Asset
	for _, key := range []string{"test_patch", "patch"} {
		var list []json.RawMessage
		if column := columns[key]; column != nil && string(column) != `""` {
			if err := json.Unmarshal(column, &list); err != nil {
				return nil, fmt.Errorf("image_assets: %s must be a list: %w", key, err)
			}
		}
		for i, item := range list {
			var a struct{ Path, URL string }
			if err := json.Unmarshal(item, &a); err != nil || a.Path == "" {
				continue // it has only a URL, but no path in the repository
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

// withAssets adds commands that copy the assets to a script. It inserts them before the
// start marker, or appends them after a blank line if there is none. As in the official
// script, paths are not quoted; this is safe because a row can run any command anyway.
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
	insertAt := strings.LastIndex(text[:marker], "\n") + 1
	return text[:insertAt] + commands + "\n" + text[insertAt:]
}
