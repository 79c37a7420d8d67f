package formats

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/minibench/mini/model"
)

// images returns the embedded images in the content of a message. It adds losses for parts
// that are neither text nor an embedded image, and for several text parts.
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
		if image, ok := decodeDataURL(url); ok {
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

// decodeDataURL decodes an image in a data URL.
func decodeDataURL(url string) (model.Image, bool) {
	rest, ok := strings.CutPrefix(url, "data:")
	mediaType, data, hasData := strings.Cut(rest, ";base64,")
	if !ok || !hasData || !strings.HasPrefix(mediaType, "image/") {
		return model.Image{}, false
	}
	raw, err := base64.StdEncoding.DecodeString(data)
	return model.Image{MediaType: mediaType, Data: raw}, err == nil
}
