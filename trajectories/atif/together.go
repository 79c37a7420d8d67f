package atif

// together holds the parts of a trajectory against each other.
func (r *reader) together(t *Trajectory, at *place) {
	for i, s := range t.Steps {
		here := at.in("steps").at(i)
		if s.ID != int64(i+1) {
			r.wrong(here.in("step_id"), "%d is needed, steps count from 1 on; got %d", i+1, s.ID)
		}
		r.calls(s, here)
	}
	embedded := map[string]bool{}
	for i, sub := range t.Subagents {
		here := at.in("subagent_trajectories").at(i).in("trajectory_id")
		switch {
		case sub.TrajectoryID == nil:
			r.wrong(here, "an embedded trajectory needs one")
		case embedded[*sub.TrajectoryID]:
			r.wrong(here, "%.60q is there twice", *sub.TrajectoryID)
		default:
			embedded[*sub.TrajectoryID] = true
		}
	}
	if r.resolve {
		r.refs(t, at, embedded)
	}
}

// calls looks at the ids of a step's tool calls, and of what answers them.
func (r *reader) calls(s Step, at *place) {
	ids := make(map[string]bool, len(s.Calls))
	for i, c := range s.Calls {
		if r.unique && ids[c.ID] {
			r.wrong(at.in("tool_calls").at(i).in("tool_call_id"), "%.60q is there twice in this step", c.ID)
		}
		ids[c.ID] = true
	}
	for i, res := range s.results() {
		if res.CallID != nil && !ids[*res.CallID] {
			r.wrong(at.in("observation").in("results").at(i).in("source_call_id"),
				"%.60q is no tool_call_id of this step", *res.CallID)
		}
	}
}

func (s Step) results() []Result {
	if s.Observation == nil {
		return nil
	}
	return s.Observation.Results
}

func (r *reader) refs(t *Trajectory, at *place, embedded map[string]bool) {
	for i, s := range t.Steps {
		for j, res := range s.results() {
			for k, f := range res.Refs {
				if f.Path == nil && f.TrajectoryID != nil && !embedded[*f.TrajectoryID] {
					r.wrong(at.in("steps").at(i).in("observation").in("results").at(j).in("subagent_trajectory_ref").at(k).in("trajectory_id"),
						"%.60q is no embedded trajectory, and there is no trajectory_path", *f.TrajectoryID)
				}
			}
		}
	}
}
