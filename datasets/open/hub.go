package datasetopen

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/minibench/mini/internal/usage"

	"github.com/minibench/mini/datasets/hub"
)

// Hub returns a client for the hub. Like the hub's own tools, it reads the
// environment variables HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE. Of c, it uses only
// Offline, Transport and Progress.
func Hub(c hub.Config) (*hub.Hub, error) {
	dir, err := CacheDir()
	if err != nil {
		return nil, err
	}
	c.Endpoint, c.Token = os.Getenv("HF_ENDPOINT"), os.Getenv("HF_TOKEN")
	c.Offline = c.Offline || isOn(os.Getenv("HF_HUB_OFFLINE"))
	c.Dir = filepath.Join(dir, "datasets")
	return hub.New(c)
}

func isOn(value string) bool {
	on, err := strconv.ParseBool(value)
	return err == nil && on || strings.EqualFold(value, "yes") || strings.EqualFold(value, "on")
}

// CacheDir returns the folder for data that mini can download again.
func CacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", usage.Errorf("no folder for the cache: %w; set XDG_CACHE_HOME", err)
	}
	return filepath.Join(dir, "mini"), nil
}
