package main

import (
	"fmt"
	"path/filepath"
)

// provider writes the provider for Terraform and OpenTofu in the layout of a filesystem_mirror: a zip file with the program. The file names
// contain the version and the platform.
func (r *release) provider(p platform) error {
	program := "terraform-provider-portolan_v" + r.version
	if p.os == "windows" {
		program += ".exe"
	}
	built := filepath.Join(r.out, "work", p.os+"-"+p.arch, program)
	fmt.Println("building the provider for Terraform,", p)
	if err := r.compile("clients/terraform", ".", built, p); err != nil {
		return err
	}
	f, err := r.create(fmt.Sprintf("terraform-provider-portolan_%s_%s_%s.zip", r.version, p.os, p.arch))
	if err != nil {
		return err
	}
	err = r.zip(f, "", []entry{{from: "LICENSE", to: "LICENSE", mode: 0o644},
		{from: "clients/terraform/README.md", to: "README.md", mode: 0o644}, {from: built, to: program, mode: 0o755}})
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
