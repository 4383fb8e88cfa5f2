// Command terraform-provider-portolan is the Portolan provider for Terraform and OpenTofu. It is a module of its own, so that Portolan does
// not depend on its requirements.
package main

import (
	"context"
	"flag"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"portolan/clients/terraform/provider"
)

// version is set by the release build.
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "wait for a debugger")
	flag.Parse()
	if err := providerserver.Serve(context.Background(), provider.New(version), providerserver.ServeOpts{
		Address: "registry.terraform.io/portolan/portolan", Debug: *debug}); err != nil {
		log.Fatal(err)
	}
}
