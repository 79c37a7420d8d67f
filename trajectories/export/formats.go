package export

import "slices"

// format describes an export format.
type format struct {
	name string
	// rows returns the rows of an attempt, or of all attempts on an instance for DPO.
	// It is nil for formats with other files.
	rows func(*writer, []*Item) ([]object, error)
	// messageLists are the message lists at the start of a row. extraColumns are the columns of a
	// parquet file in addition to those of all formats.
	messageLists []string
	extraColumns []column
	// canMask is set if the format can exclude replies from training.
	canMask bool
	// needsVerdict is set for formats with prompts and completions that need verdicts.
	needsVerdict bool
	// toolArguments is the default for tool arguments. If it is ArgumentsText, it cannot
	// be changed.
	toolArguments ToolArguments
}

func formats() []format {
	prompt := []string{"prompt", "completion"}
	pair := []string{"prompt", "chosen", "rejected"}
	step, label := column{name: "step", kind: intKind}, column{name: "label", kind: boolKind}
	return []format{
		{name: OpenAI, rows: (*writer).chat, messageLists: []string{"messages"}, toolArguments: ArgumentsObject},
		{name: ShareGPT, rows: (*writer).sharegpt, toolArguments: ArgumentsObject},
		{name: Axolotl, rows: (*writer).chat, messageLists: []string{"messages"}, canMask: true, toolArguments: ArgumentsText},
		{name: PromptCompletion, rows: (*writer).steps, messageLists: prompt, extraColumns: []column{step}, canMask: true, toolArguments: ArgumentsObject},
		{name: KTO, rows: (*writer).steps, messageLists: prompt, extraColumns: []column{step, label}, canMask: true, needsVerdict: true, toolArguments: ArgumentsObject},
		{name: DPO, rows: (*writer).pairs, messageLists: pair, canMask: true, needsVerdict: true, toolArguments: ArgumentsObject},
		{name: ATIF, toolArguments: ArgumentsObject},
		{name: Traj, toolArguments: ArgumentsObject},
		{name: Preds, toolArguments: ArgumentsObject},
	}
}

func formatByName(name string) (format, bool) {
	list := formats()
	i := slices.IndexFunc(list, func(f format) bool { return f.name == name })
	if i < 0 {
		return format{}, false
	}
	return list[i], true
}

// metadataField is a field that describes the attempt of a row. All formats have the
// same.
type metadataField struct {
	column
	// shared is set if both attempts of a pair have the same value, or only the first
	// is written.
	shared bool
	value  func(*Item) any
}

func metadataFields() []metadataField {
	return []metadataField{
		{column{name: "instance_id"}, true, func(it *Item) any { return it.InstanceID }},
		{column{name: "attempt", kind: intKind}, false, func(it *Item) any { return int64(it.Attempt) }},
		{column{name: "sample", kind: intKind}, true, func(it *Item) any { return int64(it.Repetition) }},
		{column{name: "model"}, false, func(it *Item) any { return it.Header.ModelName }},
		{column{name: "verdict"}, false, func(it *Item) any { return orNull(it.Verdict) }},
		{column{name: "steps", kind: intKind}, false, func(it *Item) any { return int64(it.Steps()) }},
		{column{name: "tokens", kind: intKind}, false, func(it *Item) any { return orNull(it.Tokens) }},
		{column{name: "autosubmitted", kind: boolKind}, false, func(it *Item) any { return it.autosubmitted() }},
		{column{name: "journal_sha256"}, false, func(it *Item) any { return it.SHA256 }},
	}
}

// orNull returns nil for the zero value, which means unknown.
func orNull[T comparable](v T) any {
	var unknown T
	if v == unknown {
		return nil
	}
	return v
}

// rejectedPrefix is the prefix of metadata about the second attempt of a pair.
const rejectedPrefix = "rejected_"

func metadata(it *Item, prefix string) object {
	var o object
	for _, f := range metadataFields() {
		if !f.shared || prefix == "" {
			o = append(o, member{prefix + f.name, f.value(it)})
		}
	}
	return o
}

func metadataColumns(prefix string) []column {
	var columns []column
	for _, f := range metadataFields() {
		if !f.shared || prefix == "" {
			columns = append(columns, column{name: prefix + f.name, kind: f.kind})
		}
	}
	return columns
}

// columns returns the columns of a parquet file, given those for the tools and for
// the arguments of a call.
func (f format) columns(tools, args column) []column {
	var columns []column
	if f.name == ShareGPT {
		columns = append(textColumns("system", "tools"), metadataColumns("")...)
		return append([]column{listColumn("conversations", groupColumn("", textColumns("from", "value")...))}, columns...)
	}
	for _, name := range f.messageLists {
		function := groupColumn("function", column{name: "name"}, args)
		fields := textColumns("role", "content", "reasoning_content")
		fields = append(fields, listColumn("tool_calls", groupColumn("", column{name: "id"}, column{name: "type"}, function)))
		fields = append(fields, textColumns("tool_call_id", "name")...)
		if f.name == Axolotl {
			fields = append(fields, column{name: "train", kind: boolKind})
		}
		columns = append(columns, listColumn(name, groupColumn("", fields...)))
	}
	columns = append(append(columns, tools), metadataColumns("")...)
	if f.name == DPO {
		columns = append(columns, metadataColumns(rejectedPrefix)...)
	}
	return append(columns, f.extraColumns...)
}
