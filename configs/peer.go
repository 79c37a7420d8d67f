package configs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/internal/lazyregexp"
)

// adoptPeer rewrites a file of mini-swe-agent as one of mini: keys move to their
// sections, classes and options of litellm and Docker become settings. l.unused lists
// what has no counterpart. Other files do not change.
func (l *Layer) adoptPeer() {
	if l.root == nil || l.root.Kind != yaml.MappingNode || strings.HasPrefix(l.Name, builtinPrefix) {
		return
	}
	if !l.hasLines { // a setting of the command line
		l.adoptKwargs()
		return
	}
	l.isPeer = l.hasPeerKey()
	observation := "action_observation_template"
	l.isVersion1 = child(child(l.root, "agent"), observation) != nil
	l.adoptTimeoutTemplate()
	for _, key := range movedKeys {
		l.move("model", key, "agent", key)
	}
	l.move("agent", observation, "agent", "observation_template")
	l.adoptEnvironment()
	l.adoptProtocol(l.adoptModel())
	l.adoptKwargs()
	for _, section := range []string{"agent", "environment", "model", "run"} {
		for _, key := range keysOf(child(l.root, section)) {
			if _, ok := migratedKeys[key]; ok {
				l.drop(section, key)
			}
		}
	}
}

// movedKeys are keys that mini-swe-agent has in the section "model", and mini in "agent".
var movedKeys = []string{"observation_template", "format_error_template", "action_regex"}

// hasPeerKey reports whether a file has a key that only mini-swe-agent has there.
func (l *Layer) hasPeerKey() bool {
	for _, section := range []string{"agent", "environment", "model", "run"} {
		for _, key := range keysOf(child(l.root, section)) {
			if _, ok := migratedKeys[key]; ok || section == "model" && slices.Contains(movedKeys, key) {
				return true
			}
		}
	}
	return false
}

// adoptTimeoutTemplate adds the exception to the observations of version 1, which has a template
// of its own for timeouts.
func (l *Layer) adoptTimeoutTemplate() {
	a := child(l.root, "agent")
	observation := child(a, "action_observation_template")
	if child(a, "timeout_template") == nil || observation == nil || strings.Contains(observation.Value, "exception") {
		return
	}
	removeKey(a, "timeout_template")
	observation.Value = "{% if output.exception_info %}{{ output.exception_info }}\n{% endif %}" + observation.Value
	l.unused = append(l.unused, "agent.timeout_template: the exception stands before the observation")
}

// unusedNote returns a sentence on what has no effect; "" if there is nothing.
func (l *Layer) unusedNote() string {
	if len(l.unused) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: no effect here: %s (see %s)", l.Name, strings.Join(l.unused, "; "), MigrationGuide)
}

// drop removes a key and lists it, with its hint.
func (l *Layer) drop(section, key string) {
	removeKey(child(l.root, section), key)
	text := section + "." + key
	if hint := migratedKeys[key]; hint != "" {
		text += ": " + hint
	}
	l.unused = append(l.unused, text)
}

// move moves a value to another section, unless that has one already.
func (l *Layer) move(section, key, toSection, toKey string) {
	from := child(l.root, section)
	value := child(from, key)
	if value == nil || child(child(l.root, toSection), toKey) != nil {
		return
	}
	removeKey(from, key)
	l.set(toSection, toKey, value)
}

// set sets a key of a section, which it adds if it is missing.
func (l *Layer) set(section, key string, value *yaml.Node) {
	m := child(l.root, section)
	if m == nil {
		m = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: value.Line}
		l.root.Content = append(l.root.Content, scalar("!!str", section, value.Line), m)
	}
	if m.Kind != yaml.MappingNode {
		return // check reports it
	}
	if old := child(m, key); old != nil {
		*old = *value
		return
	}
	m.Content = append(m.Content, scalar("!!str", key, value.Line), value)
}

// addTo adds nodes to a mapping or a list of the section environment.
func (l *Layer) addTo(key string, kind yaml.Kind, nodes ...*yaml.Node) {
	into := child(child(l.root, "environment"), key)
	if into == nil {
		into = &yaml.Node{Kind: kind, Line: nodes[0].Line}
		l.set("environment", key, into)
	}
	if into.Kind == kind {
		into.Content = append(into.Content, nodes...)
	}
}

func (l *Layer) setString(section, key, value string, line int) {
	l.set(section, key, scalar("!!str", value, line))
}

func scalar(tag, value string, line int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value, Line: line}
}

func keysOf(m *yaml.Node) []string {
	if m == nil || m.Kind != yaml.MappingNode {
		return nil
	}
	var keys []string
	for i := 0; i < len(m.Content); i += 2 {
		keys = append(keys, m.Content[i].Value)
	}
	return keys
}

// removeKey removes a key of a mapping.
func removeKey(m *yaml.Node, key string) {
	if i := slices.Index(keysOf(m), key); i >= 0 {
		m.Content = slices.Delete(m.Content, 2*i, 2*i+2)
	}
}

// shortClass returns the name of a class without the path of its Python module.
func shortClass(name string) string {
	return strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
}

func (l *Layer) adoptEnvironment() {
	e := child(l.root, "environment")
	if class := child(e, "environment_class"); class != nil && migratedClass(class.Value, false) != "" {
		switch short := shortClass(class.Value); {
		case strings.HasPrefix(short, "bubblewrap"):
			class.Value = "bubblewrap"
		default:
			l.unused = append(l.unused, fmt.Sprintf("environment.environment_class %.60s: docker is used", class.Value))
			class.Value = "docker"
		}
	} else if class != nil && strings.Contains(class.Value, ".") {
		class.Value = strings.TrimSuffix(shortClass(class.Value), "environment")
	}
	if x := child(e, "executable"); x != nil && x.Value == "docker" {
		removeKey(e, "executable")
	}
	args := child(e, "run_args")
	if args == nil || args.Kind != yaml.SequenceNode {
		return
	}
	removeKey(e, "run_args")
	l.adoptRunArgs(args.Content)
}

// adoptRunArgs turns options of docker run into settings.
func (l *Layer) adoptRunArgs(args []*yaml.Node) {
	keys := map[string]string{
		"--network": "network", "--net": "network", "--cpus": "cpus", "--memory": "memory", "-m": "memory", "--user": "user", "-u": "user",
		"--platform": "platform", "--shm-size": "shm_size", "--pids-limit": "pids_limit", "--runtime": "runtime",
	}
	for i := 0; i < len(args); i++ {
		option, value, hasValue := strings.Cut(args[i].Value, "=")
		if option == "--rm" || option == "--init" {
			continue
		}
		if !hasValue && i+1 < len(args) && !strings.HasPrefix(args[i+1].Value, "-") {
			i++
			value = args[i].Value
		}
		key, known := keys[option]
		switch {
		case known && value != "" && child(child(l.root, "environment"), key) == nil:
			tag := "!!str"
			if _, err := strconv.ParseFloat(value, 64); err == nil && (key == "cpus" || key == "pids_limit") {
				tag = ""
			}
			l.set("environment", key, scalar(tag, value, args[i].Line))
		case option == "--cap-drop": // all are dropped, except environment.cap_add
		case option == "-e" || option == "--env":
			if name, text, ok := strings.Cut(value, "="); ok {
				l.addTo("env", yaml.MappingNode, scalar("!!str", name, args[i].Line), scalar("!!str", text, args[i].Line))
			} else {
				l.addTo("forward_env", yaml.SequenceNode, scalar("!!str", value, args[i].Line))
			}
		case option == "--cap-add":
			l.unused = append(l.unused, fmt.Sprintf("environment.run_args --cap-add %s: add it to the list environment.cap_add", value))
		default:
			l.unused = append(l.unused, strings.TrimSpace("environment.run_args "+option+" "+value))
		}
	}
}

// adoptModel turns a class of models into settings, and returns its name; "" if the class is
// none of mini-swe-agent.
func (l *Layer) adoptModel() (short string) {
	m := child(l.root, "model")
	class, name := child(m, "model_class"), child(m, "model_name")
	if class != nil && migratedClass(class.Value, true) != "" {
		short = shortClass(class.Value)
	}
	switch {
	case strings.HasPrefix(short, "openrouter"):
		l.useServer(class, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY")
	case strings.HasPrefix(short, "requesty"):
		l.useServer(class, "https://router.requesty.ai/v1", "REQUESTY_API_KEY")
	case strings.HasPrefix(short, "portkey"):
		l.unused = append(l.unused, "model.model_class "+class.Value+": the model is asked for at its own provider")
		removeKey(m, "model_class")
	case strings.HasPrefix(short, "litellm") && (name == nil || strings.Contains(name.Value, "/") || strings.HasPrefix(name.Value, "claude-")):
		removeKey(m, "model_class") // the name chooses the class
	case strings.HasPrefix(short, "litellm"):
		class.Value = "openai"
	case strings.HasPrefix(short, "roulette"):
		l.adoptRoute("roulette")
	case strings.HasPrefix(short, "interleaving"):
		l.adoptRoute("interleave")
	}
	if name != nil && child(child(m, "model_kwargs"), "api_base") != nil {
		name.Value = strings.TrimPrefix(name.Value, "openai/") // litellm's name of the protocol, not part of the server's name
	}
	return short
}

// adoptRoute turns the models of mini-swe-agent's classes roulette and interleaving into a
// route.
func (l *Layer) adoptRoute(kind string) {
	m := child(l.root, "model")
	models, sequence := child(m, "model_kwargs"), child(m, "sequence")
	if models == nil || models.Kind != yaml.SequenceNode {
		return // check reports the class
	}
	removeKey(m, "model_kwargs")
	removeKey(m, "model_class")
	removeKey(m, "model_name") // a label there
	for _, entry := range models.Content {
		for _, key := range []string{"model_class", "set_cache_control"} {
			removeKey(entry, key)
		}
	}
	route := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: models.Line, Content: []*yaml.Node{
		scalar("!!str", "kind", models.Line), scalar("!!str", kind, models.Line), scalar("!!str", "models", models.Line), models,
	}}
	if sequence != nil {
		removeKey(m, "sequence")
		route.Content = append(route.Content, scalar("!!str", "sequence", sequence.Line), sequence)
	}
	l.set("model", "route", route)
}

// adoptKwargs turns options of litellm into settings.
func (l *Layer) adoptKwargs() {
	m := child(l.root, "model")
	kwargs := child(m, "model_kwargs")
	protocolNode := child(child(l.root, "agent"), "protocol")
	for _, key := range keysOf(kwargs) {
		value := child(kwargs, key)
		switch {
		case key == "api_base" && child(m, "base_url") == nil:
			removeKey(kwargs, key)
			l.set("model", "base_url", value)
		case key == "num_retries" && child(m, "max_tries") == nil && value.Tag == "!!int":
			removeKey(kwargs, key)
			n, _ := strconv.Atoi(value.Value) // an invalid number is 0
			l.set("model", "max_tries", scalar("!!int", strconv.Itoa(n+1), value.Line))
		case key == "extra_headers" && child(m, "headers") == nil:
			removeKey(kwargs, key)
			l.set("model", "headers", value)
		case key == "extra_body" && value.Kind == yaml.MappingNode: // part of the request, as with OpenAI's client
			removeKey(kwargs, key)
			for _, k := range keysOf(value) {
				if child(kwargs, k) == nil {
					kwargs.Content = append(kwargs.Content, scalar("!!str", k, value.Line), child(value, k))
				}
			}
		case key == "custom_llm_provider" && value.Value == "openai":
			removeKey(kwargs, key)
		case key == "drop_params",
			key == "parallel_tool_calls" && protocolNode != nil && (value.Value == "true" || protocolNode.Value != protocol.Tools):
			removeKey(kwargs, key)
			l.unused = append(l.unused, "model.model_kwargs."+key)
		}
	}
}

// useServer selects a server with OpenAI's API.
func (l *Layer) useServer(class *yaml.Node, address, keyVariable string) {
	class.Value = "openai"
	if child(child(l.root, "model"), "base_url") == nil {
		l.setString("model", "base_url", address, class.Line)
		l.setString("model", "api_key_env", keyVariable, class.Line)
	}
}

// peerFence is the fence of commands in the prompts of mini-swe-agent that ask for text.
var peerFence = lazyregexp.New("```mswea_bash_command")

// peerToolCall matches prompts of mini-swe-agent that ask for tool calls.
var peerToolCall = lazyregexp.New(`(?i)\btool calls?\b`)

// toolCallClass matches the classes of mini-swe-agent whose models write tool calls.
var toolCallClass = lazyregexp.New(`^(?:litellm|openrouter|portkey|requesty)`)

// tagPattern matches a pattern for which the protocol xml has a tag.
var tagPattern = lazyregexp.New(`^<([A-Za-z_][\w-]*)>\(\.\*\?\)</([A-Za-z_][\w-]*)>$`)

// adoptProtocol sets the protocol of a file of mini-swe-agent, where the class of the model
// or the prompts imply it: tool calls, unless the class, a pattern or the prompts ask for
// text, or the file is of version 1.
func (l *Layer) adoptProtocol(class string) {
	a := child(l.root, "agent")
	if child(a, "protocol") != nil {
		return
	}
	var texts string
	line := 0
	for _, key := range []string{"system_template", "instance_template", "format_error_template", "observation_template"} {
		if t := child(a, key); t != nil {
			texts, line = texts+t.Value+"\n", t.Line
		}
	}
	pattern := child(a, "action_regex")
	engine := child(a, engineKey)
	isPeer := texts != "" && (l.isPeer || engine != nil && engine.Value == agent.EngineJinja)
	if isPeer && pattern != nil {
		if m := tagPattern.FindStringSubmatch(pattern.Value); m != nil && m[1] == m[2] {
			l.setString("agent", "protocol", protocol.XML, pattern.Line)
			l.setString("agent", "action_tag", m[1], pattern.Line)
			pattern.Value = "" // the tag takes its place
			return
		}
	}
	name := ""
	switch hasAll := child(a, "instance_template") != nil && child(a, "observation_template") != nil; {
	case !isPeer && !toolCallClass.MatchString(class): // nothing of mini-swe-agent
	case strings.Contains(class, "textbased"), isPeer && (l.isVersion1 || pattern != nil || peerFence.MatchString(texts)):
		name = protocol.Text
	case toolCallClass.MatchString(class), isPeer && (hasAll || peerToolCall.MatchString(texts)):
		name = protocol.Tools
	}
	if name == "" {
		return
	}
	line = max(line, 1)
	l.setString("agent", "protocol", name, line)
	if pattern == nil && texts != "" {
		l.setString("agent", "action_regex", "", line)
	}
}
