// Package kubernetes runs sandboxes as pods of a Kubernetes cluster, in a namespace of
// the user and with rights in that namespace only.
//
// The first process of a pod is the helper (see package helper). An exec of the API
// server starts a relay, which connects mini with the helper; when it breaks, another
// one continues the conversation, and no command notices (see packages link and pod).
//
// Everything that a process creates belongs to a ConfigMap, its owner: the deletion of
// the owner deletes the rest. What a killed mini leaves behind ends by itself, and the
// next start, or Clean, removes it.
//
//	cluster, err := kubernetes.Open(ctx, kubernetes.Settings{Namespace: "bench"})
//	defer cluster.Close()
//	pod, err := cluster.Start(ctx, kubernetes.Config{Image: "mini-base"})
//	defer pod.Close(ctx)
package kubernetes
