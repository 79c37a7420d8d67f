package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/minibench/mini/internal/lazyregexp"
)

// Limits of a request.
const (
	maxDepth   = 500
	maxTools   = 5 // levels of tools in tools, which are read once for each level
	maxValues  = 500_000
	maxList    = 10_000 // elements of a list of messages, parts or tools
	maxDropped = 20     // names of dropped fields that ParseRequest returns
	maxName    = 80     // bytes of a name in an error or an edit
)

// Reasons to refuse a request.
var (
	errAddress    = errors.New("an address on the network; send the contents of the file instead")
	errReference  = errors.New("a part of the conversation that is stored at the provider; send the whole conversation")
	errServerTool = errors.New("a tool that runs at the provider")
	errCase       = errors.New("keys of an object that differ only in case")
	errLong       = fmt.Errorf("a list of more than %d elements", maxList)
)

// ParseRequest reads a request. It refuses duplicate keys, keys that differ only in case,
// and parts that make the provider load a file or use the network. Fields that a dialect
// does not need are left out, and the first of their names returned. If allowNetwork is
// set, fields and parts are only checked for their form.
func ParseRequest(d Dialect, data []byte, allowNetwork bool) (b *Body, dropped []string, err error) {
	p := newParser(d, data)
	p.allowNetwork = allowNetwork
	if t, err := p.dec.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, errors.New("read request: the body is not a JSON object")
	}
	if !utf8.Valid(data) {
		return nil, nil, errors.New("read request: the body is not UTF-8")
	}
	b = &Body{}
	known := map[string]string{}
	for _, name := range d.fields() {
		known[fold(name)] = name
	}
	err = p.object(inContent, func(name string) error {
		known, isKnown := known[fold(name)]
		if isKnown && name != known {
			return fmt.Errorf("write the field %s as %s", clip(name), known)
		}
		in := zoneOf(name, inContent)
		if !isKnown {
			in = inData
		}
		value, err := p.raw(name, in)
		switch {
		case err != nil:
			return err
		case name == "tools" && value[0] != '[' && string(value) != "null":
			return errors.New("the field tools is not a list")
		case slices.Contains(references, name) && string(value) != "null":
			p.refuse(errReference)
		case allowNetwork:
		case name == "store" && isKnown && string(value) != "false":
			dropped, value = append(dropped, name), json.RawMessage("false")
		case !isKnown:
			if len(dropped) < maxDropped && string(value) != "null" {
				dropped = append(dropped, clip(name))
			}
			return nil
		}
		b.fields = append(b.fields, field{name, value})
		return nil
	})
	if err == nil {
		if _, end := p.dec.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("data after the JSON object")
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read request: %w", err)
	}
	if p.refusal != nil {
		return nil, nil, p.refusal
	}
	return b, dropped, nil
}

// references are fields that name a conversation, or a part of one, that is stored at the
// provider: neither its files nor its text can be checked or recorded.
var references = []string{"previous_response_id", "conversation", "prompt", "cachedContent", "cached_content"}

// zone says who reads a part of a request.
type zone int

const (
	inContent zone = iota // the provider reads addresses there
	inFile                // below a field that names a file: no text of the conversation
	inSchema              // a JSON schema
	inData                // only tools, or it is not sent
)

// zoneOf returns the zone of a field of an object.
func zoneOf(name string, object zone) zone {
	switch {
	case object != inContent:
		return object
	case slices.Contains(schemaFields, name):
		return inSchema
	case slices.Contains(dataFields, name):
		return inData
	case isFileField(name):
		return inFile
	}
	return inContent
}

var (
	schemaFields = strings.Fields("parameters parametersJsonSchema parameters_json_schema input_schema output_schema schema " +
		"responseSchema response_schema responseJsonSchema response_json_schema")
	dataFields = strings.Fields("arguments input_examples")
	// dataIn are fields that are data, or text, in objects of some types or fields only.
	dataIn = map[string][]string{
		"input": {"tool_use"}, "action": {"local_shell_call", "shell_call"}, "data": {"text"},
		"args": {"functionCall", "function_call"}, "response": {"functionResponse", "function_response"},
	}
	// textFields are texts: of the conversation, and those that describe tools.
	textFields = strings.Fields("text content system instructions input output thinking reasoning reasoning_content refusal summary " +
		"description title context definition diff code command commands stdout stderr stop stop_sequences stopSequences")
	// clientCalls are the types of calls that the agent runs.
	clientCalls = strings.Fields("function_call custom_tool_call local_shell_call shell_call apply_patch_call tool_search_call")
)

// isFileField reports whether a field has the address or the id of a file, however the
// words of its name are joined.
func isFileField(name string) bool {
	letters := strings.TrimSuffix(strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name), "s")
	return slices.ContainsFunc([]string{"url", "uri", "href", "fileid", "containerid"}, func(end string) bool {
		return strings.HasSuffix(letters, end) && !strings.HasSuffix(letters, "profileid")
	})
}

// address matches the beginning of an address. Browsers' rules ignore white space in it.
var address = lazyregexp.New(`^(?:(?:[a-z][a-z0-9+.-]*:)+[/\\]{2}|(?:https?|ftp|file|gs|s3):)`)

var lineEnds = strings.NewReplacer("\t", "", "\r", "", "\n", "")

const maxScheme = 256 // bytes of a text in which an address begins

func isAddress(s string) bool {
	s = strings.TrimLeftFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) })
	return address.MatchString(strings.ToLower(lineEnds.Replace(s[:min(len(s), maxScheme)])))
}

func isDataURL(s string) bool { return len(s) >= 5 && strings.EqualFold(s[:5], "data:") }

// runsAtProvider reports whether an item of a type is a call that the provider runs.
func runsAtProvider(kind string) bool {
	return strings.HasSuffix(kind, "_call") && !slices.Contains(clientCalls, kind) || strings.HasPrefix(kind, "mcp_") || kind == "server_tool_use"
}

// parser reads JSON once, and finds what a request must not have.
type parser struct {
	dialect Dialect // nil if only the form is checked
	// allowNetwork makes the form the only reason for a refusal.
	allowNetwork bool

	data    []byte
	dec     *json.Decoder
	path    []any // names and indexes
	values  int
	tools   int   // levels of tools
	refusal error // the first
}

func newParser(d Dialect, data []byte) *parser {
	p := &parser{dialect: d, data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	p.dec.UseNumber()
	return p
}

func (p *parser) refuse(err error) {
	if p.refusal != nil || p.allowNetwork && !errors.Is(err, errCase) && !errors.Is(err, errLong) {
		return
	}
	at := ""
	for _, part := range p.path {
		switch part := part.(type) {
		case int:
			at += "[" + strconv.Itoa(part) + "]"
		case string:
			at += "." + clip(part)
		}
	}
	const maxPath = 300
	if at = strings.TrimPrefix(at, "."); at != "" {
		err = fmt.Errorf("%s: %w", at[:min(len(at), maxPath)], err)
	}
	p.refusal = err
}

// object reads the fields of an object. read gets each name, and reads the value.
func (p *parser) object(in zone, read func(name string) error) error {
	seen := map[string]string{}
	for p.dec.More() {
		t, err := p.dec.Token()
		if err != nil {
			return err
		}
		name, _ := t.(string) // the decoder accepts nothing else
		key := name
		if in == inContent || in == inFile {
			key = fold(name)
		}
		switch other, found := seen[key]; {
		case found && other == name:
			return fmt.Errorf("an object has the key %s twice", clip(name))
		case found:
			p.refuse(fmt.Errorf("%w: %s and %s", errCase, clip(other), clip(name)))
		}
		seen[key] = name
		p.path = append(p.path, name)
		if err := read(name); err != nil {
			return err
		}
		p.path = p.path[:len(p.path)-1]
	}
	return p.end()
}

// end reads the end of an object or a list.
func (p *parser) end() error {
	_, err := p.dec.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// raw reads a value and returns its bytes.
func (p *parser) raw(name string, in zone) (json.RawMessage, error) {
	start := p.dec.InputOffset()
	_, err := p.value(name, in)
	return bytes.TrimLeft(p.data[start:p.dec.InputOffset()], " \t\r\n,:"), err
}

// value reads a value of the field name. It returns that of a string.
func (p *parser) value(name string, in zone) (text string, err error) {
	if p.values++; p.values > maxValues {
		return "", fmt.Errorf("more than %d values", maxValues)
	}
	if len(p.path) > maxDepth {
		return "", fmt.Errorf("more than %d levels", maxDepth)
	}
	t, err := p.dec.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	switch {
	case err != nil:
		return "", err
	case t == json.Delim('['):
		return "", p.list(name, in)
	case t == json.Delim('{'):
		if in == inContent && fold(name) == "tools" { // it is not a list, which tool checks
			p.refuse(errServerTool)
		}
		return "", p.members(in)
	}
	text, _ = t.(string) // others have no address
	p.checkText(name, text, in)
	return text, nil
}

// list reads the elements of a list, which are values of the field name.
func (p *parser) list(name string, in zone) error {
	for i := 0; p.dec.More(); i++ {
		if i == maxList && in != inData {
			p.refuse(errLong)
		}
		p.path = append(p.path, i)
		var err error
		if in == inContent && fold(name) == "tools" {
			err = p.tool()
		} else {
			_, err = p.value(name, in)
		}
		if err != nil {
			return err
		}
		p.path = p.path[:len(p.path)-1]
	}
	return p.end()
}

// tool reads a tool. Those that run at the provider are refused, except in the request's
// own list, of which RemoveServerTools removes them.
func (p *parser) tool() error {
	if p.tools++; p.tools > maxTools {
		return fmt.Errorf("more than %d levels of tools", maxTools)
	}
	defer func() { p.tools-- }()
	before := p.refusal
	p.refusal = nil
	value, err := p.raw("", inContent)
	if err != nil {
		return err
	}
	own := len(p.path) == len([]string{"tools", "index"})
	switch kept, unchanged := p.dialect.keepTool(value); {
	case own && kept == nil:
		p.refusal = nil
	case own && !unchanged:
		rest := newParser(p.dialect, kept)
		rest.path, rest.allowNetwork = slices.Clone(p.path), p.allowNetwork
		_, err = rest.value("", inContent)
		p.refusal = rest.refusal
	case !unchanged:
		p.refusal = nil
		p.refuse(errServerTool)
	}
	if before != nil {
		p.refusal = before
	}
	return err
}

// members reads the fields of an object below the request's own.
func (p *parser) members(in zone) error {
	holder, _ := p.path[len(p.path)-1].(string) // the field that has the object
	kind, exactKind, isItem := "", "", len(p.path) == 2 && p.path[0] == "input"
	doubts := map[string]error{} // refusals in fields that may be data
	err := p.object(in, func(name string) error {
		before := p.refusal
		if dataIn[name] != nil {
			p.refusal = nil
		}
		text, err := p.value(name, zoneOf(name, in))
		if dataIn[name] != nil {
			doubts[name], p.refusal = p.refusal, before
		}
		switch fold(name) {
		case "type":
			kind = text
			if name == "type" {
				exactKind = text
			}
			fallthrough
		case "role":
			isItem = isItem && text == ""
		}
		return err
	})
	if err != nil || in == inSchema || in == inData {
		return err
	}
	for name, refusal := range doubts {
		if p.refusal == nil && !slices.Contains(dataIn[name], exactKind) && !slices.Contains(dataIn[name], holder) {
			p.refusal = refusal
		}
	}
	switch {
	case kind == "item_reference" || isItem:
		p.refuse(errReference)
	case runsAtProvider(kind):
		p.refuse(errServerTool)
	}
	return nil
}

// checkText refuses a text that the provider reads as an address.
func (p *parser) checkText(name, text string, in zone) {
	refused := false
	switch {
	case in == inData || text == "":
	case in == inSchema:
		refused = strings.HasSuffix(fold(name), "ref") && strings.HasPrefix(name, "$") && !strings.HasPrefix(text, "#")
	case isFileField(name):
		refused = !isDataURL(text)
	case in == inContent && slices.Contains(textFields, name):
	default:
		refused = isAddress(text)
	}
	if refused {
		p.refuse(errAddress)
	}
}

// fold returns a key without the case of its letters.
func fold(key string) string { return strings.ToLower(strings.ToUpper(key)) }

// clip returns the beginning of a name of the agent.
func clip(name string) string { return strings.ToValidUTF8(name[:min(len(name), maxName)], "") }
