package export

import "slices"

// form is what mini knows of a format.
type form struct {
	name string
	// write makes the rows of an attempt, or of all attempts of an instance
	// where rows are pairs; nil for formats with files of their own.
	write func(*writer, []*Item) error
	// columns are those of its rows in a parquet file.
	columns func(tools []column, o Options) []column
	// masks says that a row tells what is learned.
	masks bool
	// paired formats have a prompt and what follows it, and care for verdicts.
	paired bool
	// arguments is how those of calls are written unless otherwise said; text
	// where there is no choice.
	arguments Arguments
}

var forms = []form{
	{name: OpenAI, write: (*writer).chat, columns: chatColumns, arguments: Object},
	{name: ShareGPT, write: (*writer).sharegpt, columns: sharegptColumns, arguments: Object},
	{name: Axolotl, write: (*writer).chat, columns: chatColumns, masks: true, arguments: Text},
	{name: PromptCompletion, write: (*writer).steps, columns: stepColumns, masks: true, arguments: Object},
	{name: KTO, write: (*writer).labelled, columns: labelledColumns, masks: true, paired: true, arguments: Object},
	{name: DPO, write: (*writer).pairs, columns: pairColumns, masks: true, paired: true, arguments: Object},
	{name: ATIF, arguments: Object},
	{name: Traj, arguments: Object},
	{name: Preds, arguments: Object},
}

func formOf(name string) (form, bool) {
	i := slices.IndexFunc(forms, func(f form) bool { return f.name == name })
	if i < 0 {
		return form{}, false
	}
	return forms[i], true
}
