package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories"
)

// StartSession writes run.json and config.yaml for a new session. changed describes
// the differences from the previous session in settings, dataset and capabilities
// that affect results.
func (f *Folder) StartSession(m runs.Manifest, config []byte) (changed []string, err error) {
	old, err := f.readManifest()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(config)
	m.Format = trajectories.Format
	m.ConfigHash = hex.EncodeToString(sum[:])
	m.Sessions = append(old.Sessions, runs.Session{
		MiniVersion: m.MiniVersion, ConfigHash: m.ConfigHash, InstanceCount: m.Dataset.Selected,
		Editions: m.Dataset.Editions, Started: time.Now(),
	})
	m.Images = old.Images
	oldConfig, readErr := f.Root.ReadFile(filepath.Join(f.Dir, configFile), runs.MaxManifest)
	if err := f.Root.WriteFile(filepath.Join(f.Dir, configFile), config); err != nil {
		return nil, fmt.Errorf("write %s: %w", configFile, err)
	}
	if old.ConfigHash != "" && old.ConfigHash != m.ConfigHash {
		difference := "configuration"
		if readErr == nil {
			difference = changedConfig(oldConfig, config)
		}
		if difference != "" {
			changed = append(changed, difference)
		}
	}
	if len(old.Sessions) > 0 && !slices.EqualFunc(old.Dataset.Editions, m.Dataset.Editions, sameContent) {
		changed = append(changed, "dataset ("+old.Dataset.Name+", now "+m.Dataset.Name+")")
	}
	if len(old.Sessions) > 0 {
		changed = append(changed, runs.ChangedCapabilities(old.Capabilities, m.Capabilities)...)
	}
	return changed, f.writeJSON(runFile, m)
}

// HasManifest reports whether the folder has a run.json.
func (f *Folder) HasManifest() bool {
	_, err := os.Lstat(filepath.Join(f.Dir, runFile))
	return err == nil
}

// EndSession adds the summary, end time and images of the session to run.json.
func (f *Folder) EndSession(s runs.Summary) error {
	m, err := f.readManifest()
	if err != nil {
		return err
	}
	if n := len(m.Sessions); n > 0 {
		now := time.Now()
		m.Sessions[n-1].Ended, m.Sessions[n-1].Summary = &now, &s
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.Images == nil {
		m.Images = map[string]string{}
	}
	maps.Copy(m.Images, f.images)
	return f.writeJSON(runFile, m)
}

func (f *Folder) readManifest() (runs.Manifest, error) {
	var m runs.Manifest
	data, err := f.Root.ReadFile(filepath.Join(f.Dir, runFile), runs.MaxManifest)
	if errors.Is(err, os.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		return m, fmt.Errorf("read %s: %w; move it away to continue without it, or choose another folder with -o", filepath.Join(f.Dir, runFile), err)
	}
	return m, nil
}
