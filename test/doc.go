// Package test contains the tests of the whole system: the binary as users run it, processes that are killed, networks that are cut.
// Scenarios written as text are testscript files in testdata/script.
package test
