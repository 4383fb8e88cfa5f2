// Package workflow keeps changes that are asked for, until others approve or deny them: what a user changes whose access rights have the
// workflow level RECOMMEND, and what anybody changes of types that a configuration has four eyes look at.
package workflow

//go:generate go run portolan/internal/engine/resource/gendoc
