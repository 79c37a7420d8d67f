// Package sieve decides which attempts become training data: it filters, drops
// near-duplicates, keeps the instances of well-known test sets out, takes
// secrets out, splits what is left, and reports all of it. It writes no rows;
// that is the work of package export.
//
// An attempt is looked at once, alone, which may be done for many side by side;
// then it takes its place among the others, in an order that decides which of
// two duplicates stays:
//
//	s, err := sieve.New(sieve.Config{Training: true, Verdicts: []string{"resolved"}, Dedupe: 0.9})
//	for _, it := range planned { // not read yet
//		s.Foresee(it)
//	}
//	if err := s.Refusal(); err != nil { ... } // before the work
//	if s.Rehearses() {                        // attempts an instance has to have
//		err = s.Rehearse(items)
//	}
//	// in every reader:
//	s.Prepare(it)                    // takes secrets out of it, counts its tokens
//	it.Records = s.Records(it.Records)
//	// in one place, in order:
//	reason, err := s.Keep(it)
//	split := s.Split(it)
//	s.Wrote(split, rows)
//	// before the output is where it belongs:
//	if err := s.Refusal(); err != nil { ... }
//	report := s.Report()             // WriteText, WriteSVG; its JSON is its form on disk
//
// Keep and Split are what export.Run wants of a Filter and of a Splitter.
//
// # What is dropped, and in which order
//
// The first reason counts: those of the run (repository, model), of the ending
// (verdict, outcome class, flags), of the conversation (steps, format errors,
// tokens), a test set, secrets where they mean dropping, too few of the
// instance, too many of it, a duplicate.
package sieve
