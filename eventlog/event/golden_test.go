package event

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// update writes what is missing under testdata and docs/events.md. It never touches a golden
// that is there: those are forms that logs hold.
var update = flag.Bool("update", false, "write missing goldens and docs/events.md")

// goldens gives every golden of a stored name: NAME.json and, for fields that came later,
// NAME+WHY.json.
func goldens(t *testing.T, name string) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", name+"*.json"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, f := range files {
		base := strings.TrimSuffix(filepath.Base(f), ".json")
		if base != name && !strings.HasPrefix(base, name+"+") {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[f] = b
	}
	return out
}

// Every stored event type has a golden, every golden decodes to what it was, and together
// they show every field.
func TestGoldenOfEveryStoredEvent(t *testing.T) {
	for _, name := range Names() {
		if *update {
			writeMissing(t, name)
		}
		files := goldens(t, name)
		if len(files) == 0 {
			t.Errorf("%s has no golden: run go generate ./eventlog/event and look at what it wrote", name)
			continue
		}
		shown := map[string]bool{}
		for file, golden := range files {
			e, err := decodeEvent(name, golden)
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			if got := indent(t, e); !bytes.Equal(got, golden) {
				t.Errorf("%s reads and writes back as\n%s", file, got)
			}
			visit(reflect.ValueOf(e), "", func(path string, set bool) { shown[path] = shown[path] || set })
		}
		for path, set := range shown {
			if !set {
				t.Errorf("no golden of %s shows %s: add testdata/%s+WHY.json", name, path, name)
			}
		}
	}
}

// A golden without a type means that a stored name was dropped, and some log still has it.
func TestNoStoredNameIsDropped(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(f), ".json"), "+")
		if _, ok := New(name); !ok {
			t.Errorf("%s: the stored name %s is gone", f, name)
		}
	}
}

func indent(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}

func writeMissing(t *testing.T, name string) {
	t.Helper()
	if len(goldens(t, name)) > 0 {
		return
	}
	v, _ := New(name)
	fill(reflect.ValueOf(v).Elem(), "")
	if err := os.WriteFile(filepath.Join("testdata", name+".json"), indent(t, v), 0o644); err != nil {
		t.Fatal(err)
	}
}

// visit walks the stored fields and tells which are set.
func visit(v reflect.Value, path string, f func(path string, set bool)) {
	switch v.Kind() {
	case reflect.Pointer:
		f(path, !v.IsNil())
		if !v.IsNil() {
			visit(v.Elem(), path, f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			visit(v.Field(i), path+"."+jsonName(v.Type().Field(i)), f)
		}
	default:
		f(path, !v.IsZero())
	}
}

func jsonName(f reflect.StructField) string {
	n, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return n
}

// samples are example values by type; other strings are their field's name.
var samples = map[reflect.Type]string{
	reflect.TypeFor[SessionID]():      SessionPrefix + strings.Repeat("1", 32),
	reflect.TypeFor[CallID]():         CallPrefix + strings.Repeat("2", 32),
	reflect.TypeFor[ExecutionID]():    ExecutionPrefix + strings.Repeat("3", 32),
	reflect.TypeFor[InstanceID]():     InstancePrefix + strings.Repeat("4", 32),
	reflect.TypeFor[ClientID]():       "laptop",
	reflect.TypeFor[ProjectID]():      "webcodex",
	reflect.TypeFor[Mode]():           string(ModeNormal),
	reflect.TypeFor[Role]():           string(RoleBusiness),
	reflect.TypeFor[ExecutionState](): string(Completed),
}

// fill sets every field to an example.
func fill(v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), name)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), jsonName(v.Type().Field(i)))
		}
	case reflect.Slice:
		s := reflect.MakeSlice(v.Type(), 2, 2)
		for i := range 2 {
			fill(s.Index(i), name)
		}
		v.Set(s)
	case reflect.String:
		if s, ok := samples[v.Type()]; ok {
			v.SetString(s)
		} else {
			v.SetString("a " + strings.ReplaceAll(name, "_", " "))
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(len(name)) + 1)
	case reflect.Uint64:
		v.SetUint(uint64(len(name)) + 1)
	default:
		panic("no example for " + v.Type().String())
	}
}
