// Package evaluate gives verdicts by running: it puts a patch and the
// evaluation script of its instance into a fresh sandbox, runs them there as
// the official SWE-bench harness does (release 5.0.2), has package grade judge
// the log, and writes the files that harness writes, with a record of its own
// beside them. It knows sandboxes by an interface only.
//
//	e, err := evaluate.Begin(ctx, evaluate.Config{Folder: folder, Log: log, Sandboxes: s, RunID: "first"})
//	for _, p := range predictions {
//		err := e.Submit(evaluate.Prediction(in, model, patch)) // at any time, from anywhere
//	}
//	sum, err := e.Wait()
//
// # Classes
//
// Every evaluation ends in one class. What decides is the first line that fits:
//
//	what happened                                        class           files in the official tree
//	the patch is null, or empty                          empty           none
//	the sandbox does not start (image, engine, disk)     infrastructure  run_instance.log
//	the sandbox is lost: killed from within or without,
//	  out of memory as a whole, its engine gone          infrastructure  as far as they came
//	a command failed where the engine's disk is full     infrastructure  as far as they came
//	the log cannot be written on this machine            infrastructure  as far as they came
//	git or /testbed is missing in the image              infrastructure  patch.diff, run_instance.log
//	no way to apply the patch works                      apply_failed    patch.diff, run_instance.log
//	the script takes longer than the timeout             timed_out       all but report.json
//	the parser crashes on the log                        error           all but report.json
//	the verdict is "resolved"                            resolved        all
//	the kernel killed processes for want of memory       infrastructure  all, report.json as the log has it
//	anything else                                        unresolved      all
//
// A sandbox that dies is infrastructure whoever killed it: a script that ends
// its own container cannot be told from a machine that did. It is tried
// MaxTries times, and ends as infrastructure each time. A file system of the
// sandbox's own that is full (a tmpfs) is the script's affair: the log is
// judged like any other.
//
// The words of a log change no class: a patch can print whatever a broken
// machine would. What they say of the machine is in Record.Failure, as in the
// official summary.
//
// Infrastructure is no verdict: it is never kept in the cache, and evaluated
// again when the evaluation is started again. Classes of several runs of the
// same patch that differ make the class unstable (see Config.RerunFailed).
//
// # Files
//
// Below the folder of the run:
//
//	logs/run_evaluation/<run id>/<model>/<instance>/  the official tree (see grade.Layout)
//	verdicts/<run id>/<model>/<instance>.json         a Record: the verdict, what it rests on, and every run
//	verdicts/<run id>/<model>/<instance>/<n>/         the files of further runs: reruns, and runs without suspect hunks
//	verdicts/<run id>.json                            the Summary
//	<model>.<run id>.json                             the official summary
package evaluate
