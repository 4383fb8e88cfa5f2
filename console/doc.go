// Package console contains the web console: a program that runs in browsers. It is a client of the public API with the rights of the user
// who is signed in. The sources are in src, one file per screen and component. go generate builds the files in bundle, which the manager
// serves.
package console

//go:generate go run ./generate
