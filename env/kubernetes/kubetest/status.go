//go:build kubernetes

package kubetest

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// terminal reports whether a pod has ended.
func terminal(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

// setCondition adds or replaces a condition.
func setCondition(pod *v1.Pod, condition v1.PodCondition) {
	condition.LastTransitionTime = now()
	conditions := &pod.Status.Conditions
	i := slices.IndexFunc(*conditions, func(c v1.PodCondition) bool { return c.Type == condition.Type })
	if i < 0 {
		*conditions = append(*conditions, condition)
		return
	}
	if (*conditions)[i].Status == condition.Status {
		condition.LastTransitionTime = (*conditions)[i].LastTransitionTime
	}
	(*conditions)[i] = condition
}

// setReady sets the conditions Ready and ContainersReady.
func setReady(pod *v1.Pod, status v1.ConditionStatus, reason string) {
	for _, t := range []v1.PodConditionType{v1.ContainersReady, v1.PodReady} {
		setCondition(pod, v1.PodCondition{Type: t, Status: status, Reason: reason})
	}
}

// setCreating is the status before the first container starts.
func setCreating(pod *v1.Pod) {
	started := now()
	pod.Status.StartTime = &started
	waiting := v1.ContainerStateWaiting{Reason: "ContainerCreating"}
	if len(pod.Spec.InitContainers) > 0 {
		waiting.Reason = "PodInitializing"
	}
	pod.Status.InitContainerStatuses = waitingStatuses(pod.Spec.InitContainers, waiting)
	pod.Status.ContainerStatuses = waitingStatuses(pod.Spec.Containers, waiting)
	setCondition(pod, v1.PodCondition{Type: v1.PodReadyToStartContainers, Status: v1.ConditionTrue})
	setReady(pod, v1.ConditionFalse, "ContainersNotReady")
}

func waitingStatuses(containers []v1.Container, waiting v1.ContainerStateWaiting) []v1.ContainerStatus {
	var statuses []v1.ContainerStatus
	for _, c := range containers {
		statuses = append(statuses, v1.ContainerStatus{
			Name: c.Name, Image: c.Image, State: v1.ContainerState{Waiting: &waiting},
		})
	}
	return statuses
}

func setWaiting(s *v1.ContainerStatus, reason, message string) {
	s.State = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func setRunning(pod *v1.Pod, id, imageID, ip string) {
	pod.Status.Phase = v1.PodRunning
	pod.Status.HostIP = "10.0.0.1"
	pod.Status.PodIP, pod.Status.PodIPs = ip, []v1.PodIP{{IP: ip}}
	started := true
	s := mainStatus(pod)
	s.State = v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: now()}}
	s.Ready, s.Started, s.ImageID, s.ContainerID = true, &started, imageID, "docker://"+id
	setCondition(pod, v1.PodCondition{Type: v1.PodInitialized, Status: v1.ConditionTrue})
	setReady(pod, v1.ConditionTrue, "")
}

func setInitDone(pod *v1.Pod, i int, end v1.ContainerStateTerminated) {
	s := &pod.Status.InitContainerStatuses[i]
	s.Ready, s.State = true, v1.ContainerState{Terminated: &end}
}

func setInitFailed(pod *v1.Pod, i int, end v1.ContainerStateTerminated) {
	pod.Status.Phase = v1.PodFailed
	pod.Status.InitContainerStatuses[i].State = v1.ContainerState{Terminated: &end}
	setCondition(pod, v1.PodCondition{
		Type: v1.PodInitialized, Status: v1.ConditionFalse, Reason: "ContainersNotInitialized",
		Message: fmt.Sprintf("containers with incomplete status: [%s]", pod.Spec.InitContainers[i].Name),
	})
	setReady(pod, v1.ConditionFalse, "PodFailed")
}

func setTerminated(pod *v1.Pod, end v1.ContainerStateTerminated) {
	reason := "PodFailed"
	pod.Status.Phase = v1.PodFailed
	if end.ExitCode == 0 {
		pod.Status.Phase, reason = v1.PodSucceeded, "PodCompleted"
	}
	started := false
	s := mainStatus(pod)
	s.State = v1.ContainerState{Terminated: &end}
	s.Ready, s.Started = false, &started
	setReady(pod, v1.ConditionFalse, reason)
}
