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

// chartDir is the directory of the Helm chart.
const chartDir = "packaging/helm/portolan"

// chartVersions matches the lines of a chart with its version and the program's version.
var chartVersions = regexp.MustCompile(`(?m)^(version|appVersion): .*$`)

// containers writes the deployment files of the image: the Compose file and the Helm chart, both with this version.
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

// chart writes the chart in the format of helm package.
func (r *release) chart() (err error) {
	var all []entry
	if err := filepath.WalkDir(chartDir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(path) //nolint:gosec // a file of the repository
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
