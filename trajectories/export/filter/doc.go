// Package filter selects and prepares attempts for training data. It drops attempts that
// do not meet conditions, near-duplicates, and instances of well-known test sets. It
// removes secrets, assigns splits, and reports statistics. Package export writes the rows.
//
// Inspect examines one attempt and can be called concurrently. Add compares it with
// earlier attempts; the order of the calls determines which of two duplicates is kept:
//
//	f, err := filter.New(filter.Config{Verdicts: []string{"resolved"}, Dedupe: 0.9})
//	for item := range items { // attempts on an instance are adjacent
//		inspection := f.Inspect(item)            // removes secrets, counts tokens
//		for _, kept := range f.Add(inspection) { // none, this one, or also earlier ones
//			f.AddRows(kept, f.SplitOf(kept), rows)
//		}
//	}
//	f.Finish()                            // drops attempts on instances with too few of them
//	if err := f.Err(); err != nil { ... } // nothing must be exported
//	report := f.Report()
//
// # Order of the filters
//
// The report has the first reason to drop an attempt. The filters are applied in this
// order: repository, verdict, flags, model, outcome class, steps, format errors, tokens,
// test set, secrets, too many attempts on the instance, duplicate, too few attempts on
// the instance.
package filter
