// Package catalog declares resources that other resources refer to: locations, tags, files of TFTP servers, and tasks.
package catalog

//go:generate go run portolan/internal/engine/resource/gendoc
