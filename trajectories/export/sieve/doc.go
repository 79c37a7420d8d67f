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
//	for _, it := range glances {      // optional: items that lack their Transcript,
//		s.Foresee(it)             // so that a refusal comes before the work
//	}
//	if err := s.Refusal(); err != nil { ... }
//	for it := range items {           // an instance's attempts in a row
//		look := s.Look(it)        // safe for concurrent use; takes secrets out of it, counts its tokens
//		for _, kept := range s.Take(look) { // in order; none, this one, or several that waited
//			write(kept, s.SplitOf(kept))
//			s.Wrote(kept, s.SplitOf(kept), rows)
//		}
//	}
//	s.End()                           // what still waits is dropped, and counted
//	if err := s.Refusal(); err != nil { ... } // and the output is thrown away
//	report := s.Report()              // WriteText, WriteSVG; its JSON is its form on disk
//
// Sift is all of the loop in one call, for who works with one goroutine.
//
// # What is dropped, and in which order
//
// The first reason counts: those of the run (repository, model), of the ending
// (verdict, outcome class, flags), of the conversation (steps, format errors,
// tokens), secrets where they mean dropping, a test set, a duplicate, too many
// of an instance, too few of an instance.
package sieve
