package convert

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/minibench/mini/model"
)

// images takes the pictures of a content in parts. Only those that stand in the
// file themselves can be kept.
func (b *builder) images(content json.RawMessage) []model.Image {
	var parts []struct {
		Type string          `json:"type"`
		URL  json.RawMessage `json:"image_url"`
		Text *string         `json:"text"`
	}
	if len(content) == 0 || content[0] != '[' || json.Unmarshal(content, &parts) != nil {
		return nil
	}
	var images []model.Image
	texts := 0
	for _, p := range parts {
		if p.Text != nil {
			texts++
			continue
		}
		var inner struct {
			URL string `json:"url"`
		}
		url := asString(p.URL)
		if json.Unmarshal(p.URL, &inner) == nil && inner.URL != "" {
			url = inner.URL
		}
		if image, ok := dataURL(url); ok {
			images = append(images, image)
		} else {
			b.lose("a part of a message that is neither text nor an image in the file", 1)
		}
	}
	if texts > 1 {
		b.lose("a content in several texts is kept as one", 1)
	}
	return images
}

func dataURL(url string) (model.Image, bool) {
	rest, ok := strings.CutPrefix(url, "data:")
	kind, data, both := strings.Cut(rest, ";base64,")
	if !ok || !both || !strings.HasPrefix(kind, "image/") {
		return model.Image{}, false
	}
	raw, err := base64.StdEncoding.DecodeString(data)
	return model.Image{MediaType: kind, Data: raw}, err == nil
}
