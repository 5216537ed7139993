package call_test

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
)

// Every string member, one added later too, is bounded and without a secret before it can be
// appended; lists are cut.
//
// Covers: EVT-17
func TestBoundInputRedactsAndBoundsEveryMember(t *testing.T) {
	const body = "q7Zk2Mx9Wd4Rt6Yb1Nc8"
	for _, value := range []string{"ghp_" + body, "Bearer " + body, "bob:" + body + "@db", strings.Repeat("ä", 5000)} {
		var in event.Input
		v := reflect.ValueOf(&in).Elem()
		for i := range v.NumField() {
			switch f := v.Field(i); f.Kind() {
			case reflect.String:
				f.SetString(value)
			case reflect.Slice:
				if f.Type().Elem().Kind() == reflect.Int {
					f.Set(reflect.ValueOf(make([]int, 100)))
					continue
				}
				for range 100 {
					f.Set(reflect.Append(f, reflect.ValueOf(value)))
				}
			}
		}
		out := reflect.ValueOf(call.BoundInput(in))
		for i := range out.NumField() {
			name := out.Type().Field(i).Name
			switch f := out.Field(i); f.Kind() {
			case reflect.String:
				checkStored(t, name, f.String(), body)
			case reflect.Slice:
				if f.Type().Elem().Kind() == reflect.Int { // as many as may be declared, no text
					if f.Len() > 16 {
						t.Errorf("%s keeps %d numbers", name, f.Len())
					}
					continue
				}
				if f.Len() > 8 {
					t.Errorf("%s keeps %d items", name, f.Len())
				}
				for j := range f.Len() {
					checkStored(t, name, f.Index(j).String(), body)
				}
			}
		}
	}
}

func checkStored(t *testing.T, name, stored, secret string) {
	t.Helper()
	if strings.Contains(stored, secret) {
		t.Errorf("%s keeps a secret: %q", name, stored)
	}
	if n := utf8.RuneCountInString(stored); n > 120 {
		t.Errorf("%s keeps %d characters", name, n)
	}
}

// Covers: EVT-25
func TestBoundInputKeepsProjectRelativePathsOnly(t *testing.T) {
	in := event.Input{Cwd: "/etc", Paths: []string{"/etc/passwd", "../x", "file:///etc/x", "a\x00b", "a/./b", "a/b", "c"}}
	out := call.BoundInput(in)
	if out.Cwd != "" {
		t.Errorf("cwd %q", out.Cwd)
	}
	if want := []string{"a/b", "c"}; !reflect.DeepEqual(out.Paths, want) {
		t.Errorf("paths %q, want %q", out.Paths, want)
	}
	if out.PathCount != len(in.Paths) {
		t.Errorf("count %d, want %d", out.PathCount, len(in.Paths))
	}
}
