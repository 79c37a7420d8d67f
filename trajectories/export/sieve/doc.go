// Package sieve decides which attempts become training data: it filters, drops
// near-duplicates, keeps the instances of well-known test sets out, takes
// secrets out, splits what is left, and reports all of it. It writes no rows;
// that is the work of package export.
//
// An attempt is looked at once, alone, which may be done for many side by side;
// then it takes its place among the others, in an order that decides which of
// two duplicates stays:
//
//	s, err := sieve.New(sieve.Config{Verdicts: []string{"resolved"}, Dedupe: 0.9})
//	for it := range items { // an instance's attempts in a row
//		l := s.Look(it)                  // safe for concurrent use; takes secrets out of it, counts its tokens
//		for _, kept := range s.Take(l) { // in order: none, this one, or several that waited
//			s.Wrote(kept, s.SplitOf(kept), rows)
//		}
//	}
//	s.End()                                   // what still waits is dropped, and counted
//	if err := s.Refusal(); err != nil { ... } // and the output is thrown away
//	report := s.Report()                      // WriteText; its JSON is its form on disk
//
// # What is dropped, and in which order
//
// The first reason counts: those of the run (repository, model), of the ending
// (verdict, outcome class, flags), of the conversation (steps, format errors,
// tokens), a test set, secrets where they mean dropping, too many of the
// instance, a duplicate, too few of the instance.
package sieve
