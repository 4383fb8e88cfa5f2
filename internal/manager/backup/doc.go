// Package backup makes backups of the running manager's database, on a schedule or on request. The backups are files in a directory of the
// manager's machine, which the API lists, sends and deletes. Package archive defines their content.
package backup

//go:generate go run portolan/internal/engine/resource/gendoc
