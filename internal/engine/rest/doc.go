// Package rest implements the HTTP interface of the API: routes, content negotiation, pages, HAL, CSV, HTML, OpenAPI, and answers that
// are stored for repeated requests. It knows no type by name.
package rest
