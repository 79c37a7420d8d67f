package configs

import (
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/internal/lazyregexp"
)

// adopt replaces the old names in a layer by those of mini (see OldNames). l.unused lists what has no
// counterpart; on the command line, check reports it instead.
func (l *Layer) adopt() error {
	if l.root == nil || l.root.Kind != yaml.MappingNode || strings.HasPrefix(l.Name, builtinPrefix) {
		return nil
	}
	class, isVersion1 := "", l.node("agent.action_observation_template") != nil
	if l.hasLines {
		class = l.adoptClasses()
	}
	var errs []error
	for _, n := range OldNames {
		value := l.node(n.Old)
		if value == nil {
			continue
		}
		isOption := strings.HasPrefix(n.Old, kwargsKey)
		l.isPeer = l.isPeer || !isOption && n.Old != whitelistKey
		if err := l.adoptValue(n, value, l.hasLines || isOption); err != nil {
			errs = append(errs, err)
		}
	}
	if l.hasLines {
		l.adoptProtocol(class, isVersion1)
	}
	l.adoptParallelCalls()
	return join(errs)
}

// adoptValue moves the value of an old key to its place in mini. If there is none, it removes the key,
// provided that isRemoved is set.
func (l *Layer) adoptValue(n OldName, value *yaml.Node, isRemoved bool) error {
	path := strings.Split(n.Old, ".")
	switch n.Old {
	case kwargsKey + ".num_retries":
		tries, err := strconv.Atoi(value.Value)
		if err != nil {
			return nil //nolint:nilerr // validate reports it
		}
		value = scalar("!!int", strconv.Itoa(tries+1), value.Line)
	case kwargsKey + ".custom_llm_provider":
		if value.Value == "openai" {
			remove(l.root, path)
		}
		return nil
	case kwargsKey + ".parallel_tool_calls":
		return nil // depends on the protocol
	case "agent.timeout_template":
		return l.adoptTimeoutTemplate(n, isRemoved)
	case runArgsKey:
		if value.Kind == yaml.SequenceNode {
			remove(l.root, path)
			return l.adoptRunArgs(value.Content)
		}
	case "environment.executable":
		if value.Value == "docker" {
			remove(l.root, path)
			return nil
		}
	}
	if n.New == "" && !isRemoved {
		return nil
	}
	remove(l.root, path)
	return l.put(n, value)
}

// put sets the setting that takes the place of an old name, and adds to mappings. It fails if the
// setting has a value already. If there is no such setting, put notes that the name has no effect.
func (l *Layer) put(n OldName, value *yaml.Node) error {
	if n.New == "" {
		text := n.Old
		if n.Why != "" {
			text += ": " + n.Why
		}
		l.unused = append(l.unused, text)
		return nil
	}
	switch present := l.node(n.New); {
	case present == nil:
		setNode(l.root, strings.Split(n.New, "."), value)
	case isMapping(n.New) && present.Kind == yaml.MappingNode && value.Kind == yaml.MappingNode:
		for i := 0; i < len(value.Content); i += 2 {
			if key := value.Content[i]; child(present, key.Value) == nil {
				present.Content = append(present.Content, key, value.Content[i+1])
			}
		}
	default:
		return l.errorf(value, "%s: mini calls it %s, which is also set", n.Old, n.New)
	}
	return nil
}

// unusedNote returns a sentence on what has no effect; "" if there is nothing.
func (l *Layer) unusedNote() string {
	if len(l.unused) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: no effect here: %s (see %s)", l.Name, strings.Join(l.unused, "; "), MigrationGuide)
}

func scalar(tag, value string, line int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value, Line: line}
}

// adoptTimeoutTemplate adds the exception to the observations of version 1, which has a template
// of its own for timeouts.
func (l *Layer) adoptTimeoutTemplate(n OldName, isRemoved bool) error {
	if !isRemoved {
		return nil
	}
	if t := l.node("agent.observation_template"); t != nil && t.Kind == yaml.ScalarNode && !strings.Contains(t.Value, "exception") {
		t.Value = "{% if output.exception_info %}{{ output.exception_info }}\n{% endif %}" + t.Value
		n.Why = "the exception stands before the observation"
	}
	remove(l.root, strings.Split(n.Old, "."))
	return l.put(n, nil)
}

// adoptRunArgs turns options of docker run into settings.
func (l *Layer) adoptRunArgs(args []*yaml.Node) error {
	var errs []error
	for i := 0; i < len(args); i++ {
		option, value, hasValue := strings.Cut(args[i].Value, "=")
		if option == "--rm" || option == "--init" {
			continue
		}
		if !hasValue && i+1 < len(args) && !strings.HasPrefix(args[i+1].Value, "-") {
			i++
			value = args[i].Value
		}
		n, _ := FindOldName(runArgsKey + " " + option)
		node := scalar("", value, args[i].Line)
		name, text, isAssignment := strings.Cut(value, "=")
		isVariable := option == "-e" || option == "--env"
		switch {
		case option == "--cap-drop": // all are dropped, except environment.cap_add
			continue
		case isVariable && isAssignment:
			n.New = "environment.env"
			node = &yaml.Node{Kind: yaml.MappingNode, Line: node.Line, Content: []*yaml.Node{scalar("!!str", name, node.Line), scalar("!!str", text, node.Line)}}
		case isVariable:
			n.New = "environment.forward_env"
			node = &yaml.Node{Kind: yaml.SequenceNode, Line: node.Line, Content: []*yaml.Node{node}}
			if present := l.node(n.New); present != nil && present.Kind == yaml.SequenceNode {
				present.Content = append(present.Content, node.Content...)
				continue
			}
		}
		n.Old = strings.TrimSpace(runArgsKey + " " + option + " " + value)
		if err := l.put(n, node); err != nil {
			errs = append(errs, err)
		}
	}
	return join(errs)
}

// adoptClasses turns the classes of mini-swe-agent into settings, and returns the name of that of the
// model; "" if it is none of mini-swe-agent.
func (l *Layer) adoptClasses() (short string) {
	if class := l.node(environmentClassKey); class != nil {
		n, ok := findOldClass(environmentClassKey, class.Value)
		switch {
		case ok && n.New == "docker":
			l.unused = append(l.unused, fmt.Sprintf("%s %.60s: docker is used", environmentClassKey, class.Value))
			class.Value = n.New
		case ok:
			class.Value = n.New
		case strings.Contains(class.Value, "."):
			class.Value = strings.TrimSuffix(shortClass(class.Value), "environment")
		}
	}
	if name := l.node("model.model_name"); name != nil && l.node(kwargsKey+".api_base") != nil {
		name.Value = strings.TrimPrefix(name.Value, "openai/") // litellm's name of the protocol, not part of the server's name
	}
	class := l.node(modelClassKey)
	if class == nil {
		return ""
	}
	n, ok := findOldClass(modelClassKey, class.Value)
	if !ok {
		return ""
	}
	short = shortClass(class.Value)
	switch n.New {
	case "": // check reports it
	case "model.model_name": // the name chooses the class
		if strings.HasPrefix(short, "portkey") {
			l.unused = append(l.unused, "model.model_class "+class.Value+": the model is asked for at its own provider")
		}
		remove(l.root, strings.Split(modelClassKey, "."))
	case routeKey:
		l.adoptRoute(strings.TrimPrefix(n.Old, modelClassKey+"="))
	default:
		name, settings, _ := strings.Cut(n.New, " ")
		class.Value = name
		if l.node("model.base_url") != nil {
			break
		}
		for setting := range strings.FieldsSeq(settings) {
			key, value, _ := strings.Cut(setting, "=")
			setNode(l.root, strings.Split(key, "."), scalar("!!str", value, class.Line))
		}
	}
	return short
}

// adoptRoute turns the models of mini-swe-agent's classes roulette and interleaving into a
// route.
func (l *Layer) adoptRoute(class string) {
	models := l.node(kwargsKey)
	if models == nil || models.Kind != yaml.SequenceNode {
		return // check reports the class
	}
	kind := map[string]string{"roulette": "roulette", "interleaving": "interleave"}[class]
	setNode(l.root, []string{"model", "route", "kind"}, scalar("!!str", kind, models.Line))
	setNode(l.root, []string{"model", "route", "models"}, models)
	if sequence := l.node("model.sequence"); sequence != nil {
		setNode(l.root, []string{"model", "route", "sequence"}, sequence)
	}
	for _, key := range []string{"model_kwargs", "model_class", "model_name", "sequence"} { // the name is a label there
		remove(l.root, []string{"model", key})
	}
	for _, entry := range models.Content {
		for _, key := range []string{"model_class", "set_cache_control"} {
			remove(entry, []string{key})
		}
	}
}

// adoptParallelCalls removes an option about tool calls if the layer's protocol has none, or if it has
// the value that mini expects.
func (l *Layer) adoptParallelCalls() {
	const key = kwargsKey + ".parallel_tool_calls"
	value, name := l.node(key), l.node("agent.protocol")
	if value != nil && name != nil && (value.Value == "true" || name.Value != protocol.Tools) {
		remove(l.root, strings.Split(key, "."))
		l.unused = append(l.unused, key)
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
func (l *Layer) adoptProtocol(class string, isVersion1 bool) {
	a := child(l.root, "agent")
	if child(a, "protocol") != nil {
		return
	}
	var texts string
	line := 1
	for _, key := range []string{"system_template", "instance_template", "format_error_template", "observation_template"} {
		if t := child(a, key); t != nil {
			texts, line = texts+t.Value+"\n", t.Line
		}
	}
	set := func(key, value string, line int) {
		setNode(l.root, []string{"agent", key}, scalar("!!str", value, line))
	}
	pattern := child(a, "action_regex")
	engine := child(a, engineKey)
	isPeer := texts != "" && (l.isPeer || engine != nil && engine.Value == agent.EngineJinja)
	if isPeer && pattern != nil {
		if m := tagPattern.FindStringSubmatch(pattern.Value); m != nil && m[1] == m[2] {
			set("protocol", protocol.XML, pattern.Line)
			set("action_tag", m[1], pattern.Line)
			pattern.Value = "" // the tag takes its place
			return
		}
	}
	name := ""
	switch hasAll := child(a, "instance_template") != nil && child(a, "observation_template") != nil; {
	case !isPeer && !toolCallClass.MatchString(class): // nothing of mini-swe-agent
	case strings.Contains(class, "textbased"), isPeer && (isVersion1 || pattern != nil || peerFence.MatchString(texts)):
		name = protocol.Text
	case toolCallClass.MatchString(class), isPeer && (hasAll || peerToolCall.MatchString(texts)):
		name = protocol.Tools
	}
	if name == "" {
		return
	}
	set("protocol", name, line)
	if pattern == nil && texts != "" {
		set("action_regex", "", line)
	}
}
