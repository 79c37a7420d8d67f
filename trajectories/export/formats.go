package export

import "slices"

// format describes an export format.
type format struct {
	name string
	// rows returns the rows of an attempt, or for DPO of all attempts on an instance.
	// It is nil for formats without rows.
	rows func(*writer, []*Item) ([]object, error)
	// messageLists are the names of the message lists at the start of a row.
	messageLists []string
	// extraColumns are the columns of a parquet file that other formats do not have.
	extraColumns []column
	// canMask is set if the format can exclude replies from training.
	canMask bool
	// needsVerdict is set if rows depend on verdicts.
	needsVerdict bool
	// toolArguments is the default of Options.ToolArguments. If it is ArgumentsText, it
	// is the only valid value.
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
		{name: Table, toolArguments: ArgumentsObject},
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

// metadataField is a field of a row with data about the attempt of the row. All formats
// with rows have the same metadata fields.
type metadataField struct {
	column
	// shared is set if a row for a pair has the field only once, for the first attempt.
	shared bool
	value  func(*Item) any
}

func metadataFields() []metadataField {
	return []metadataField{
		{column{name: "instance_id"}, true, func(item *Item) any { return item.InstanceID }},
		{column{name: "attempt", kind: intKind}, false, func(item *Item) any { return int64(item.Number) }},
		{column{name: "sample", kind: intKind}, true, func(item *Item) any { return int64(item.Repetition) }},
		{column{name: "model"}, false, func(item *Item) any { return item.Header.ModelName }},
		{column{name: "verdict"}, false, func(item *Item) any { return orNull(item.Verdict) }},
		{column{name: "reward", kind: floatKind}, false, func(item *Item) any { return item.rewardOrNull() }},
		{column{name: "steps", kind: intKind}, false, func(item *Item) any { return int64(item.Steps()) }},
		{column{name: "tokens", kind: intKind}, false, func(item *Item) any { return orNull(item.Tokens) }},
		{column{name: "autosubmitted", kind: boolKind}, false, func(item *Item) any { return item.autosubmitted() }},
		{column{name: "journal_sha256"}, false, func(item *Item) any { return item.SHA256 }},
	}
}

// rewardOrNull returns the reward, or nil if there is none.
func (item *Item) rewardOrNull() any {
	if item.Reward == nil {
		return nil
	}
	return *item.Reward
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

// metadata returns the metadata of an attempt. With a prefix it omits shared fields.
func metadata(item *Item, prefix string) object {
	var o object
	for _, f := range metadataFields() {
		if !f.shared || prefix == "" {
			o = append(o, member{prefix + f.name, f.value(item)})
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

// columns returns the columns of a parquet file. tools and args are the columns for the
// tools and for the arguments of a tool call.
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
