package cli

import (
	"github.com/minibench/mini/agent/pictures/web"
	"github.com/minibench/mini/configs"
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
		known, err := factsOf(cfg)
		if err != nil {
			return err
		}
		i.Taken = known.Images
	}
	if i.Fetch && i.Fetcher == nil {
		i.Fetcher = web.New(false)
	}
	return nil
}
