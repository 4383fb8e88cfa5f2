// Command gen writes the OpenAPI document of the address API. `make generate` runs it in api/.
package main

import (
	"log"
	"os"

	"portolan/internal/manager/model"
	"portolan/internal/manager/server"
)

func main() {
	text, err := server.Document(server.Serve(model.NewAPI(nil), server.DefaultMaxLimit, server.APIVersion))
	if err == nil {
		err = os.WriteFile("openapi.json", append(text, '\n'), 0o644) //nolint:gosec // readable by all users
	}
	if err != nil {
		log.Fatal(err)
	}
}
