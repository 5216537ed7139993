package tooldoc

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"webcodex/mcp"
	"webcodex/mcp/schema"
)

var update = flag.Bool("update", false, "write docs/tools.md")

const docFile = "../../docs/tools.md"

func TestToolsDocument(t *testing.T) {
	want := render(mcp.Catalogue())
	if *update {
		if err := os.WriteFile(docFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(docFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/tools.md is stale: run go generate ./internal/tooldoc")
	}
}

const head = `# Tools

Made from the tool list of ` + "`mcp`" + ` by ` + "`go generate ./internal/tooldoc`" + `; do not edit.

A tool marked *direct* stands in ` + "`tools/list`" + `. The others are called by name through
` + "`call_runtime_tool`" + ` and described by ` + "`read_tool_manifest`" + `; the surface ` + "`full`" + ` lists all.
Every scope named is needed. An unknown field is refused; a field that is absent or null has its
default.
`

func render(tools []mcp.Tool) []byte {
	var b bytes.Buffer
	b.WriteString(head)
	var categories []string
	for _, t := range tools {
		if !slices.Contains(categories, t.Category) {
			categories = append(categories, t.Category)
		}
	}
	overview(&b, tools, categories)
	for _, c := range categories {
		fmt.Fprintf(&b, "\n# %s\n", title(c))
		for _, t := range tools {
			if t.Category == c {
				section(&b, t)
			}
		}
	}
	return b.Bytes()
}

func overview(b *bytes.Buffer, tools []mcp.Tool, categories []string) {
	b.WriteString("\n| tool | direct | effect | scopes | |\n|---|---|---|---|---|\n")
	for _, c := range categories {
		for _, t := range tools {
			if t.Category != c {
				continue
			}
			direct := ""
			if t.Direct {
				direct = "yes"
			}
			fmt.Fprintf(b, "| [`%s`](#%s) | %s | %s | %s | %s |\n", t.Spec.Name, t.Spec.Name, direct, t.Effect(), scopes(t), cell(t.Title))
		}
	}
}

func section(b *bytes.Buffer, t mcp.Tool) {
	fmt.Fprintf(b, "\n## `%s`\n\n%s\n\n%s.\n", t.Spec.Name, t.Description, strings.Join(traits(t), ", "))
	if t.Input == nil || len(t.Input.Props) == 0 {
		b.WriteString("\nNo arguments.\n")
		return
	}
	b.WriteString("\n| argument | type | bounds | |\n|---|---|---|---|\n")
	fields(b, "", t.Input)
}

// traits are the annotations in words; what a tool is not is left out.
func traits(t mcp.Tool) []string {
	out := []string{"Effect: " + t.Effect()}
	a := t.Annotations()
	for _, x := range []struct {
		on   bool
		word string
	}{{a.ReadOnly, "read only"}, {a.Destructive, "destructive"}, {a.Idempotent, "idempotent"}, {a.OpenWorld, "open world"}} {
		if x.on {
			out = append(out, x.word)
		}
	}
	return out
}

func fields(b *bytes.Buffer, prefix string, s *schema.Schema) {
	for _, p := range s.Props {
		note := cell(p.Schema.Description)
		if p.Required {
			note = strings.TrimSpace("**required.** " + note)
		}
		name := prefix + p.Name
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", name, kind(p.Schema), bounds(p.Schema), note)
		switch {
		case p.Schema.Type == "object":
			fields(b, name+".", p.Schema)
		case p.Schema.Type == "array" && p.Schema.Items.Type == "object":
			fields(b, name+"[].", p.Schema.Items)
		}
	}
}

func kind(s *schema.Schema) string {
	switch {
	case len(s.Enum) > 0:
		return "`" + strings.Join(s.Enum, "` `") + "`"
	case s.Type == "array":
		return "list of " + kind(s.Items)
	case s.Free:
		return "object, any members"
	}
	return s.Type
}

func bounds(s *schema.Schema) string {
	var out []string
	span := func(min, max int, unit string) {
		switch {
		case max > 0:
			out = append(out, fmt.Sprintf("%d…%d %s", min, max, unit))
		case min > 0:
			out = append(out, fmt.Sprintf("≥ %d %s", min, unit))
		}
	}
	span(s.MinLength, s.MaxLength, "characters")
	if s.MaxBytes > 0 && s.MaxBytes != s.MaxLength {
		out = append(out, "≤ "+strconv.Itoa(s.MaxBytes)+" bytes")
	}
	span(s.MinItems, s.MaxItems, "items")
	switch {
	case s.Min != nil && s.Max != nil:
		out = append(out, fmt.Sprintf("%d…%d", *s.Min, *s.Max))
	case s.Min != nil:
		out = append(out, fmt.Sprintf("≥ %d", *s.Min))
	case s.Max != nil:
		out = append(out, fmt.Sprintf("≤ %d", *s.Max))
	}
	if s.Pattern != "" {
		out = append(out, "`"+cell(s.Pattern)+"`")
	}
	if s.Type == "array" && s.Items.Type != "object" {
		if each := bounds(s.Items); each != "" {
			out = append(out, "each "+each)
		}
	}
	return strings.Join(out, ", ")
}

func scopes(t mcp.Tool) string {
	var out []string
	for _, s := range t.Spec.Scopes {
		out = append(out, "`"+string(s)+"`")
	}
	for _, s := range t.Spec.Conditional {
		out = append(out, "(`"+string(s)+"`)")
	}
	return strings.Join(out, " ")
}

func title(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// cell keeps a text within one cell of a table.
func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", "\\|")
}
