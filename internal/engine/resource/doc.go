// Package resource is the unit of work: collections and how they hang together, changes with the rules of their types, references,
// deleting, undo, and how what is asked for is found. It knows no type by name, and no HTTP: rest/ serves it.
//
// A resource is kept as the JSON that will be served, without head, inlined references and links. Serving one is splicing
// bytes; only fields, CSV and HTML look inside.
package resource
