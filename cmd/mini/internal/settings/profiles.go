package settings

import (
	"github.com/spf13/pflag"

	"github.com/minibench/mini/configs"
)

// addProfileFlag adds --profile.
func addProfileFlag(f *pflag.FlagSet) {
	f.String("profile", "", "`NAME` of a profile (coder, reviewer, benchmark), or its file")
}

// Profile returns the value of --profile, or "".
func (c *Flags) Profile() string {
	if f := c.FlagSet.Lookup("profile"); f != nil && f.Changed {
		return f.Value.String()
	}
	return ""
}

// profileLayers returns the layer of the profile, or nil without --profile.
func (c *Flags) profileLayers() ([]configs.Layer, error) {
	if f := c.FlagSet.Lookup("profile"); f == nil || !f.Changed {
		return nil, nil
	}
	l, err := configs.ReadProfile(c.Profile(), configs.ProfileDirs()...)
	return []configs.Layer{l}, err
}
