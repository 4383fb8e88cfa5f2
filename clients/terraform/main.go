// Command terraform-provider-portolan is the provider of Portolan for Terraform and OpenTofu. It is a module of its own: what it needs, the
// rest of Portolan does not.
package main

import (
	"context"
	"flag"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"portolan/clients/terraform/provider"
)

// version is set when a release is built.
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "wait for a debugger")
	flag.Parse()
	if err := providerserver.Serve(context.Background(), provider.New(version), providerserver.ServeOpts{
		Address: "registry.terraform.io/portolan/portolan", Debug: *debug}); err != nil {
		log.Fatal(err)
	}
}
