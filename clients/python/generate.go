// Package python is the client for Python: its types are made from the declarations, like the OpenAPI document.
package python

//go:generate go run ./gen
