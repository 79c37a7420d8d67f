package configs

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// checkValues checks the values of a struct against the tags of its fields, and those of the structs in
// it, except the section model. The tag check has words:
//
//	min=N max=N           the smallest and the largest number
//	range=A-B             both, in one message
//	positive              a number above 0
//	seconds               a positive number of seconds, at most maxSeconds
//	zero                  0 is also valid
//	size, disksize        a size for ParseSize or ParseDiskSize
//	oneof=A|B             a word; an empty item allows none
//
// The tag hint is added to messages about numbers. The tag only has the classes of models that have the
// setting.
func (r *Resolved) checkValues(v reflect.Value, path string) (errs []error) {
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if name == "" || name == "-" || field.Type == reflect.TypeFor[Model]() {
			continue
		}
		if value.Kind() == reflect.Pointer && !value.IsNil() {
			value = value.Elem()
		}
		key, kind := path+name, value.Kind()
		switch {
		case kind == reflect.Struct:
			errs = append(errs, r.checkValues(value, key+".")...)
		case kind == reflect.Slice && value.Type().Elem().Kind() == reflect.Struct:
			for i := range value.Len() {
				errs = append(errs, r.checkValues(value.Index(i), fmt.Sprintf("%s[%d].", key, i))...)
			}
		default:
			errs = append(errs, r.checkValue(value, key, field.Tag)...)
		}
	}
	return errs
}

// IsSet reports whether the value of a setting is neither zero nor an empty list or mapping.
func IsSet(value reflect.Value) bool {
	if kind := value.Kind(); kind == reflect.Map || kind == reflect.Slice {
		return value.Len() > 0
	}
	return !value.IsZero()
}

// checkValue returns an error if a value does not comply with the tags of its field.
func (r *Resolved) checkValue(value reflect.Value, key string, tag reflect.StructTag) []error {
	if only := tag.Get("only"); only != "" && IsSet(value) && !slices.Contains(strings.Split(only, "|"), r.Model.Class) {
		return []error{r.errorf(key, "only model_class: %s has it; leave it out", strings.ReplaceAll(only, "|", " or "))}
	}
	rules := tag.Get("check")
	hint := tag.Get("hint")
	if hint != "" {
		hint = "; " + hint
	}
	refuse := func(format string, args ...any) []error {
		return []error{r.errorf(key, "%v "+format+hint, append([]any{value.Interface()}, args...)...)}
	}
	var n float64
	switch {
	case value.CanInt():
		n = float64(value.Int())
	case value.CanFloat():
		n = value.Float()
	}
	if n == 0 && strings.HasSuffix(rules, " zero") {
		return nil
	}
	for rule := range strings.FieldsSeq(rules) {
		name, arg, _ := strings.Cut(rule, "=")
		limit, _ := strconv.ParseFloat(arg, 64)
		switch name {
		case "min":
			if n < limit && limit == 0 {
				return refuse("is negative")
			} else if n < limit {
				return refuse("is less than %s", arg)
			}
		case "max":
			if n > limit {
				return refuse("is more than %s", arg)
			}
		case "range":
			from, to, _ := strings.Cut(arg, "-")
			low, _ := strconv.ParseFloat(from, 64)
			if high, _ := strconv.ParseFloat(to, 64); n < low || n > high {
				return refuse("is not a number from %s to %s", from, to)
			}
		case "positive":
			if n <= 0 {
				return refuse("is not a positive number")
			}
		case "seconds":
			if n < 0 || n > maxSeconds || n == 0 {
				return refuse("is not a number of seconds between 0 and %d", int(maxSeconds))
			}
		case "size":
			if _, err := ParseSize(value.String()); err != nil {
				return []error{r.errorf(key, `%.60q is not a size; write "4g" or "512m"`, value.String())}
			}
		case "disksize":
			if _, err := ParseDiskSize(value.String()); err != nil {
				return []error{r.errorf(key, `%.60q is not a size; write "80GB"`, value.String())}
			}
		case "oneof":
			words := strings.Split(arg, "|")
			if !slices.Contains(words, value.String()) {
				return r.oneOf(key, value.String(), slices.DeleteFunc(words, func(w string) bool { return w == "" }), "")
			}
		}
	}
	return nil
}
