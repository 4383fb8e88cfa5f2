//go:build !linux

package server

// dropProgramPages does nothing: the system drops unused pages of the program by itself.
func dropProgramPages() {}
