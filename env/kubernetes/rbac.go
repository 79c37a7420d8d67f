//go:build kubernetes

package kubernetes

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Right is the right to use a resource in the namespace. All rights are namespaced: mini
// needs none in the cluster as a whole.
type Right struct {
	Group       string // of the API; "" for the core
	Resource    string
	Subresource string
	Verbs       []string
	Purpose     string
	Optional    bool // mini works without it
}

// Rights lists what this package does, in the order of a Role.
func Rights() []Right {
	return []Right{
		{Resource: "pods", Verbs: []string{"create", "list", "watch", "delete"}, Purpose: "sandboxes"},
		// A connection over WebSocket needs get before Kubernetes 1.35, and create from
		// then on; SPDY needs create.
		{Resource: "pods", Subresource: "exec", Verbs: []string{"create", "get"}, Purpose: "the connection to a sandbox"},
		{Resource: "configmaps", Verbs: []string{"create", "get", "list", "update", "delete"}, Purpose: "the owner of a run's pods, its heartbeat, and the helper"},
		{Group: "networking.k8s.io", Resource: "networkpolicies", Verbs: []string{"create", "get"}, Purpose: "network: none"},
		{Resource: "events", Verbs: []string{"list"}, Purpose: "why a pod does not start", Optional: true},
		{Resource: "resourcequotas", Verbs: []string{"list"}, Purpose: "mini doctor", Optional: true},
		{Resource: "limitranges", Verbs: []string{"list"}, Purpose: "mini doctor", Optional: true},
		{Resource: "namespaces", Verbs: []string{"get"}, Purpose: "mini doctor", Optional: true},
	}
}

// Name is the resource as in a Role, such as "pods/exec".
func (r Right) Name() string {
	if r.Subresource == "" {
		return r.Resource
	}
	return r.Resource + "/" + r.Subresource
}

// RoleName is the name of the Role of WriteRole, and of its RoleBinding.
const RoleName = "mini"

// RoleOptions are the names in the output of WriteRole.
type RoleOptions struct {
	Namespace string
	// Users, Groups and ServiceAccounts get the Role. A service account is NAME, of the
	// namespace, or NAMESPACE:NAME. Without any, the output has a placeholder for a user.
	Users, Groups, ServiceAccounts []string
}

//go:embed rbac.yaml.tmpl
var roleTemplate string

// WriteRole writes a Role with Rights, and a RoleBinding for it, as YAML.
func WriteRole(w io.Writer, o RoleOptions) error {
	subjects, err := o.subjects()
	if err != nil {
		return err
	}
	t, err := template.New("role").Funcs(template.FuncMap{
		"list": func(names []string) string { return "[" + strings.Join(names, ", ") + "]" },
	}).Parse(roleTemplate)
	if err != nil {
		return err
	}
	return t.Execute(w, map[string]any{"Name": RoleName, "Namespace": o.Namespace, "Rights": Rights(), "Subjects": subjects})
}

func (o RoleOptions) subjects() ([]rbacv1.Subject, error) {
	var list []rbacv1.Subject
	for _, name := range o.Users {
		list = append(list, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name})
	}
	for _, name := range o.Groups {
		list = append(list, rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: name})
	}
	for _, name := range o.ServiceAccounts {
		namespace, account, ok := strings.Cut(name, ":")
		if !ok {
			namespace, account = o.Namespace, name
		}
		list = append(list, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account})
	}
	if slices.ContainsFunc(list, func(s rbacv1.Subject) bool { return s.Name == "" }) {
		return nil, fmt.Errorf("write role: the name of a %s is empty", list[0].Kind)
	}
	return list, nil
}
