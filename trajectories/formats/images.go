package formats

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/minibench/mini/model"
)

// images returns the images in a content. Only embedded images can be kept.
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
			b.addLoss("a message part that is neither text nor an embedded image", 1)
		}
	}
	if texts > 1 {
		b.addLoss("a content with several text parts was joined", 1)
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
