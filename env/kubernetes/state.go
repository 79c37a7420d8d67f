//go:build kubernetes

package kubernetes

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/minibench/mini/env"
)

// stage is how far the start of a pod has come.
type stage int

const (
	stageScheduling stage = iota // waits for a node
	stageStarting                // has a node; its image is pulled, its containers are created
	stageRunning
)

// startState returns the stage of a starting pod, what it waits for, and an error if it
// will not start.
func startState(pod *corev1.Pod) (stage, string, *env.Error) {
	if pod == nil {
		return stageScheduling, "waiting for a node", nil
	}
	if err := endState(pod); err != nil {
		return stageStarting, "", err
	}
	scheduled := condition(pod, corev1.PodScheduled)
	if scheduled == nil || scheduled.Status != corev1.ConditionTrue {
		reason := "waiting for a node"
		switch {
		case scheduled != nil && scheduled.Reason == corev1.PodReasonSchedulingGated:
			reason = "waiting for the queue"
		case scheduled != nil && scheduled.Message != "":
			reason += ": " + scheduled.Message
		}
		return stageScheduling, reason, nil
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		waiting := status.State.Waiting
		if waiting == nil {
			continue
		}
		switch waiting.Reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull":
			if waiting.Reason == "InvalidImageName" || waiting.Reason == "ErrImageNeverPull" || isMissingImage(waiting.Message) {
				return stageStarting, "", &env.Error{
					Status: env.ImageNotFound, Err: errors.New(shorten(waiting.Message)),
					Hint: "check the name; for a private registry, set environment.kubernetes.image_pull_secrets",
				}
			}
			return stageStarting, "pulling " + status.Image + ": " + waiting.Message, nil
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			return stageStarting, "", &env.Error{Status: env.StartFailed, Err: fmt.Errorf("%s: %s", waiting.Reason, shorten(waiting.Message))}
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == containerName && status.State.Running != nil {
			return stageRunning, "starting the helper", nil
		}
	}
	return stageStarting, "pulling the image or starting the container", nil
}

// isMissingImage reports whether a pull failed because the registry does not have the
// image or refuses it; it would fail again.
func isMissingImage(message string) bool {
	message = strings.ToLower(message)
	return slices.ContainsFunc([]string{
		"not found", "manifest unknown", "does not exist", "unauthorized", "pull access denied", "403 forbidden", "authorization failed",
	}, func(s string) bool { return strings.Contains(message, s) })
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// endState returns why a pod has ended, or will end now; nil if it runs.
func endState(pod *corev1.Pod) *env.Error {
	if d := condition(pod, corev1.DisruptionTarget); d != nil && d.Status == corev1.ConditionTrue && !exceedsOwnLimit(pod) {
		return &env.Error{
			Status: env.SandboxDisrupted, Err: fmt.Errorf("%s: %s", d.Reason, shorten(d.Message)),
			Hint: "the cluster took the pod's place; mini starts another attempt",
		}
	}
	if pod.Status.Reason == "NodeLost" {
		return &env.Error{Status: env.SandboxDisrupted, Err: fmt.Errorf("node %s is lost", pod.Spec.NodeName)}
	}
	if pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded {
		return nil
	}
	died := func(hint, format string, args ...any) *env.Error {
		return &env.Error{Status: env.ContainerDied, Err: fmt.Errorf(format, args...), Hint: hint}
	}
	switch {
	case exceedsOwnLimit(pod):
		return &env.Error{
			Status: env.SandboxLimitExceeded, Err: errors.New(shorten(pod.Status.Message)),
			Hint: "increase environment.kubernetes.ephemeral_storage",
		}
	case pod.Status.Reason == "DeadlineExceeded":
		return died("", "the pod reached its deadline before mini ended the attempt")
	case pod.Status.Reason == "UnexpectedAdmissionError", strings.HasPrefix(pod.Status.Reason, "OutOf"):
		return &env.Error{Status: env.SandboxDisrupted, Err: fmt.Errorf("%s: %s", pod.Status.Reason, shorten(pod.Status.Message))}
	case pod.Status.Reason != "" && pod.Status.Reason != "Evicted":
		return died("", "%s: %s", pod.Status.Reason, shorten(pod.Status.Message))
	case pod.Status.Reason == "Evicted":
		return &env.Error{Status: env.SandboxDisrupted, Err: errors.New(shorten(pod.Status.Message))}
	}
	if pod.DeletionTimestamp != nil {
		return died(hintDeleted, "the pod was deleted")
	}
	for _, status := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		end := status.State.Terminated
		switch {
		case end == nil || end.ExitCode == 0 && status.Name != containerName:
		case end.Reason == "OOMKilled":
			return &env.Error{
				Status: env.SandboxLimitExceeded, Err: errors.New("the container as a whole ran out of memory and was killed"), Hint: hintMemory,
			}
		case end.Message != "":
			return died(startHint(end.Message), "container %s: %s: %s", status.Name, end.Reason, shorten(end.Message))
		default:
			return died("", "container %s ended with exit code %d", status.Name, end.ExitCode)
		}
	}
	return died("", "the pod ended")
}

// hintDeleted is for pods that mini did not delete.
const hintDeleted = "find out which user or controller of the cluster deleted it"

// exceedsOwnLimit reports whether a pod was evicted because it exceeded its own limit,
// and not because the node is short of something.
func exceedsOwnLimit(pod *corev1.Pod) bool {
	return pod.Status.Reason == "Evicted" && strings.Contains(pod.Status.Message, "exceed")
}

// startHint returns a hint for errors of the container runtime.
func startHint(message string) string {
	for _, known := range []struct{ text, hint string }{
		{`exec: "sh"`, "the image has no shell; set environment.kubernetes.helper to image"},
		{"exec format error", "the node has another architecture; set environment.kubernetes.node_selector"},
	} {
		if strings.Contains(message, known.text) {
			return known.hint
		}
	}
	return ""
}
