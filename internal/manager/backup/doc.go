// Package backup makes backups of the manager's database while it serves: when schedules say so and when somebody asks, as files in a
// directory of the manager's machine, which the API lists, sends and deletes. What a backup holds is archive's affair.
package backup

//go:generate go run portolan/internal/engine/resource/gendoc
