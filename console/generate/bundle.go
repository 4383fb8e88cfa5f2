package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	esbuild "github.com/evanw/esbuild/pkg/api"
)

// packages are the npm modules, by the names that the sources import.
var packages = map[string]string{
	"preact":               "preact/dist/preact.mjs",
	"preact/hooks":         "preact/hooks/dist/hooks.mjs",
	"preact/jsx-runtime":   "preact/jsx-runtime/dist/jsxRuntime.mjs",
	"@preact/signals":      "@preact/signals/dist/signals.mjs",
	"@preact/signals-core": "@preact/signals-core/dist/signals-core.mjs",
	"uplot":                "uplot/dist/uPlot.esm.js",
	"uplot.css":            "uplot/dist/uPlot.min.css",
}

// typesFile contains the API's types for the console's sources.
const typesFile = "src/types.ts"

// bundle builds the console from the sources in the directory root. It returns the files of the bundle and the types of the API, by path.
func bundle(root string) (map[string][]byte, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	api, err := read(filepath.Join(root, "..", "api", "openapi.json"))
	if err != nil {
		return nil, err
	}
	described, err := json.Marshal(api)
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
	r := esbuild.Build(esbuild.BuildOptions{
		AbsWorkingDir: root, EntryPoints: []string{"src/main.tsx"}, EntryNames: "app", Outdir: "bundle",
		Bundle: true, Splitting: true, ChunkNames: "[name]-[hash]",
		Format: esbuild.FormatESModule, Target: esbuild.ES2022, Platform: esbuild.PlatformBrowser, Charset: esbuild.CharsetUTF8,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, LegalComments: esbuild.LegalCommentsNone,
		JSX: esbuild.JSXAutomatic, JSXImportSource: "preact", Alias: alias, TsconfigRaw: "{}",
		Define:  map[string]string{"process.env.NODE_ENV": `"production"`},
		Plugins: []esbuild.Plugin{textPlugin("icons", icons)},
	})
	if len(r.Errors) > 0 {
		return nil, errors.New(strings.Join(esbuild.FormatMessages(r.Errors, esbuild.FormatMessagesOptions{}), "\n"))
	}
	files := map[string][]byte{"bundle/schema.json": described, typesFile: api.typescript()}
	ahead := "" // preloads the dependencies of the first file
	for _, f := range r.OutputFiles {
		name := filepath.Base(f.Path)
		files["bundle/"+name] = f.Contents
		if strings.HasPrefix(name, "chunk-") { // esbuild's name of code that the first file shares with others
			ahead += `<link rel="modulepreload" href="/ui/assets/` + name + "\">\n"
		}
	}
	page, err := os.ReadFile(filepath.Join(root, "src", "index.html"))
	if err != nil {
		return nil, err
	}
	head, body, whole := strings.Cut(string(page), "</head>")
	if !whole {
		return nil, errors.New("src/index.html has no end of its head")
	}
	files["bundle/index.html"] = []byte(head + ahead + "</head>" + body)
	if files["bundle/icon.svg"], err = os.ReadFile(filepath.Join(root, "src", "icon.svg")); err != nil {
		return nil, err
	}
	return files, nil
}

// textPlugin is an esbuild plugin with a module of generated text, imported as portolan:NAME.
func textPlugin(name, text string) esbuild.Plugin {
	return esbuild.Plugin{Name: name, Setup: func(build esbuild.PluginBuild) {
		build.OnResolve(esbuild.OnResolveOptions{Filter: "^portolan:" + name + "$"}, func(esbuild.OnResolveArgs) (esbuild.OnResolveResult,
			error) {
			return esbuild.OnResolveResult{Path: name, Namespace: "portolan"}, nil
		})
		build.OnLoad(esbuild.OnLoadOptions{Filter: "^" + name + "$", Namespace: "portolan"}, func(esbuild.OnLoadArgs) (esbuild.OnLoadResult,
			error) {
			return esbuild.OnLoadResult{Contents: &text, Loader: esbuild.LoaderJSON}, nil
		})
	}}
}

// icons returns the shapes of all icons in a folder, as JSON: {"NAME":[["path",{"d":"..."}],...]}.
func icons(dir string) (string, error) {
	found, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	if err != nil {
		return "", err
	}
	slices.Sort(found)
	var all []string
	for _, file := range found {
		text, err := os.ReadFile(file) //nolint:gosec // a file of the repository
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
