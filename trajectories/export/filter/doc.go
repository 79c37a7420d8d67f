// Package filter filters attempts for training data: it applies filters, drops
// near-duplicates and instances of well-known test sets, removes secrets, and assigns
// splits. It reports what it did. Package export writes the rows.
//
// Each attempt is first inspected by itself, which can be done concurrently. Then
// attempts are added in order, which decides which of two duplicates is kept:
//
//	f, err := filter.New(filter.Config{Verdicts: []string{"resolved"}, Dedupe: 0.9})
//	for it := range items { // attempts on an instance are adjacent
//		in := f.Inspect(it)               // safe for concurrent use; removes secrets, counts tokens
//		for _, kept := range f.Add(in) { // none, this one, or also earlier ones
//			f.AddRows(kept, f.SplitOf(kept), rows)
//		}
//	}
//	f.Finish()                            // drops attempts of instances with too few of them
//	if err := f.Err(); err != nil { ... } // nothing must be exported
//	report := f.Report()
//
// # Order of the filters
//
// The first reason for dropping an attempt is reported: run (repository, model),
// outcome (verdict, class, flags), conversation (steps, format errors, tokens), test
// set, secrets, too many attempts of the instance, duplicate, too few attempts of the
// instance.
package filter
