// Package pictures finds the images that go into prompts: those that a row of a
// dataset names, and files of a sandbox. What comes from either is hostile: it is
// bounded, known by its bytes and not by its name, and kept inside its folder.
//
// The package asks no network; what fetches (web) is handed in.
//
//	source := pictures.Source{Folder: "assets"}
//	image, err := source.Get(ctx, "https://example.com/a.png")
package pictures

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/gif"  // registers the format
	_ "image/jpeg" // registers the format
	_ "image/png"  // registers the format
	"slices"

	"github.com/minibench/mini/model"
)

// Limits of one image, which are those that providers have in common.
const (
	MaxBytes = 5 << 20
	MaxSide  = 8000 // pixels
)

// maxRefs bounds how many images of a row are looked at.
const maxRefs = 20

// New is the image that a file holds: PNG, JPEG, GIF or WebP. The error says
// in few words why it is none that a model takes.
func New(data []byte) (model.Image, error) {
	if len(data) > MaxBytes {
		return model.Image{}, fmt.Errorf("larger than %d MB", MaxBytes>>20)
	}
	kind := kindOf(data)
	if kind == "" {
		return model.Image{}, errors.New("neither PNG, JPEG, GIF nor WebP")
	}
	if kind != webp {
		size, _, err := image.DecodeConfig(bytes.NewReader(data))
		if err != nil {
			return model.Image{}, errors.New("the image is damaged")
		}
		if size.Width > MaxSide || size.Height > MaxSide {
			return model.Image{}, fmt.Errorf("%d x %d pixels, more than %d on a side", size.Width, size.Height, MaxSide)
		}
	}
	return model.Image{MediaType: kind, Data: data}, nil
}

const webp = "image/webp"

// kindOf is the media type of a file by its first bytes; empty for others.
func kindOf(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(data, []byte("GIF87a")), bytes.HasPrefix(data, []byte("GIF89a")):
		return "image/gif"
	case len(data) > 16 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return webp
	}
	return ""
}

// Refs are the images of a row's problem statement, as its column image_assets
// names them, each once: URLs, file names, data URIs. More says that there are
// others than these.
func Refs(row map[string]any) (refs []string, more bool) {
	assets := row["image_assets"]
	if text, ok := assets.(string); ok { // JSON within a column of text
		var inner any
		if json.Unmarshal([]byte(text), &inner) == nil {
			assets = inner
		}
	}
	object, _ := assets.(map[string]any)
	list, _ := object["problem_statement"].([]any)
	for _, item := range list {
		ref, ok := item.(string)
		if !ok || ref == "" || slices.Contains(refs, ref) {
			continue
		}
		if len(refs) == maxRefs {
			return refs, true
		}
		refs = append(refs, ref)
	}
	return refs, false
}
