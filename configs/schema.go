package configs

import (
	"reflect"
	"strings"
)

// Sections returns the top-level keys, in the order of Config.
func Sections() []string {
	var names []string
	for name := range settings(reflect.TypeFor[Config]()) {
		names = append(names, name)
	}
	return names
}

// Keys returns the dotted names of all settings, in the order of Config. Mappings such
// as environment.env and model.model_kwargs have arbitrary keys below them.
func Keys() []string {
	var keys []string
	walkKeys(reflect.TypeFor[Config](), "", func(key string, _ reflect.Type) { keys = append(keys, key) })
	return keys
}

func walkKeys(t reflect.Type, path string, visit func(key string, t reflect.Type)) {
	for name, field := range settings(t) {
		if field.Kind() == reflect.Struct {
			walkKeys(field, path+name+".", visit)
			continue
		}
		visit(path+name, field)
	}
}

// settings ranges over the yaml names and the types of a struct's fields.
func settings(t reflect.Type) func(yield func(string, reflect.Type) bool) {
	return func(yield func(string, reflect.Type) bool) {
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
			if name != "" && name != "-" && !yield(name, t.Field(i).Type) {
				return
			}
		}
	}
}

// fieldsOf maps the yaml names of a struct's fields to the types of the fields.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for name, field := range settings(t) {
		fields[name] = field
	}
	return fields
}

// KeysUnder returns the keys selected by a prefix: a section, a setting, or a key of a
// mapping. The error for an unknown prefix suggests a similar one.
func KeysUnder(prefix string) ([]string, error) {
	var under []string
	for _, key := range Keys() {
		if key == prefix || strings.HasPrefix(key, prefix+".") || isMapping(key) && strings.HasPrefix(prefix, key+".") {
			under = append(under, key)
		}
	}
	if under != nil {
		return under, nil
	}
	parent, fields := "", fieldsOf(reflect.TypeFor[Config]())
	for part := range strings.SplitSeq(prefix, ".") { // up to the part that is unknown
		section := strings.TrimPrefix(parent+"."+part, ".")
		switch t, ok := fields[part]; {
		case !ok:
			return nil, &configError{"unknown key " + clipKey(prefix) + suggest(part, parent, fields)}
		case t.Kind() != reflect.Struct:
			return nil, &configError{"unknown key " + clipKey(prefix) + "; " + section + " is not a section"}
		default:
			parent, fields = section, fieldsOf(t)
		}
	}
	return nil, &configError{"unknown key " + clipKey(prefix)}
}

// isText reports whether the values of a setting, or of a key of a mapping, are strings.
func isText(key string) bool {
	t := typeOf(key)
	if end := strings.LastIndexByte(key, '.'); t == nil && end > 0 && isMapping(key[:end]) {
		t = typeOf(key[:end]).Elem()
	}
	return t != nil && t.Kind() == reflect.String
}

// isMapping reports whether a setting is a mapping with arbitrary keys.
func isMapping(key string) bool {
	t := typeOf(key)
	return t != nil && t.Kind() == reflect.Map
}

// typeOf returns the type of a setting; nil if it does not exist.
func typeOf(key string) (found reflect.Type) {
	walkKeys(reflect.TypeFor[Config](), "", func(name string, t reflect.Type) {
		if name == key {
			found = t
		}
	})
	return found
}
