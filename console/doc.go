// Package console is the web console: a program that browsers run, a client of the public API with the rights of who is signed in. Its
// sources are in src, one file for each screen and each part; bundle has what they are made into (go generate), and what is served.
package console

//go:generate go run ./generate
