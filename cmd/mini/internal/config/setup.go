package config

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/cmd/mini/internal/ui/ask"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/userfiles"
	"github.com/minibench/mini/model/localservers"
)

// newConfigSetup returns the command mini config setup.
func newConfigSetup(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "setup",
		Short: "Choose a model and its provider",
		Long: `Asks for the provider of the model, the variable with its key, and the model,
from the list of those that the server has. It calls the model once if you want
to. It stores the answers in your own configuration file. Enter accepts
the value in brackets. Ctrl-C changes nothing. mini asks the same questions if
it starts on a terminal without a model or a key.`,
		Example: "  mini config setup",
		Args:    cmdutil.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			flags := &settings.Flags{FlagSet: cmd.Flags()}
			cfg, err := a.ConfigWithoutModel(cmd.Context(), flags, BuiltinConfigByKind["task"])
			if err != nil {
				return usage.Wrap(err)
			}
			setup, err := SetUp(cmd.Context(), a, cfg)
			if err != nil {
				return usage.Wrap(err)
			}
			return setup.printNextStep(a)
		},
	}
}

// offered returns the providers that the setup offers by name: the three that most users have, and the others
// by name.
func offered() (first, others []configs.Provider) {
	first = []configs.Provider{configs.Providers["openai"], configs.Providers["anthropic"], configs.Providers["openrouter"]}
	for _, p := range configs.Providers {
		if p.Title != "" && !slices.Contains(first, p) {
			others = append(others, p)
		}
	}
	slices.SortFunc(others, func(a, b configs.Provider) int {
		return strings.Compare(strings.ToLower(a.Title), strings.ToLower(b.Title))
	})
	return first, others
}

// ProviderSetup holds the answers of a setup.
type ProviderSetup struct {
	configs.Provider
	isLocal     bool                     // the provider is a server on this machine, which is free
	localServer localservers.ProbeResult // the server and its models, if isLocal
	key         string                   // key to store; "" stores none
	path        string                   // the configuration file
}

// SetUp asks the questions and then stores the answers. It writes nothing before
// all questions are answered.
func SetUp(ctx context.Context, a *app.App, cfg *configs.Resolved) (*ProviderSetup, error) {
	if _, err := ownConfig(); err != nil {
		return nil, err
	}
	if !a.Interactive {
		return nil, usage.Errorf("no terminal to ask on; run mini config set model.model_name NAME, and export %s=...", cfg.Model.APIKeyEnv)
	}
	if _, err := ReadUserConfig(); err != nil {
		return nil, err
	}
	if configs.IsFolderURL(cfg) { // do not store an address from the folder's .env in the user's configuration file
		withoutURL := *cfg
		withoutURL.Model.BaseURL = ""
		cfg = &withoutURL
	}
	setup := &ProviderSetup{}
	err := WithPrompter(a, func(p *ask.Prompter) error {
		if err := p.Printf("A few questions about the model. Enter accepts the value in brackets;\nCtrl-C changes nothing.\n"); err != nil {
			return err
		}
		for _, question := range []func(context.Context, *ask.Prompter, *configs.Resolved) error{setup.askProvider, setup.askKey, setup.askModel, setup.askTest} {
			if err := question(ctx, p, cfg); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return setup, setup.write(ctx, a)
}

// Indexes in the list that askProvider shows.
const (
	otherIndex = 3 // after the first providers; the others follow localIndex
	localIndex = 4
)

// askProvider asks for the provider of the model.
func (u *ProviderSetup) askProvider(ctx context.Context, a *ask.Prompter, cfg *configs.Resolved) error {
	running := slices.DeleteFunc(localservers.ProbeAll(ctx, localservers.KnownServers()), func(f localservers.ProbeResult) bool { return f.Err != nil })
	first, others := offered()
	var list []string
	suggested := -1
	suggest := func(i int) {
		if suggested < 0 {
			suggested = i
		}
	}
	for i, p := range first {
		state := "is not set"
		if os.Getenv(p.KeyEnv) != "" {
			state = "is set" + inFile(p.KeyEnv)
			suggest(i)
		}
		list = append(list, fmt.Sprintf("%-12s %s %s", p.Title, p.KeyEnv, state))
	}
	localText := "none is running"
	if len(running) > 0 {
		localText = running[0].String()
		if n := len(running) - 1; n > 0 {
			localText += fmt.Sprintf(", and %d more", n)
		}
		suggest(localIndex)
	}
	list = append(list, "another server with OpenAI's API", "a server on this machine ("+localText+")")
	for i, p := range others {
		name := p.Title
		if os.Getenv(p.KeyEnv) != "" {
			name = fmt.Sprintf("%-12s %s is set%s", p.Title, p.KeyEnv, inFile(p.KeyEnv))
			suggest(localIndex + 1 + i)
		}
		list = append(list, name)
	}
	if i := currentProvider(cfg, running); i >= 0 {
		suggested = i
	}
	if err := a.Printf("Which provider serves the model?"); err != nil {
		return err
	}
	n, err := a.Choose(ctx, "Number or name", list, max(0, suggested))
	switch {
	case err != nil:
		return err
	case n == localIndex && len(running) > 0:
		return u.askServer(ctx, a, running)
	case n == localIndex, n == otherIndex:
		return u.askAddress(ctx, a, cfg)
	case n < otherIndex:
		u.Provider = first[n]
	default:
		u.Provider = others[n-localIndex-1]
	}
	return nil
}

// currentProvider returns the index of the configured provider in the list that
// askProvider shows, or -1 if no model is configured or the list lacks its provider.
func currentProvider(cfg *configs.Resolved, running []localservers.ProbeResult) int {
	m := cfg.Model
	first, others := offered()
	isCurrent := func(p configs.Provider) bool { return p.Class == m.Class && p.BaseURL == m.BaseURL }
	if m.Name == "" {
		return -1
	}
	if i := slices.IndexFunc(first, isCurrent); i >= 0 {
		return i
	}
	if i := slices.IndexFunc(others, isCurrent); i >= 0 {
		return localIndex + 1 + i
	}
	if m.Class != "openai" {
		return -1
	}
	servers := localservers.KnownServers()
	for _, f := range running {
		servers = append(servers, f.Server)
	}
	if slices.ContainsFunc(servers, func(p localservers.Server) bool { return p.BaseURL == m.BaseURL }) {
		return localIndex
	}
	return otherIndex
}

// askAddress asks for the address of another server.
func (u *ProviderSetup) askAddress(ctx context.Context, a *ask.Prompter, cfg *configs.Resolved) error {
	suggestion := ""
	if currentProvider(cfg, nil) == otherIndex {
		suggestion = cfg.Model.BaseURL
	}
	for {
		text, err := a.Ask(ctx, "Address of its API, for example https://HOST/v1", text.Printable(suggestion))
		if err != nil {
			return err
		}
		address, err := url.Parse(text)
		switch {
		case err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https":
			err = a.Printf("Not an address: it must begin with https:// or http://.")
		case address.User != nil || address.RawQuery != "" || address.Fragment != "":
			err = a.Printf("The address must not contain a user name, a password or a query.")
		default:
			u.Provider = configs.Provider{Title: address.Host, Class: "openai", BaseURL: strings.TrimRight(text, "/"), KeyEnv: keyVariable(address)}
			if suggestion == text {
				u.KeyEnv = cfg.Model.APIKeyEnv
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// sharedKey is the variable for the keys of servers whose addresses give no name.
const sharedKey = "LOCAL_API_KEY"

// keyVariable returns the name of the variable for the key of a server. The name is made
// from the second-level domain, so that mini does not send the server the key of another
// one. It is sharedKey for an IP address or a host name without a usable domain.
func keyVariable(u *url.URL) string {
	host := u.Hostname()
	if net.ParseIP(host) != nil || !strings.Contains(host, ".") {
		return sharedKey
	}
	labels := strings.Split(host, ".")
	name := strings.ToUpper(strings.ReplaceAll(labels[len(labels)-2], "-", "_")) + "_API_KEY"
	if !configs.IsVariable(name) {
		return sharedKey
	}
	return name
}

// askServer asks for one of the servers on this machine if there are several.
func (u *ProviderSetup) askServer(ctx context.Context, a *ask.Prompter, running []localservers.ProbeResult) error {
	var server localservers.ProbeResult
	switch len(running) {
	case 1:
		server = running[0]
	default:
		var list []string
		for _, server := range running {
			list = append(list, server.String())
		}
		n, err := a.Choose(ctx, "Number", list, 0)
		if err != nil {
			return err
		}
		server = running[n]
	}
	u.Provider = configs.Provider{Title: cmp.Or(server.Name, server.BaseURL), Class: "openai", BaseURL: server.BaseURL, KeyEnv: server.KeyEnv}
	u.isLocal, u.localServer = true, server
	return nil
}

// askKey asks for the name of the variable with the key, except for a local server. If
// the variable is not set, askKey asks for the key too, and rejects names that mini cannot store.
func (u *ProviderSetup) askKey(ctx context.Context, a *ask.Prompter, cfg *configs.Resolved) error {
	if u.isLocal {
		return nil
	}
	if p := cfg.Model; p.Class == u.Class && p.BaseURL == u.BaseURL {
		u.KeyEnv = cmp.Or(p.APIKeyEnv, u.KeyEnv)
	}
	for {
		name, err := a.Ask(ctx, "Name of the environment variable for the key", u.KeyEnv)
		if err != nil {
			return err
		}
		isSet := os.Getenv(name) != ""
		if configs.IsVariable(name) && (isSet || configs.ProviderVariable.MatchString(name)) {
			u.KeyEnv = name
			break
		}
		reason := "Not the name of a variable; mini asks for the key later."
		if configs.IsVariable(name) {
			reason = name + " is not set, and mini stores only variables that end with _KEY.\nChoose such a name, or press Ctrl-C and export it first."
		}
		if err := a.Printf("%s", reason); err != nil {
			return err
		}
	}
	isSet := os.Getenv(u.KeyEnv) != ""
	switch {
	case isSet && u.KeyEnv == sharedKey && u.BaseURL != cfg.Model.BaseURL:
		if err := a.Printf("%s is set%s, perhaps for another server. Paste the key of this one;\nEnter sends it the key that is set.", u.KeyEnv, inFile(u.KeyEnv)); err != nil {
			return err
		}
		key, err := u.askValidKey(ctx, a)
		u.key = key
		return err
	case isSet:
		return a.Printf("%s is set%s.", u.KeyEnv, inFile(u.KeyEnv))
	}
	enterHint := "to export it yourself"
	if u.BaseURL != "" {
		enterHint += ", or if the server needs none"
	}
	if err := a.Printf("%s is not set. Paste the key, and mini stores it in a file that only\nyou can read: %s\nPress Enter %s.", u.KeyEnv, text.Printable(configs.UserDotenv()), enterHint); err != nil {
		return err
	}
	key, err := u.askValidKey(ctx, a)
	u.key = key
	return err
}

// askValidKey asks for a key until it can be one; "" is none.
func (*ProviderSetup) askValidKey(ctx context.Context, a *ask.Prompter) (string, error) {
	for {
		key, err := a.AskSecret(ctx, "Key (not shown)")
		if err != nil || key == "" {
			return "", err
		}
		if err = userfiles.ValidateKey(key); err == nil {
			return key, nil
		}
		if err := a.Printf("Not a key: %v.", err); err != nil {
			return "", err
		}
	}
}

// inFile returns " in FILE" for a variable that a .env file sets, else "".
func inFile(name string) string {
	if file := configs.DotenvFile(name); file != "" {
		return " in " + text.Printable(file)
	}
	return ""
}

// write stores the settings and then the key, because the settings may conflict with
// others in the file.
func (u *ProviderSetup) write(ctx context.Context, a *app.App) (err error) {
	u.path, err = changeConfig(ctx, func(d *configs.Document) error {
		for _, setting := range u.settings() {
			if setting[1] == "" {
				if _, err := d.Unset(setting[0]); err != nil {
					return err
				}
				continue
			}
			if err := d.Set(setting[0], setting[1]); err != nil {
				return err
			}
		}
		if u.isLocal {
			return d.Set("model.price.free", "true")
		}
		if free, _ := d.Value("model.price.free"); free == "true" {
			_, err := d.Unset("model.price.free")
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := notef(a, "stored %s of %s in %s%s", u.Model, u.Title, u.path, overrideNote("model.model_name")); err != nil || u.key == "" {
		return err
	}
	path, err := storeKey(ctx, u.KeyEnv, u.key)
	if err != nil {
		return err
	}
	if err := os.Setenv(u.KeyEnv, u.key); err != nil { // for the session that follows
		return err
	}
	return notef(a, "stored the key in %s, which only you can read", path)
}

// settings returns the answers as keys and values. An empty value removes the
// setting.
func (u *ProviderSetup) settings() [][2]string {
	return [][2]string{
		{"model.model_class", u.Class},
		{"model.base_url", u.BaseURL},
		{"model.api_key_env", u.KeyEnv},
		{"model.model_name", strconv.Quote(u.Model)},
	}
}

// Layers returns the answers as configuration layers, for use without reading the file
// again.
func (u *ProviderSetup) Layers() ([]configs.Layer, error) {
	set := slices.DeleteFunc(u.settings(), func(setting [2]string) bool { return setting[1] == "" })
	return settings.SettingLayers("mini config setup", set)
}

// IsReady reports whether mini can try to call the model now: the key is set or
// stored, or the provider has its own base URL, so that its server may need no key.
func (u *ProviderSetup) IsReady() bool {
	return u.key != "" || u.BaseURL != "" || os.Getenv(u.KeyEnv) != ""
}

// printNextStep prints what to do next.
func (u *ProviderSetup) printNextStep(a *app.App) error {
	next := `mini doctor checks the server; then: mini -t "what to do"`
	if !u.IsReady() {
		next = fmt.Sprintf(`export %s=...; then: mini -t "what to do"`, u.KeyEnv)
	}
	_, err := fmt.Fprintln(a.Err, "next:", next)
	return err
}
