// Package catalog holds the resources that others refer to: locations, tags, files of TFTP servers, and tasks.
package catalog

//go:generate go run portolan/internal/engine/resource/gendoc
