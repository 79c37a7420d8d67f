package cli

import (
	"cmp"

	"github.com/minibench/mini/agent/pictures/web"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/model/openai"
	"github.com/minibench/mini/model/price"
)

// setImages tells the agent what its model takes, and gives it what fetches.
func setImages(cfg *configs.Resolved) error {
	i := &cfg.Agent.Images
	switch cfg.Model.Images {
	case "yes":
		i.Taken = true
	case "no":
		i.Taken = false
	default:
		table, err := price.Shipped()
		if err != nil {
			return err
		}
		base := openai.DefaultBaseURL
		if cfg.Model.Class == "anthropic" {
			base = "https://api.anthropic.com"
		}
		known, _ := table.Find(cmp.Or(cfg.Model.BaseURL, base), cfg.Model.Name)
		i.Taken = known.Images && cfg.Model.Class != "scripted"
	}
	if i.Fetch && i.Fetcher == nil {
		i.Fetcher = web.New(false)
	}
	return nil
}
