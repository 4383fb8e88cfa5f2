// Package test holds the stories that need the whole system: the binary as users run it, processes
// that are killed, networks that are cut. Stories in words are testscript files in testdata/script.
package test
