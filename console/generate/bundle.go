package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// packages are the modules from npm, by the names that sources import them by.
var packages = map[string]string{
	"preact":               "preact/dist/preact.mjs",
	"preact/hooks":         "preact/hooks/dist/hooks.mjs",
	"preact/jsx-runtime":   "preact/jsx-runtime/dist/jsxRuntime.mjs",
	"@preact/signals":      "@preact/signals/dist/signals.mjs",
	"@preact/signals-core": "@preact/signals-core/dist/signals-core.mjs",
}

// bundle gives the files of the bundle by their names, made from the console whose folder is root.
func bundle(root string) (map[string][]byte, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	described, err := described(filepath.Join(root, "..", "api", "openapi.json"))
	if err != nil {
		return nil, err
	}
	icons, err := icons(filepath.Join(root, "npm", "lucide-static", "icons"))
	if err != nil {
		return nil, err
	}
	alias := map[string]string{}
	for name, file := range packages {
		alias[name] = filepath.Join(root, "npm", file)
	}
	r := api.Build(api.BuildOptions{
		AbsWorkingDir: root, EntryPoints: []string{"src/main.tsx"}, EntryNames: "app", Outdir: "bundle",
		Bundle: true, Format: api.FormatESModule, Target: api.ES2022, Platform: api.PlatformBrowser, Charset: api.CharsetUTF8,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, LegalComments: api.LegalCommentsNone,
		JSX: api.JSXAutomatic, JSXImportSource: "preact", Alias: alias, TsconfigRaw: "{}",
		Define:  map[string]string{"process.env.NODE_ENV": `"production"`},
		Plugins: []api.Plugin{given("icons", icons)},
	})
	if len(r.Errors) > 0 {
		return nil, errors.New(strings.Join(api.FormatMessages(r.Errors, api.FormatMessagesOptions{}), "\n"))
	}
	files := map[string][]byte{"schema.json": described}
	for _, f := range r.OutputFiles {
		files[filepath.Base(f.Path)] = f.Contents
	}
	if files["index.html"], err = os.ReadFile(filepath.Join(root, "src", "index.html")); err != nil {
		return nil, err
	}
	if files["icon.svg"], err = os.ReadFile(filepath.Join(root, "src", "icon.svg")); err != nil {
		return nil, err
	}
	return files, nil
}

// given is a module, imported as portolan:NAME, whose text is made here.
func given(name, text string) api.Plugin {
	return api.Plugin{Name: name, Setup: func(build api.PluginBuild) {
		build.OnResolve(api.OnResolveOptions{Filter: "^portolan:" + name + "$"}, func(api.OnResolveArgs) (api.OnResolveResult, error) {
			return api.OnResolveResult{Path: name, Namespace: "portolan"}, nil
		})
		build.OnLoad(api.OnLoadOptions{Filter: "^" + name + "$", Namespace: "portolan"}, func(api.OnLoadArgs) (api.OnLoadResult, error) {
			return api.OnLoadResult{Contents: &text, Loader: api.LoaderJSON}, nil
		})
	}}
}

// icons gives the shapes of all icons in a folder, as JSON: {"NAME":[["path",{"d":"..."}],...]}.
func icons(dir string) (string, error) {
	found, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	if err != nil {
		return "", err
	}
	slices.Sort(found)
	var all []string
	for _, file := range found {
		text, err := os.ReadFile(file) //nolint:gosec // a file of the sources
		if err != nil {
			return "", err
		}
		var svg struct {
			Shapes []struct {
				XMLName xml.Name
				Attrs   []xml.Attr `xml:",any,attr"`
			} `xml:",any"`
		}
		if err := xml.Unmarshal(text, &svg); err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		var shapes []string
		for _, shape := range svg.Shapes {
			var attrs []string
			for _, a := range shape.Attrs {
				attrs = append(attrs, fmt.Sprintf("%q:%q", a.Name.Local, a.Value))
			}
			shapes = append(shapes, fmt.Sprintf("[%q,{%s}]", shape.XMLName.Local, strings.Join(attrs, ",")))
		}
		all = append(all, fmt.Sprintf("%q:[%s]", strings.TrimSuffix(filepath.Base(file), ".svg"), strings.Join(shapes, ",")))
	}
	return "{" + strings.Join(all, ",\n") + "}", nil
}
