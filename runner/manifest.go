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

// Manifest is run.json: the configuration, dataset and version of a run.
type Manifest struct {
	Format string `json:"format"`
	// Sessions has one entry for each start of mini on this folder, oldest first.
	// The other fields, except Images, describe the newest session.
	Sessions    []Session    `json:"sessions"`
	MiniVersion string       `json:"mini_version"`
	ConfigHash  string       `json:"config_sha256"` // SHA-256 of config.yaml
	Dataset     Dataset      `json:"dataset"`
	Model       ClassAndName `json:"model"`
	Environment ClassAndName `json:"environment"`
	// AgentFolderSHA256 is the hash of the folder of another agent; "" if it has none.
	AgentFolderSHA256 string `json:"agent_folder_sha256,omitempty"`
	// Profile is the name of the configuration profile.
	Profile string `json:"profile,omitempty"`
	// Capabilities are the agent's features beyond the shell; null if none.
	Capabilities *Capabilities     `json:"abilities,omitempty"`
	Images       map[string]string `json:"images,omitempty"` // of all sessions: name -> digest or, without one, ID
}

// Session is one start of mini on a run's folder.
type Session struct {
	MiniVersion string `json:"mini_version"`
	ConfigHash  string `json:"config_sha256"`
	// InstanceCount is the number of instances requested; 0 in older files.
	InstanceCount int                   `json:"selected,omitempty"`
	Editions      []datasets.SourceInfo `json:"editions,omitempty"` // the datasets of the rows
	Started       time.Time             `json:"started"`
	Ended         *time.Time            `json:"ended"` // null while running, or if mini was killed
	Summary       *Summary              `json:"summary,omitempty"`
}

// Selected returns the largest number of instances requested by a session.
func (m Manifest) Selected() int {
	largest := m.Dataset.Selected
	for _, s := range m.Sessions {
		largest = max(largest, s.InstanceCount)
		if s.Summary != nil {
			largest = max(largest, s.Summary.Instances)
		}
	}
	return largest
}

// Repetitions returns the largest number of repetitions in a completed session, at
// least 1 and at most MaxRepetitions.
func (m Manifest) Repetitions() int {
	largest := 1
	for _, s := range m.Sessions {
		if s.Summary != nil {
			largest = max(largest, min(s.Summary.Repetitions, MaxRepetitions))
		}
	}
	return largest
}

// Dataset describes the selected rows and their source.
type Dataset struct {
	Name      string                `json:"name"`
	Editions  []datasets.SourceInfo `json:"editions"` // one for each dataset
	Rows      int                   `json:"rows"`     // distinct instance IDs in all datasets
	Selected  int                   `json:"selected"`
	Selection any                   `json:"selection,omitempty"`
}

// ClassAndName is the class of a component and its name.
type ClassAndName struct {
	Class string `json:"class"`
	Name  string `json:"name,omitempty"`
}

// StartSession writes run.json and config.yaml for a new session. changed describes
// the differences from the previous session in settings, dataset and capabilities
// that affect results.
func (f *Folder) StartSession(m Manifest, config []byte) (changed []string, err error) {
	old, err := f.readManifest()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(config)
	m.Format = trajectories.Format
	m.ConfigHash = hex.EncodeToString(sum[:])
	m.Sessions = append(old.Sessions, Session{
		MiniVersion: m.MiniVersion, ConfigHash: m.ConfigHash, InstanceCount: m.Dataset.Selected,
		Editions: m.Dataset.Editions, Started: time.Now(),
	})
	m.Images = old.Images
	oldConfig, readErr := f.root.ReadFile(filepath.Join(f.dir, configFile), maxManifest)
	if err := f.root.WriteFile(filepath.Join(f.dir, configFile), config); err != nil {
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
		changed = append(changed, changedCapabilities(old.Capabilities, m.Capabilities)...)
	}
	return changed, f.writeJSON(runFile, m)
}

// HasManifest reports whether the folder has a run.json.
func (f *Folder) HasManifest() bool {
	_, err := os.Lstat(filepath.Join(f.dir, runFile))
	return err == nil
}

// EndSession adds the summary, end time and images of the session to run.json.
func (f *Folder) EndSession(s Summary) error {
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

func (f *Folder) readManifest() (Manifest, error) {
	var m Manifest
	data, err := f.root.ReadFile(filepath.Join(f.dir, runFile), maxManifest)
	if errors.Is(err, os.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		return m, fmt.Errorf("read %s: %w; move it away to continue without it, or choose another folder with -o", filepath.Join(f.dir, runFile), err)
	}
	return m, nil
}
