package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// chartDir is where the chart for Helm is.
const chartDir = "packaging/helm/portolan"

// chartVersions are the lines of a chart that say its version and the program's.
var chartVersions = regexp.MustCompile(`(?m)^(version|appVersion): .*$`)

// containers writes what runs the image: the Compose file and the chart for Helm, both of this version.
func (r *release) containers() error {
	text, err := os.ReadFile("packaging/compose.yaml")
	if err != nil {
		return err
	}
	const version = "${PORTOLAN_VERSION:-latest}"
	if !bytes.Contains(text, []byte(version)) {
		return fmt.Errorf("packaging/compose.yaml has no %s", version)
	}
	text = bytes.ReplaceAll(text, []byte(version), []byte("${PORTOLAN_VERSION:-"+r.version+"}"))
	f, err := r.create("portolan_" + r.version + "_compose.yaml")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return r.chart()
}

// chart writes the chart, as helm package does.
func (r *release) chart() (err error) {
	var all []entry
	if err := filepath.WalkDir(chartDir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(path) //nolint:gosec // of this repository
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, chartDir+"/")
		if name == "Chart.yaml" {
			body = chartVersions.ReplaceAll(body, []byte("$1: "+r.version))
		}
		all = append(all, entry{to: name, body: body, mode: 0o644})
		return nil
	}); err != nil {
		return err
	}
	f, err := r.create("portolan-chart-" + r.version + ".tgz")
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := r.tar(z, "portolan", all); err != nil {
		return err
	}
	return z.Close()
}
