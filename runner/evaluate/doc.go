// Package evaluate runs the tests of patches. It copies a patch and the
// evaluation script of its instance into a fresh sandbox, applies the patch and
// runs the script as the official SWE-bench harness does (release 5.0.2), and
// grades the log with package grade. It writes the same files as the harness, and
// a verdict record. It works with any implementation of Sandboxes.
//
//	e, err := evaluate.Start(ctx, evaluate.Config{Folder: folder, Log: log, Sandboxes: s, RunID: "first"})
//	for _, p := range predictions {
//		err := e.Submit(evaluate.NewTask(in, model, patch)) // safe for concurrent use
//	}
//	sum, err := e.Wait()
//
// # Classes
//
// Every evaluation ends in one class. The first matching line decides:
//
//	what happened                                        class           files in the official tree
//	the patch is null, or empty                          empty           none
//	the sandbox does not start (image, engine, disk)     infrastructure  run_instance.log
//	the sandbox is lost: killed from inside or outside,
//	  out of memory, or its engine has stopped           infrastructure  those written so far
//	a command failed because the engine's disk is full   infrastructure  those written so far
//	the log cannot be written on this machine            infrastructure  those written so far
//	git or /testbed is missing in the image              infrastructure  patch.diff, run_instance.log
//	no command can apply the patch                       apply_failed    patch.diff, run_instance.log
//	the script takes longer than the timeout             timed_out       all but report.json
//	the parser crashes on the log                        error           all but report.json
//	the verdict is "resolved"                            resolved        all
//	the kernel killed processes: out of memory           infrastructure  all; report.json has the graded log
//	otherwise                                            unresolved      all
//
// A lost sandbox is always infrastructure, because a script that ends its own
// container cannot be distinguished from a failing machine. The evaluator repeats
// such a run, up to Config.MaxRuns runs in total; a run that the cluster disrupted
// does not count, up to Config.MaxDisruptions. If a file system inside the
// sandbox is full (a tmpfs), it grades the log as usual.
//
// An infrastructure problem that a log only mentions does not change the class,
// because a patch can print any text. It is in TestRun.FailureReason, as in the
// official summary.
//
// An infrastructure failure is not a verdict. It is never cached, and a restarted
// evaluation runs the patch again. If several runs of the same patch have
// different classes, the verdict is unstable (see Config.RerunFailed).
//
// # Files
//
// Below the folder of the run:
//
//	logs/run_evaluation/<run id>/<model>/<instance>/  the official log tree (see grade.Layout)
//	verdicts/<run id>/<model>/<instance>.json         a verdicts.Record: the verdict, its inputs and every run
//	verdicts/<run id>/<model>/<instance>/<n>/         files of reruns and runs without flagged files
//	verdicts/<run id>.json                            the Summary
//	<model>.<run id>.json                             the official summary
package evaluate
