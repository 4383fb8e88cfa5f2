package catalog

import (
	"portolan/internal/resource"
	"portolan/internal/schema"
)

// registerTFTP declares the collection of TFTP groups.
func registerTFTP(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "tftpGroups", Parents: []string{"configurations"}}, &TFTPGroup{})
}

// TFTPGroup holds the files that machines load when they start.
type TFTPGroup struct {
	schema.Head `head:"post,nonblank" unique:"siblings"`
	// Configuration is the configuration the group lies in.
	Configuration schema.Ref `api:"configuration,readOnly" ref:"Configuration" column:"configuration"`
}
