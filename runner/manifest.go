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

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/trajectories"
)

// Manifest is run.json: what was run, on what, with which mini.
type Manifest struct {
	Format string `json:"format"`
	// Sessions are the times mini worked in this folder, oldest first. The
	// fields beside it are the newest session's.
	Sessions    []Worked `json:"sessions"`
	MiniVersion string   `json:"mini_version"`
	ConfigHash  string   `json:"config_sha256"` // of config.yaml
	Dataset     Dataset  `json:"dataset"`
	Model       Named    `json:"model"`
	Environment Named    `json:"environment"`
	// Profile is the bundle of settings that was asked for by name.
	Profile string `json:"profile,omitempty"`
	// Abilities are what there was beside the shell; null where there was nothing.
	Abilities *Abilities        `json:"abilities,omitempty"`
	Images    map[string]string `json:"images,omitempty"` // name -> digest, or id where it has none; of all sessions
}

// Worked is one session.
type Worked struct {
	MiniVersion string `json:"mini_version"`
	ConfigHash  string `json:"config_sha256"`
	// Selected is how many instances it was asked for; 0 in files that are
	// older than this field.
	Selected int                `json:"selected,omitempty"`
	Editions []datasets.Edition `json:"editions,omitempty"` // the rows came from
	Started  time.Time          `json:"started"`
	Ended    *time.Time         `json:"ended"` // null while it works, or when it was killed
	Summary  *Summary           `json:"summary,omitempty"`
}

// Selected is the most instances that a session in the folder was asked for.
func (m Manifest) Selected() int {
	most := m.Dataset.Selected
	for _, s := range m.Sessions {
		most = max(most, s.Selected)
		if s.Summary != nil {
			most = max(most, s.Summary.Instances)
		}
	}
	return most
}

// Samples is the most results an instance was to have, of all sessions that came
// to their end; at least 1.
func (m Manifest) Samples() int {
	most := 1
	for _, s := range m.Sessions {
		if s.Summary != nil {
			most = max(most, min(s.Summary.Samples, MaxSamples))
		}
	}
	return most
}

// Dataset says which rows were taken from where.
type Dataset struct {
	Name      string             `json:"name"`
	Editions  []datasets.Edition `json:"editions"` // one for each dataset that was given
	Rows      int                `json:"rows"`     // different ids in all of them
	Selected  int                `json:"selected"`
	Selection any                `json:"selection,omitempty"`
}

// Named is a class and the name within it.
type Named struct {
	Class string `json:"class"`
	Name  string `json:"name,omitempty"`
}

// Begin writes run.json and config.yaml for a new session. changed names what
// the session before had otherwise and what matters to results: settings of its
// configuration, its dataset.
func (f *Folder) Begin(m Manifest, config []byte) (changed []string, err error) {
	old, err := f.manifest()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(config)
	m.Format = trajectories.Format
	m.ConfigHash = hex.EncodeToString(sum[:])
	m.Sessions = append(old.Sessions, Worked{
		MiniVersion: m.MiniVersion, ConfigHash: m.ConfigHash, Selected: m.Dataset.Selected,
		Editions: m.Dataset.Editions, Started: time.Now(),
	})
	m.Images = old.Images
	before, readErr := f.root.ReadFile(filepath.Join(f.dir, configFile), maxManifest)
	if err := f.root.WriteFile(filepath.Join(f.dir, configFile), config); err != nil {
		return nil, fmt.Errorf("write %s: %w", configFile, err)
	}
	if old.ConfigHash != "" && old.ConfigHash != m.ConfigHash {
		what := "configuration"
		if readErr == nil {
			what = changedConfig(before, config)
		}
		if what != "" {
			changed = append(changed, what)
		}
	}
	if len(old.Sessions) > 0 && !slices.EqualFunc(old.Dataset.Editions, m.Dataset.Editions, sameRows) {
		changed = append(changed, "dataset ("+old.Dataset.Name+", now "+m.Dataset.Name+")")
	}
	if len(old.Sessions) > 0 {
		changed = append(changed, changedAbilities(old.Abilities, m.Abilities)...)
	}
	return changed, f.writeJSON(runFile, m)
}

// Begun says whether the folder has a run.json: a session began in it.
func (f *Folder) Begun() bool {
	_, err := os.Lstat(filepath.Join(f.dir, runFile))
	return err == nil
}

// End completes run.json after a session.
func (f *Folder) End(s Summary) error {
	m, err := f.manifest()
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

func (f *Folder) manifest() (Manifest, error) {
	var m Manifest
	data, err := f.root.ReadFile(filepath.Join(f.dir, runFile), maxManifest)
	if errors.Is(err, os.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		return m, fmt.Errorf("read %s: %w; move it away to go on without it, or give another folder with -o", filepath.Join(f.dir, runFile), err)
	}
	return m, nil
}
