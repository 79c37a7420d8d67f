package cli

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

	"github.com/minibench/mini/cmd/mini/internal/ask"
	"github.com/minibench/mini/cmd/mini/internal/home"
	"github.com/minibench/mini/cmd/mini/internal/servers"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/runner/report"
)

func newConfigSetup(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "setup",
		Short: "Ask which model is to be used, and keep the answers",
		Long: `Asks who serves the model, which variable has the key, and which model it is,
and keeps the answers in your own file of settings. Enter takes what stands in
brackets. Ctrl-C leaves everything as it was. mini itself asks these questions
when it is started on a terminal and there is no model or key yet.`,
		Example: "  mini config setup",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := &configFlags{set: cmd.Flags()}
			cfg, err := c.merge(configKinds["task"])
			if err != nil {
				return before(err)
			}
			done, err := setUp(cmd.Context(), s, cfg)
			if err != nil {
				return before(err)
			}
			return done.sayNext(s)
		},
	}
}

// provider is whom the set-up knows by name.
type provider struct {
	name, class, baseURL, keyEnv string
	model                        string // that is suggested
}

// providers are those with a number of their own in the set-up.
func providers() []provider {
	return []provider{
		{"OpenAI", "openai", "", "OPENAI_API_KEY", "gpt-5-mini"},
		{"Anthropic", "anthropic", "", "ANTHROPIC_API_KEY", "claude-sonnet-4-5"},
		{"OpenRouter", "openai", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "openai/gpt-5-mini"},
	}
}

// setup is a set-up while it is asked for, and its outcome.
type setup struct {
	provider
	local bool          // it costs nothing
	found servers.Found // the server, where it was asked for its models
	key   string        // to be kept; empty where there is none
	path  string        // where it was written
}

// setUp asks, and then writes. Before all questions are answered nothing is.
func setUp(ctx context.Context, s Streams, cfg *configs.Resolved) (*setup, error) {
	if _, err := ownConfig(); err != nil {
		return nil, err
	}
	if !s.Terminal {
		return nil, usagef("there is no terminal to ask on; say the same with mini config set model.model_name NAME, and export %s=...", cfg.Model.APIKeyEnv)
	}
	if _, err := ownDocument(); err != nil {
		return nil, err
	}
	if isFolderURL(cfg) { // the user's own file must not get the folder's address
		own := *cfg
		own.Model.BaseURL = ""
		cfg = &own
	}
	u := &setup{}
	err := asking(s, func(a *ask.Asker) error {
		if err := a.Say("A few questions about the model. Enter takes what stands in brackets;\nCtrl-C leaves everything as it is.\n"); err != nil {
			return err
		}
		for _, question := range []func(context.Context, *ask.Asker, *configs.Resolved) error{u.askProvider, u.askKey, u.askModel} {
			if err := question(ctx, a, cfg); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return u, u.write(ctx, s)
}

// askProvider asks who serves the model.
func (u *setup) askProvider(ctx context.Context, a *ask.Asker, cfg *configs.Resolved) error {
	found := slices.DeleteFunc(servers.Find(ctx, servers.Known()), func(f servers.Found) bool { return f.Err != nil })
	known := providers()
	var list []string
	usual := -1
	for i, p := range known {
		state := "is not set"
		if os.Getenv(p.keyEnv) != "" {
			state = "is set"
			usual = cmp.Or(usual+1, i+1) - 1
		}
		list = append(list, fmt.Sprintf("%-12s %s %s", p.name, p.keyEnv, state))
	}
	other, own := len(known), len(known)+1
	here := "none answers now"
	if len(found) > 0 {
		here = found[0].String()
		if n := len(found) - 1; n > 0 {
			here += fmt.Sprintf(", and %d more", n)
		}
		if usual < 0 {
			usual = own
		}
	}
	list = append(list, "another server with OpenAI's API", "a server of this machine ("+here+")")
	if i := currentProvider(cfg, known, found); i >= 0 {
		usual = i
	}
	if err := a.Say("Who serves the model?"); err != nil {
		return err
	}
	n, err := a.Choice(ctx, "Number", list, max(0, usual))
	switch {
	case err != nil:
		return err
	case n == other:
		return u.askAddress(ctx, a, cfg)
	case n == own:
		return u.askServer(ctx, a, found)
	}
	u.provider = known[n]
	return nil
}

// currentProvider is the number of the one that is configured; -1 where none is.
func currentProvider(cfg *configs.Resolved, known []provider, found []servers.Found) int {
	m := cfg.Model
	if m.Name == "" {
		return -1
	}
	for i, p := range known {
		if p.class == m.Class && p.baseURL == m.BaseURL {
			return i
		}
	}
	if m.Class != "openai" {
		return -1
	}
	all := servers.Known()
	for _, f := range found {
		all = append(all, f.Place)
	}
	if slices.ContainsFunc(all, func(p servers.Place) bool { return p.BaseURL == m.BaseURL }) {
		return len(known) + 1
	}
	return len(known)
}

// askAddress asks for a server that is not known by name.
func (u *setup) askAddress(ctx context.Context, a *ask.Asker, cfg *configs.Resolved) error {
	usual := ""
	if i := currentProvider(cfg, providers(), nil); i == len(providers()) {
		usual = cfg.Model.BaseURL
	}
	for {
		text, err := a.Line(ctx, "Address of its API, as https://HOST/v1", report.Printable(usual))
		if err != nil {
			return err
		}
		address, err := url.Parse(text)
		switch {
		case err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https":
			err = a.Say("That is no address; one begins with https:// or http://.")
		case address.User != nil || address.RawQuery != "" || address.Fragment != "":
			err = a.Say("User names, passwords and queries have no place in it.")
		default:
			u.provider = provider{name: address.Host, class: "openai", baseURL: strings.TrimRight(text, "/"), keyEnv: variableOf(address)}
			if usual == text {
				u.keyEnv = cfg.Model.APIKeyEnv
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// variableOf is the variable that a server's key is usually in: by its name, so
// that no other one's is sent there.
func variableOf(u *url.URL) string {
	host := u.Hostname()
	if net.ParseIP(host) != nil || !strings.Contains(host, ".") {
		return "LOCAL_API_KEY"
	}
	labels := strings.Split(host, ".")
	name := strings.ToUpper(strings.ReplaceAll(labels[len(labels)-2], "-", "_")) + "_API_KEY"
	if !configs.IsVariable(name) {
		return "LOCAL_API_KEY"
	}
	return name
}

// askServer asks which of this machine's servers it is.
func (u *setup) askServer(ctx context.Context, a *ask.Asker, found []servers.Found) error {
	var f servers.Found
	switch len(found) {
	case 0:
		var err error
		if f, err = u.askPlace(ctx, a); err != nil {
			return err
		}
	case 1:
		f = found[0]
	default:
		var list []string
		for _, f := range found {
			list = append(list, f.String())
		}
		n, err := a.Choice(ctx, "Which one", list, 0)
		if err != nil {
			return err
		}
		f = found[n]
	}
	u.provider = provider{name: cmp.Or(f.Name, f.BaseURL), class: "openai", baseURL: f.BaseURL, keyEnv: f.KeyEnv}
	u.local, u.found = true, f
	return nil
}

func (u *setup) askPlace(ctx context.Context, a *ask.Asker) (servers.Found, error) {
	for {
		text, err := a.Line(ctx, "Which one: ollama, vllm, llama.cpp, or its address", "ollama")
		if err != nil {
			return servers.Found{}, err
		}
		place, err := servers.Parse(text)
		if err != nil {
			if err := a.Say("%s.", report.Printable(err.Error())); err != nil {
				return servers.Found{}, err
			}
			continue
		}
		f := servers.Ask(ctx, place)
		if f.Err != nil && ctx.Err() == nil {
			err = a.Say("%s: %s. It can be started later.", f.Place, report.Printable(f.Err.Error()))
		}
		return f, err
	}
}

// askKey asks for the variable with the key, and for the key where it has none.
func (u *setup) askKey(ctx context.Context, a *ask.Asker, cfg *configs.Resolved) error {
	if u.local {
		return nil
	}
	if p := cfg.Model; p.Class == u.class && p.BaseURL == u.baseURL {
		u.keyEnv = cmp.Or(p.APIKeyEnv, u.keyEnv)
	}
	for {
		name, err := a.Line(ctx, "Variable with the key", u.keyEnv)
		if err != nil {
			return err
		}
		if configs.IsVariable(name) {
			u.keyEnv = name
			break
		}
		if err := a.Say("That is no name of a variable; the key itself is asked for later."); err != nil {
			return err
		}
	}
	if os.Getenv(u.keyEnv) != "" {
		return a.Say("%s is set.", u.keyEnv)
	}
	if !providerVariable.MatchString(u.keyEnv) {
		return a.Say("%s is not set; export it in your shell.", u.keyEnv)
	}
	without := "to export it yourself"
	if u.baseURL != "" {
		without += ", or if the server needs none"
	}
	if err := a.Say("%s is not set. Paste the key, and mini keeps it where only you can\nread it: %s\nPress Enter %s.", u.keyEnv, report.Printable(userDotenv()), without); err != nil {
		return err
	}
	for {
		key, err := a.Secret(ctx, "Key (it is not shown)")
		if err != nil || key == "" {
			return err
		}
		if err = home.CheckKey(key); err == nil {
			u.key = key
			return nil
		}
		if err := a.Say("That is no key: %v.", err); err != nil {
			return err
		}
	}
}

// askModel asks which model it is to be.
func (u *setup) askModel(ctx context.Context, a *ask.Asker, cfg *configs.Resolved) error {
	usual := u.model
	models := u.found.Talking()
	if len(models) > 0 {
		usual = models[0].Name
		if err := a.Say("It has %s.", modelList(models)); err != nil {
			return err
		}
	}
	m := cfg.Model
	_, still := u.found.Named(m.Name)
	if m.Name != "" && m.Class == u.class && m.BaseURL == u.baseURL && (still || len(models) == 0) {
		usual = m.Name
	}
	for {
		name, err := a.Line(ctx, "Model", report.Printable(usual))
		if err != nil {
			return err
		}
		try := *cfg
		try.Model.Class, try.Model.BaseURL, try.Model.Name, try.Model.Route = u.class, u.baseURL, name, configs.Route{}
		_, has := u.found.Named(name)
		switch err := checkModelName(&try); {
		case name == "":
		case len(models) > 0 && !has:
			if err := a.Say("It does not have %s; it has %s.", report.Printable(name), modelList(models)); err != nil {
				return err
			}
		case err != nil:
			if err := a.Say("%s.", report.Printable(err.Error())); err != nil {
				return err
			}
		default:
			u.model = name
			return nil
		}
	}
}

// write keeps the answers: settings first, since those may turn out to be
// against what the file has already.
func (u *setup) write(ctx context.Context, s Streams) (err error) {
	u.path, err = changeConfig(ctx, func(d *configs.Document) error {
		for _, one := range u.settings() {
			if one[1] == "" {
				if _, err := d.Unset(one[0]); err != nil {
					return err
				}
				continue
			}
			if err := d.Set(one[0], one[1]); err != nil {
				return err
			}
		}
		if u.local {
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
	if err := sayf(s, "%s of %s; written to %s%s", u.model, u.name, u.path, outdone("model.model_name")); err != nil || u.key == "" {
		return err
	}
	path, err := keepKey(ctx, u.keyEnv, u.key)
	if err != nil {
		return err
	}
	return sayf(s, "the key is in %s, which only you can read", path)
}

// settings are the answers; an empty one is that nothing is to be set.
func (u *setup) settings() [][2]string {
	return [][2]string{
		{"model.model_class", u.class},
		{"model.base_url", u.baseURL},
		{"model.api_key_env", u.keyEnv},
		{"model.model_name", strconv.Quote(u.model)},
	}
}

// layers are the answers for this start of mini.
func (u *setup) layers() (layers []configs.Layer, err error) {
	for _, one := range u.settings() {
		if one[1] == "" {
			continue
		}
		l, err := configs.Setting("mini config setup", one[0], one[1])
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	return layers, nil
}

// ready says that a model could be asked now.
func (u *setup) ready() bool { return u.key != "" || u.baseURL != "" || os.Getenv(u.keyEnv) != "" }

// sayNext says what to do now.
func (u *setup) sayNext(s Streams) error {
	next := `mini doctor asks its server; then: mini -t "what to do"`
	if !u.ready() {
		next = fmt.Sprintf(`export %s=...; then: mini -t "what to do"`, u.keyEnv)
	}
	_, err := fmt.Fprintln(s.Err, "next:", next)
	return err
}
