package datasetopen

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/minibench/mini/datasets/hub"
	"github.com/minibench/mini/internal/usage"
)

// Hub returns a client for the hub. Like the hub's own tools, it reads the
// environment variables HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE, HF_HUB_CACHE, HF_HOME and
// XDG_CACHE_HOME. Of c, it uses only Offline, Transport and Progress.
func Hub(c hub.Config) (*hub.Hub, error) {
	c.Dir = os.Getenv("HF_HUB_CACHE")
	if home := os.Getenv("HF_HOME"); c.Dir == "" && home != "" {
		c.Dir = filepath.Join(home, "hub")
	}
	if c.Dir == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return nil, usage.Errorf("no folder for the cache: %w; set HF_HUB_CACHE", err)
		}
		c.Dir = filepath.Join(dir, "huggingface", "hub")
	}
	c.Endpoint, c.Token = os.Getenv("HF_ENDPOINT"), os.Getenv("HF_TOKEN")
	c.Offline = c.Offline || isOn(os.Getenv("HF_HUB_OFFLINE"))
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
