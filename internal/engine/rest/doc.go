// Package rest is the grammar of the API over HTTP: routes, negotiation, pages, HAL, CSV, HTML, OpenAPI, answers that are kept for
// who asks again. It knows no type by name.
package rest
