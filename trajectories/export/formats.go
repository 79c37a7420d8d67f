package export

import "slices"

// format is what mini knows of a format.
type format struct {
	name string
	// rows makes the rows of an attempt, or of all attempts on an instance where
	// rows are pairs; nil for formats with files of their own.
	rows func(*writer, []*Item) ([]object, error)
	// lists are the lists of messages that a row begins with, and more are the
	// columns that a parquet file has beside those of all formats.
	lists []string
	more  []column
	// masks says that a row tells what is learned.
	masks bool
	// paired formats have a prompt and what follows it, and care for verdicts.
	paired bool
	// arguments is how those of calls are written unless otherwise said; text
	// where there is no choice.
	arguments Arguments
}

func formats() []format {
	prompt := []string{"prompt", "completion"}
	pair := []string{"prompt", "chosen", "rejected"}
	step, label := column{name: "step", kind: intKind}, column{name: "label", kind: boolKind}
	return []format{
		{name: OpenAI, rows: (*writer).chat, lists: []string{"messages"}, arguments: Object},
		{name: ShareGPT, rows: (*writer).sharegpt, arguments: Object},
		{name: Axolotl, rows: (*writer).chat, lists: []string{"messages"}, masks: true, arguments: Text},
		{name: PromptCompletion, rows: (*writer).steps, lists: prompt, more: []column{step}, masks: true, arguments: Object},
		{name: KTO, rows: (*writer).steps, lists: prompt, more: []column{step, label}, masks: true, paired: true, arguments: Object},
		{name: DPO, rows: (*writer).pairs, lists: pair, masks: true, paired: true, arguments: Object},
		{name: ATIF, arguments: Object},
		{name: Traj, arguments: Object},
		{name: Preds, arguments: Object},
	}
}

func formatOf(name string) (format, bool) {
	all := formats()
	i := slices.IndexFunc(all, func(f format) bool { return f.name == name })
	if i < 0 {
		return format{}, false
	}
	return all[i], true
}

// aboutField says whose row it is: the same members in every format.
type aboutField struct {
	column
	// shared says that both attempts of a pair have the same, or that only the
	// first says it.
	shared bool
	of     func(*Item) any
}

func about() []aboutField {
	return []aboutField{
		{column{name: "instance_id"}, true, func(it *Item) any { return it.InstanceID }},
		{column{name: "attempt", kind: intKind}, false, func(it *Item) any { return int64(it.Attempt) }},
		{column{name: "sample", kind: intKind}, true, func(it *Item) any { return int64(it.Sample) }},
		{column{name: "model"}, false, func(it *Item) any { return it.Header.ModelName }},
		{column{name: "verdict"}, false, func(it *Item) any { return orNull(it.Verdict) }},
		{column{name: "steps", kind: intKind}, false, func(it *Item) any { return int64(it.Steps()) }},
		{column{name: "tokens", kind: intKind}, false, func(it *Item) any { return orNull(it.Tokens) }},
		{column{name: "autosubmitted", kind: boolKind}, false, func(it *Item) any { return it.autosubmitted() }},
		{column{name: "journal_sha256"}, false, func(it *Item) any { return it.SHA256 }},
	}
}

// orNull is nil for what is not known.
func orNull[T comparable](v T) any {
	var unknown T
	if v == unknown {
		return nil
	}
	return v
}

// rejectedPrefix is that of what is said of the second attempt of a pair.
const rejectedPrefix = "rejected_"

func aboutItem(it *Item, prefix string) object {
	var o object
	for _, f := range about() {
		if !f.shared || prefix == "" {
			o = append(o, member{prefix + f.name, f.of(it)})
		}
	}
	return o
}

func aboutColumns(prefix string) []column {
	var all []column
	for _, f := range about() {
		if !f.shared || prefix == "" {
			all = append(all, column{name: prefix + f.name, kind: f.kind})
		}
	}
	return all
}

// columns are those of the rows in a parquet file; those of the tools and of the
// arguments of a call are given.
func (f format) columns(tools, args column) []column {
	var all []column
	if f.name == ShareGPT {
		all = append(texts("system", "tools"), aboutColumns("")...)
		return append([]column{list("conversations", group("", texts("from", "value")...))}, all...)
	}
	for _, name := range f.lists {
		function := group("function", column{name: "name"}, args)
		of := texts("role", "content", "reasoning_content")
		of = append(of, list("tool_calls", group("", column{name: "id"}, column{name: "type"}, function)))
		of = append(of, texts("tool_call_id", "name")...)
		if f.name == Axolotl {
			of = append(of, column{name: "train", kind: boolKind})
		}
		all = append(all, list(name, group("", of...)))
	}
	all = append(append(all, tools), aboutColumns("")...)
	if f.name == DPO {
		all = append(all, aboutColumns(rejectedPrefix)...)
	}
	return append(all, f.more...)
}
