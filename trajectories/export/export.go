// Package export turns attempts into what trains models: the conversation forms
// of the usual trainers, and the files of other tools.
package export

import "github.com/minibench/mini/trajectories"

// Item is one attempt on its way out.
type Item struct {
	*trajectories.Transcript
	// Run is the folder of the run, Journal the file, SHA256 that of its bytes.
	Run, Journal, SHA256 string
	InstanceID           string
	Attempt              int
	// Sample is which of several attempts that were asked for it is, from 1 on.
	Sample int
	// Repo is "owner/name" as the dataset has it, or what the instance's id says;
	// empty where neither does.
	Repo string
	// Dataset is the set that the run was on, as its manifest names it.
	Dataset string
	// Verdict is the class of the evaluation of this attempt's submission
	// ("resolved", "unresolved", ...); empty before there is one.
	Verdict string
	// Flags are what the evaluation found suspect in the submission.
	Flags []string
	// Tokens is how long the conversation is, by the tokenizer that was asked
	// for, else as the provider counted the last prompt and reply; 0 is unknown.
	Tokens int64

	from Attempt // as Run was given it
}
