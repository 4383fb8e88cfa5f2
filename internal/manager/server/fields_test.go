package server

import (
	"flag"
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"portolan/internal/engine/schema"
	"portolan/internal/manager/model"
	"portolan/internal/testkit/apitest"

	"golang.org/x/tools/go/packages"
)

var writeFields = flag.Bool("write-fields", false, "write the table of fields that are stored and shown only")

// fieldsPage is the page with the fields that have no effect, between these lines.
const (
	fieldsPage  = "../../../docs/status.md"
	fieldsBegin = "<!-- fields -->\n"
	fieldsEnd   = "<!-- /fields -->\n"
)

// declaredField is a field of a declared type that clients can set.
type declaredField struct {
	// typ and path are the type and the path of members, as clients know them.
	typ, path string
	// goField is the field as "package.Type.Field".
	goField string
}

// TestFieldsAreRead checks that code of the manager or of the service point reads each writable field, or refuses its
// setting. docs/status.md lists the others: they are stored and shown, and have no effect. A field is listed under the first
// type that has it.
func TestFieldsAreRead(t *testing.T) {
	apitest.OnSQLite(t)
	loaded, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo |
		packages.NeedImports, Dir: "../../.."}, "./internal/...")
	if err != nil || packages.PrintErrors(loaded) > 0 {
		t.Fatal(err)
	}
	selected, named := readFields(loaded)
	unread := map[string][]string{}
	for _, f := range settableFields() {
		if name := f.path[strings.LastIndex(f.path, ".")+1:]; !selected[f.goField] && !named[name] &&
			!selected[f.goField[strings.LastIndex(f.goField, ".")+1:]] {
			unread[f.typ] = append(unread[f.typ], f.path)
		}
	}
	table := "| type | fields |\n|---|---|\n"
	for _, typ := range slices.Sorted(maps.Keys(unread)) {
		table += fmt.Sprintf("| %s | `%s` |\n", typ, strings.Join(unread[typ], "`, `"))
	}
	page, err := os.ReadFile(fieldsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(page), fieldsBegin)
	listed, after, found := strings.Cut(rest, fieldsEnd)
	if !found {
		t.Fatalf("%s has no table of fields between %q and %q", fieldsPage, fieldsBegin, fieldsEnd)
	}
	if *writeFields {
		if err := os.WriteFile(fieldsPage, []byte(before+fieldsBegin+table+fieldsEnd+after), 0o644); err != nil { //nolint:gosec // a page
			t.Fatal(err)
		}
		return
	}
	is, want := tableFields(table), tableFields(listed)
	for _, f := range slices.Sorted(maps.Keys(is)) {
		if !want[f] {
			t.Errorf("%s: nothing reads it: let it act, refuse it, or list it in docs/status.md (-args -write-fields)", f)
		}
	}
	for _, f := range slices.Sorted(maps.Keys(want)) {
		if !is[f] {
			t.Errorf("%s: docs/status.md lists it, and it is read now (-args -write-fields)", f)
		}
	}
}

// tableFields returns the fields of a table, as "Type.path".
func tableFields(table string) map[string]bool {
	all := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| (\w+) \| (.*) \|$`).FindAllStringSubmatch(table, -1) {
		for _, field := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[2], -1) {
			all[row[1]+"."+field[1]] = true
		}
	}
	return all
}

// words are the names in a text, such as a condition of SQL or a path of members.
var words = regexp.MustCompile(`\w+`)

// sql matches texts of SQL, whose words are names. Other texts with spaces are messages.
var sql = regexp.MustCompile(`\b(SELECT|UPDATE|DELETE|INSERT|WHERE|AND|json_extract)\b|->>|=`)

// readFields returns the struct fields that some expression reads, as "package.Type.Field", and the names that code contains as texts,
// paths or in SQL: a field may be read by its name.
func readFields(loaded []*packages.Package) (selected, named map[string]bool) {
	selected, named = map[string]bool{}, map[string]bool{}
	owners := map[types.Object]string{}
	for _, p := range loaded {
		for _, name := range p.Types.Scope().Names() {
			s, is := p.Types.Scope().Lookup(name).Type().Underlying().(*types.Struct)
			for i := 0; is && i < s.NumFields(); i++ {
				owners[s.Field(i)] = p.PkgPath + "." + name + "." + s.Field(i).Name()
			}
		}
	}
	for _, p := range loaded {
		// Importers, commands and tests set fields.
		if strings.HasPrefix(p.PkgPath, "portolan/internal/client/") || strings.HasPrefix(p.PkgPath, "portolan/internal/testkit/") {
			continue
		}
		for _, file := range p.Syntax {
			if ast.IsGenerated(file) {
				continue
			}
			passed := map[ast.Node]bool{} // what is assigned to, tags, and names in errors
			ast.Inspect(file, func(n ast.Node) bool {
				switch x := n.(type) {
				case *ast.CallExpr:
					if f, ok := x.Fun.(*ast.SelectorExpr); ok {
						if of, ok := f.X.(*ast.Ident); ok && of.Name == "problem" {
							for _, a := range x.Args {
								passed[a] = true
							}
						}
					}
				case *ast.AssignStmt:
					for _, to := range x.Lhs {
						passed[to] = true
					}
				case *ast.Field:
					if x.Tag != nil {
						passed[x.Tag] = true
					}
				case *ast.BasicLit:
					if text, err := strconv.Unquote(x.Value); err == nil && !passed[x] && (!strings.Contains(text, " ") || sql.MatchString(text)) {
						for _, word := range words.FindAllString(text, -1) {
							named[word] = true
						}
					}
				case *ast.SelectorExpr:
					if s := p.TypesInfo.Selections[x]; s != nil && !passed[x] {
						if selected[owners[s.Obj()]] = true; owners[s.Obj()] == "" { // of a struct that is local to a function, into which JSON is read
							selected[s.Obj().Name()] = true
						}
					}
				}
				return true
			})
		}
	}
	return selected, named
}

// settableFields returns the fields that clients can set, with the members of nested objects, each once.
func settableFields() (all []declaredField) {
	seen := map[string]bool{}
	var collect func(typ, above string, s reflect.Type, fields []*schema.Field)
	collect = func(typ, above string, s reflect.Type, fields []*schema.Field) {
		for s.Kind() == reflect.Pointer || s.Kind() == reflect.Slice {
			s = s.Elem()
		}
		if s.Kind() != reflect.Struct {
			return
		}
		for _, f := range fields {
			owner := s
			for _, i := range f.Index[:len(f.Index)-1] {
				if owner = owner.Field(i).Type; owner.Kind() == reflect.Pointer {
					owner = owner.Elem()
				}
			}
			field := s.FieldByIndex(f.Index)
			goField := owner.PkgPath() + "." + owner.Name() + "." + field.Name
			of, switches := strings.CutSuffix(f.Name, "Inherited") // read by its suffix (ipam.inheritedFields)
			switches = switches && slices.ContainsFunc(fields, func(one *schema.Field) bool { return one.Name == of && one.Inherit })
			if f.ReadOnly || seen[goField] || switches {
				continue
			}
			seen[goField] = true
			all = append(all, declaredField{typ, above + f.Name, goField})
			collect(typ, above+f.Name+".", field.Type, f.Members)
		}
	}
	declared := slices.Clone(model.NewAPI(nil).AllTypes())
	slices.SortFunc(declared, func(a, b *schema.Type) int { return strings.Compare(a.Name, b.Name) })
	for _, typ := range declared {
		collect(typ.Name, "", reflect.TypeOf(typ.New()).Elem(), typ.Fields)
	}
	return all
}
