package cli

import (
	"github.com/minibench/mini/agent/pictures/web"
	"github.com/minibench/mini/configs"
)

// setImages tells the agent what its model takes, and gives it what fetches.
func setImages(cfg *configs.Resolved) error {
	i := &cfg.Agent.Images
	i.Taken = true // where every model of a route takes them
	for _, one := range modelsOf(cfg) {
		switch one.Model.Images {
		case "yes":
		case "no":
			i.Taken = false
		default:
			known, err := factsOf(one)
			if err != nil {
				return err
			}
			i.Taken = i.Taken && known.Images
		}
	}
	if i.Fetch && i.Fetcher == nil {
		i.Fetcher = web.New(false)
	}
	return nil
}
