// Package images loads the images of prompts: images that a dataset row names,
// and image files of a sandbox. Both are untrusted: their size is limited,
// their format is detected from the content, and of this machine's files only
// those in the configured folder are read.
//
// The package does not use the network; package web implements Fetcher.
//
//	source := images.Source{Folder: "assets"}
//	image, err := source.Load(ctx, "https://example.com/a.png")
package images

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

// Limits of one image that all providers support.
const (
	MaxBytes = 5 << 20
	MaxSide  = 8000 // in pixels
)

// maxRefs bounds the number of images of a row.
const maxRefs = 20

// Decode returns the image in data: PNG, JPEG, GIF or WebP. The error is a
// short reason why data is not a valid image or exceeds a limit; MaxSide is not
// checked for WebP.
func Decode(data []byte) (model.Image, error) {
	if len(data) > MaxBytes {
		return model.Image{}, fmt.Errorf("larger than %d MB", MaxBytes>>20)
	}
	kind := mediaType(data)
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

// mediaType detects the media type from the first bytes; empty if unknown.
func mediaType(data []byte) string {
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

// TaskRefs returns the distinct images of a row's problem statement, as listed
// in its column image_assets: URLs, file names or data URIs. more reports that
// there are others beyond maxRefs.
func TaskRefs(row map[string]any) (refs []string, more bool) {
	assets := row["image_assets"]
	if text, ok := assets.(string); ok { // JSON in a text column
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
