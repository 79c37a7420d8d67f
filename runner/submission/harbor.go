package submission

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/stats"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
	"github.com/minibench/mini/trajectories/formats/atif"
)

// maxVerifierFile bounds a file of the tests that is copied, in bytes.
const maxVerifierFile = 64 << 20

// object is a JSON object.
type object = map[string]any

// harborJob collects the results of the trials of a job folder of Harbor.
type harborJob struct {
	run          *runs.Run
	root         *rootdir.Dir // of the run
	index        verdicts.Index
	dir          string // of the job
	agent, model string
	started      time.Time
	trials       []harborTrial
}

// harborTrial is what the result of a job needs of a trial.
type harborTrial struct {
	task, name, exception string
	rewards               map[string]float64
	usage                 model.Usage
	cost                  model.Cost
}

// WriteHarbor writes the attempts that count as a job folder of Harbor: result.json, and a
// folder for each trial with its result, its trajectory in ATIF and the files of the tests.
// It returns the number of trials. The error wraps ErrExists if the folder exists.
func WriteHarbor(run *runs.Run, dir string) (trials int, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return 0, err
	}
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // results are for sharing
		if errors.Is(err, os.ErrExist) {
			return 0, fmt.Errorf("%s %w", dir, ErrExists)
		}
		return 0, fmt.Errorf("write job folder: %w", err)
	}
	root, err := rootdir.Open(run.Dir)
	if err != nil {
		return 0, fmt.Errorf("write job folder: %w", err)
	}
	defer root.Close() //nolint:errcheck // only read
	set, err := run.Verdicts()
	if err != nil {
		return 0, err
	}
	j := &harborJob{run: run, root: root, index: set.Index(), dir: dir, agent: "mini", model: run.Manifest.Model.Name}
	if j.model == "oracle" || j.model == "nop" {
		j.agent, j.model = j.model, ""
	}
	if len(run.Manifest.Sessions) > 0 {
		j.started = run.Manifest.Sessions[0].Started
	}
	for _, in := range run.Instances {
		for _, r := range in.Repetitions {
			if err := j.writeTrial(in, r); err != nil {
				return 0, fmt.Errorf("write trial of %s: %w", in.ID, err)
			}
		}
	}
	config := object{"job_name": filepath.Base(dir), "jobs_dir": filepath.Dir(dir), "n_attempts": max(1, run.Manifest.Repetitions())}
	return len(j.trials), errors.Join(writeJSON(dir, "config.json", config), writeJSON(dir, "result.json", j.result()))
}

// writeTrial writes the folder of the attempt of a result.
func (j *harborJob) writeTrial(in runs.Instance, r runs.Result) error {
	a := in.Attempt(r.Attempt)
	if a == nil {
		return nil
	}
	transcript, _, err := export.ReadJournal(a.Journal, trajectories.ForTraining&^trajectories.OmitTokens)
	if err != nil {
		return err
	}
	id := uuid(j.started.String(), in.ID, fmt.Sprint(r.Attempt))
	t := harborTrial{task: in.ID, name: fmt.Sprintf("%.32s__%s", in.ID, strings.ReplaceAll(id, "-", "")[:7])}
	dir := filepath.Join(j.dir, t.name)
	t.usage, t.cost = r.Usage, r.KnownCost()
	var class verdicts.Class
	if r.Verdict != nil {
		class = verdicts.Class(*r.Verdict)
	}
	reason := ""
	if v := j.index.Find(in.ID, max(1, r.Repetition), r.PatchBytes, class); v != nil {
		t.rewards, reason = v.Rewards, v.Reason
		if v.Kind == "" && v.Class.IsVerdict() { // rows of other datasets
			t.rewards = map[string]float64{"reward": map[bool]float64{true: 1}[v.Class == verdicts.Resolved]}
		}
	}
	exception, message := exceptionOf(r, class, reason)
	t.exception = exception
	result := object{
		"id": id, "task_name": in.ID, "trial_name": t.name, "trial_uri": "file://" + filepath.ToSlash(dir), "task_id": object{"path": in.ID},
		"source": filepath.Base(j.run.Manifest.Dataset.Name), "task_checksum": uuid(in.ID), "config": object{"trial_name": t.name, "task": object{"path": in.ID}},
		"agent_info": j.agentInfo(), "agent_result": agentResult(r, transcript), "verifier_result": nil, "exception_info": nil,
		"started_at": r.Start, "finished_at": r.End, "environment_setup": nil, "agent_setup": nil,
		"agent_execution": object{"started_at": r.Start, "finished_at": r.End}, "verifier": nil,
	}
	if len(t.rewards) > 0 {
		result["verifier_result"] = object{"rewards": t.rewards}
	}
	if t.exception != "" {
		result["exception_info"] = object{"exception_type": t.exception, "exception_message": message, "exception_traceback": "", "occurred_at": r.End}
		if err := writeFile(dir, "exception.txt", []byte(t.exception+": "+message+"\n")); err != nil {
			return err
		}
	}
	j.trials = append(j.trials, t)
	if err := errors.Join(writeJSON(dir, "result.json", result), writeJSON(dir, "config.json", result["config"])); err != nil {
		return err
	}
	if len(transcript.Entries) > 0 {
		if err := writeTrajectory(filepath.Join(dir, "agent"), transcript, string(class)); err != nil {
			return err
		}
	}
	attempt := filepath.Dir(a.Journal)
	steps, err := j.root.ReadDir(filepath.Join(attempt, "steps"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	err = j.copyVerifier(filepath.Join(attempt, "verifier"), filepath.Join(dir, "verifier"))
	for _, s := range steps {
		path := filepath.Join("steps", s.Name(), "verifier")
		err = errors.Join(err, j.copyVerifier(filepath.Join(attempt, path), filepath.Join(dir, path)))
	}
	return err
}

func (j *harborJob) agentInfo() object {
	info := object{"name": j.agent, "version": j.run.Manifest.MiniVersion, "model_info": nil}
	if j.model != "" {
		info["model_info"] = object{"name": j.model, "provider": j.run.Manifest.Model.Class}
	}
	return info
}

// exceptionOf returns the name and the message of Harbor's exception of a trial; "" if there is none. reason is that of
// the verdict.
func exceptionOf(r runs.Result, class verdicts.Class, reason string) (exception, message string) {
	name, _, _ := strings.Cut(reason, ":")
	switch {
	case class == verdicts.TimedOut:
		return "VerifierTimeoutError", cmp.Or(reason, string(class))
	case class == verdicts.Error && strings.HasSuffix(name, "Error") && !strings.Contains(name, " "):
		return name, reason
	case r.ExitStatus == "TimeExceeded":
		return "AgentTimeoutError", cmp.Or(r.Error, r.ExitStatus)
	case r.ExitStatus == string(model.ContextWindowExceeded):
		return "ContextLengthExceededError", cmp.Or(r.Error, r.ExitStatus)
	case !r.Class.IsResult():
		return cmp.Or(r.ExitStatus, "Error"), cmp.Or(r.Error, r.ExitStatus)
	}
	return "", ""
}

func writeTrajectory(dir string, t *trajectories.Attempt, verdict string) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // results are for sharing
		return err
	}
	f, err := os.Create(filepath.Join(dir, "trajectory.json")) //nolint:gosec // within the new folder
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	_, err = atif.Write(w, t, verdict)
	return errors.Join(err, w.Flush())
}

// copyVerifier copies the files of the tests.
func (j *harborJob) copyVerifier(from, dir string) error {
	entries, err := j.root.ReadDir(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		data, readErr := j.root.ReadFile(filepath.Join(from, e.Name()), maxVerifierFile)
		if readErr == nil {
			readErr = writeFile(dir, e.Name(), data)
		}
		err = errors.Join(err, readErr)
	}
	return err
}

// result returns the result of the job.
func (j *harborJob) result() object {
	rewards, exceptions, counts := map[string]map[string][]string{}, map[string][]string{}, map[string]*stats.Count{}
	sum, binary, errored := 0.0, true, 0
	var total model.Usage
	var cost model.Cost
	for _, t := range j.trials {
		total, cost = total.Add(t.usage), cost+t.cost
		for name, n := range t.rewards {
			if rewards[name] == nil {
				rewards[name] = map[string][]string{}
			}
			value := fmt.Sprint(n)
			rewards[name][value] = append(rewards[name][value], t.name)
		}
		if t.exception != "" {
			errored++
			exceptions[t.exception] = append(exceptions[t.exception], t.name)
		}
		n, _ := verdicts.Reward(t.rewards)
		sum += n
		binary = binary && len(t.rewards) <= 1 && verdicts.IsBinary(t.rewards)
		if counts[t.task] == nil {
			counts[t.task] = &stats.Count{}
		}
		counts[t.task].Attempts++
		if n == 1 {
			counts[t.task].Resolved++
		}
	}
	pass := map[string]float64{}
	if binary && len(counts) > 0 {
		fewest := slices.MinFunc(slices.Collect(maps.Values(counts)), func(a, b *stats.Count) int { return a.Attempts - b.Attempts }).Attempts
		for k := 2; k <= fewest; k++ {
			if k&(k-1) != 0 && k%5 != 0 { // as Harbor: powers of two and multiples of five
				continue
			}
			for _, c := range counts {
				pass[fmt.Sprint(k)] += stats.PassAt(*c, k) / float64(len(counts))
			}
		}
	}
	eval := object{
		"n_trials": len(j.trials), "n_errors": errored, "metrics": []object{{"mean": sum / float64(max(1, len(j.trials)))}},
		"pass_at_k": pass, "reward_stats": rewards, "exception_stats": exceptions,
	}
	key := strings.Join(slices.DeleteFunc([]string{j.agent, j.model, cmp.Or(filepath.Base(j.run.Manifest.Dataset.Name), "adhoc")}, func(s string) bool { return s == "" }), "__")
	totals := usageOf(total, cost.IfKnown(total))
	maps.Copy(totals, object{
		"n_completed_trials": len(j.trials), "n_errored_trials": errored, "n_running_trials": 0, "n_pending_trials": 0,
		"n_cancelled_trials": 0, "n_retries": 0, "evals": object{key: eval},
	})
	return object{
		"id": uuid(j.started.String(), j.dir), "started_at": j.started, "updated_at": time.Now(), "finished_at": time.Now(), "n_total_trials": len(j.trials),
		"stats": totals,
	}
}

// usageOf returns usage and cost without the numbers that are not known. A count of 0 is one that no server reported.
func usageOf(u model.Usage, cost *model.Cost) object {
	known := object{}
	for name, n := range map[string]int64{"n_input_tokens": u.Prompt, "n_cache_tokens": u.CacheRead, "n_output_tokens": u.Completion} {
		if n > 0 {
			known[name] = n
		}
	}
	if cost != nil {
		known["cost_usd"] = *cost
	}
	return known
}

// agentResult returns the usage, the number of turns and the tokens of an attempt.
func agentResult(r runs.Result, a *trajectories.Attempt) object {
	result := usageOf(r.Usage, r.Cost)
	result["metadata"] = object{"n_episodes": a.Replies()}
	if rollouts := rolloutsOf(a); rollouts != nil {
		result["rollout_details"] = rollouts
	}
	return result
}

// rollout has the tokens of a stretch of turns in Harbor's form: each list has a list for each turn.
type rollout struct {
	Prompt     [][]int32   `json:"prompt_token_ids"`
	Completion [][]int32   `json:"completion_token_ids"`
	Logprobs   [][]float64 `json:"logprobs,omitempty"` // nil unless all turns have them
}

// rolloutsOf returns the tokens of an attempt, with a new stretch after each compaction; nil if a turn has none.
func rolloutsOf(a *trajectories.Attempt) []rollout {
	var all []rollout
	compactions := a.Compactions
	for _, e := range a.Entries {
		if e.Cause != trajectories.CauseReply {
			continue
		}
		if e.Call == nil || e.Call.Tokens == nil {
			return nil
		}
		isCompacted := false
		for len(compactions) > 0 && compactions[0].Record < e.Record {
			compactions, isCompacted = compactions[1:], true
		}
		if len(all) == 0 || isCompacted {
			all = append(all, rollout{})
		}
		r, t := &all[len(all)-1], e.Call.Tokens
		r.Prompt, r.Completion = append(r.Prompt, t.Prompt()), append(r.Completion, t.Completion)
		r.Logprobs = append(r.Logprobs, t.Logprobs)
	}
	for i := range all {
		if slices.ContainsFunc(all[i].Logprobs, func(l []float64) bool { return l == nil }) {
			all[i].Logprobs = nil
		}
	}
	return all
}

// uuid returns an id of texts in the form of a UUID, the same for the same texts.
func uuid(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	h := hex.EncodeToString(sum[:16])
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-8" + h[17:20] + "-" + h[20:]
}

func writeJSON(dir, name string, v any) error {
	data, err := text.JSON(v)
	if err != nil {
		return err
	}
	return writeFile(dir, name, data)
}

func writeFile(dir, name string, data []byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // results are for sharing
		return err
	}
	return os.WriteFile(filepath.Join(dir, name), data, 0o644) //nolint:gosec // likewise
}
