package model_test

import (
	"go/ast"
	"go/types"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"

	"portolan/internal/testkit/apitest"
)

// TestRefusalsNameResourcesByNumber checks that an error whose text contains data of a resource has the id of the resource among its
// arguments. With the id, resource.API.Conceal rewords the error for users who do not see the resource.
func TestRefusalsNameResourcesByNumber(t *testing.T) {
	apitest.Slow(t)
	apitest.SkipOnPostgreSQL(t)
	loaded, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo |
		packages.NeedImports, Dir: "../../.."}, "./internal/...")
	if err != nil || packages.PrintErrors(loaded) > 0 {
		t.Fatal(err)
	}
	calls := 0
	for _, p := range loaded {
		for _, file := range p.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || !isRefusal(p.TypesInfo, call) {
					return true
				}
				calls++
				numbered, worded := map[string]bool{}, map[string]bool{}
				for _, arg := range call.Args {
					ast.Inspect(arg, func(n ast.Node) bool {
						if s, ok := n.(*ast.SelectorExpr); ok && isResource(p.TypesInfo.TypeOf(s.X)) {
							switch s.Sel.Name {
							case "ID":
								numbered[types.ExprString(s.X)] = true
								return false
							case "Type", "Collection": // a kind tells nothing
								return false
							}
						}
						if x, ok := n.(ast.Expr); ok && isResource(p.TypesInfo.TypeOf(x)) {
							worded[types.ExprString(x)] = true
							return false
						}
						return true
					})
				}
				for x := range worded {
					if !numbered[x] {
						t.Errorf("%s: a refusal is worded with %s and not with %s.ID", p.Fset.Position(call.Pos()), x, x)
					}
				}
				return true
			})
		}
	}
	if calls < 500 {
		t.Errorf("%d refusals were looked at", calls)
	}
}

// isRefusal reports whether a call makes a problem: by package problem, or by a function that takes a format and gives an error.
func isRefusal(info *types.Info, call *ast.CallExpr) bool {
	t := info.TypeOf(call)
	if t == nil || len(call.Args) < 2 {
		return false
	}
	if strings.HasSuffix(t.String(), "internal/base/problem.Problem") {
		return true
	}
	if s, ok := call.Fun.(*ast.SelectorExpr); ok {
		if o := info.ObjectOf(s.Sel); o != nil && o.Pkg() != nil && strings.HasSuffix(o.Pkg().Path(), "internal/engine/store") { // statements
			return false
		}
	}
	f, ok := info.TypeOf(call.Fun).(*types.Signature)
	if !ok || !f.Variadic() || t.String() != "error" || strings.HasPrefix(types.ExprString(call.Fun), "fmt.") {
		return false
	}
	last := f.Params().Len() - 1
	return last > 0 && f.Params().At(last-1).Type().String() == "string" && f.Params().At(last).Type().String() == "[]any"
}

// isResource reports whether a type is that of a stored resource, or of its head.
func isResource(t types.Type) bool {
	if t == nil {
		return false
	}
	text := t.String()
	return strings.HasSuffix(text, "internal/engine/store.Resource") || strings.HasSuffix(text, "internal/engine/store.Head")
}
