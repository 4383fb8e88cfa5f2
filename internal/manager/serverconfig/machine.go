package serverconfig

import (
	"context"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// registerMachines declares the collections of release 9.6 for server machines: files, logs and patches. They stay empty: the fleet shows
// the logs of service points and updates them by signed releases.
func registerMachines(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "serverFiles", Called: "files", NoSearch: true}, &ServerFile{})
	r.Collection(resource.Collection{Name: "logs"}, &ServerLog{})
	r.Collection(resource.Collection{Name: "patches", Parents: []string{""}, Guard: resource.Administration,
		Content: resource.Contents{Types: []string{"ServerPatch"},
			Check: func(context.Context, *resource.Content, *resource.API) (any, error) { return nil, patchRejected() }}}, &ServerPatch{})
	r.Collection(resource.Collection{Name: "patchApplications", Parents: []string{"servers"}, Guard: resource.Administration},
		&ServerPatchApplication{})
}

// patchRejected returns the error for uploaded patches, whose origin the manager cannot verify.
func patchRejected() error {
	return problem.Forbidden("OperationNotPermitted",
		"servers are updated by signed releases, as service points of the fleet: portolan release publish, portolan rollout")
}

// BeforeWrite rejects the patch.
func (x *ServerPatch) BeforeWrite(*resource.Change) error { return patchRejected() }

// BeforeWrite rejects the application of a patch.
func (x *ServerPatchApplication) BeforeWrite(*resource.Change) error { return patchRejected() }

// ServerFile is a file of a server; the collection is always empty.
type ServerFile struct {
	schema.Head `head:"readOnly" parents:"servers" post:"no"`
	// Permissions are the access permissions of the file.
	Permissions []string `api:"permissions,readOnly" enum:"OWNER_READ|OWNER_WRITE|OWNER_EXECUTE|GROUP_READ|GROUP_WRITE|GROUP_EXECUTE|OTHERS_READ|OTHERS_WRITE|OTHERS_EXECUTE"`
	// Size is the size of the file, in bytes.
	Size *int64 `api:"size,readOnly"`
	// Owner is the user that owns the file.
	Owner string `api:"owner,readOnly"`
	// Group is the group that owns the file.
	Group string `api:"group,readOnly"`
	// ModificationDateTime is the time of the last write.
	ModificationDateTime time.Time `api:"modificationDateTime,readOnly"`
}

// ServerLog is a log of a server. The collection is always empty; the fleet shows the logs of service points.
type ServerLog struct {
	schema.Head `head:"readOnly" parents:"servers" post:"no"`
	// Size is the size of the log, in bytes.
	Size *int64 `api:"size,readOnly"`
	// ModificationDateTime is the time of the last write.
	ModificationDateTime time.Time `api:"modificationDateTime,readOnly"`
}

// ServerPatch is a patch for servers; every patch is rejected.
type ServerPatch struct {
	schema.Head `head:"readOnly"`
	// PublicKey is the key that verifies the signature of the patch.
	PublicKey string `api:"publicKey,writeOnly"`
}

// ServerPatchApplication is the application of a patch to a server; every one is rejected.
type ServerPatchApplication struct {
	schema.Head `head:"readOnly"`
	// Patch is the patch, by its id or name.
	Patch schema.Ref `api:"patch,writeOnly" ref:"ServerPatch"`
	// DateTime is the time when the patch was applied.
	DateTime time.Time `api:"dateTime,readOnly"`
	// Version is the version of the server after the patch.
	Version string `api:"version,readOnly"`
}
