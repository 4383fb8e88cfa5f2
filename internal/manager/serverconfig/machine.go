package serverconfig

import (
	"context"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// registerMachines declares what release 9.6 has of the machines of servers: their files and logs, and patches. A service point shows its
// logs through the fleet, and is updated by signed releases: there is nothing of it here.
func registerMachines(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "serverFiles", Called: "files", NoSearch: true}, &ServerFile{})
	r.Collection(resource.Collection{Name: "logs"}, &ServerLog{})
	r.Collection(resource.Collection{Name: "patches", Parents: []string{""}, Guard: resource.Administration,
		Content: resource.Contents{Types: []string{"ServerPatch"},
			Check: func(context.Context, *resource.Content, *resource.API) (any, error) { return nil, byReleases() }}}, &ServerPatch{})
	r.Collection(resource.Collection{Name: "patchApplications", Parents: []string{"servers"}, Guard: resource.Administration},
		&ServerPatchApplication{})
}

// byReleases refuses a patch: the manager could not tell whom it is from.
func byReleases() error {
	return problem.Forbidden("OperationNotPermitted",
		"servers are updated by signed releases, as service points of the fleet: portolan release publish, portolan rollout")
}

// BeforeWrite refuses it.
func (x *ServerPatch) BeforeWrite(*resource.Change) error { return byReleases() }

// BeforeWrite refuses it.
func (x *ServerPatchApplication) BeforeWrite(*resource.Change) error { return byReleases() }

// ServerFile is a file of a server; none is shown.
type ServerFile struct {
	schema.Head `head:"readOnly" parents:"servers" post:"no"`
	// Permissions are who may do what with it.
	Permissions []string `api:"permissions,readOnly" enum:"OWNER_READ|OWNER_WRITE|OWNER_EXECUTE|GROUP_READ|GROUP_WRITE|GROUP_EXECUTE|OTHERS_READ|OTHERS_WRITE|OTHERS_EXECUTE"`
	// Size is how long it is, in bytes.
	Size *int64 `api:"size,readOnly"`
	// Owner is the user it belongs to.
	Owner string `api:"owner,readOnly"`
	// Group is the group it belongs to.
	Group string `api:"group,readOnly"`
	// ModificationDateTime is when it was last written.
	ModificationDateTime time.Time `api:"modificationDateTime,readOnly"`
}

// ServerLog is a log of a server; those of service points are shown by the fleet.
type ServerLog struct {
	schema.Head `head:"readOnly" parents:"servers" post:"no"`
	// Size is how long it is, in bytes.
	Size *int64 `api:"size,readOnly"`
	// ModificationDateTime is when it was last written.
	ModificationDateTime time.Time `api:"modificationDateTime,readOnly"`
}

// ServerPatch is a patch for servers; none is taken.
type ServerPatch struct {
	schema.Head `head:"readOnly"`
	// PublicKey is the key that it is signed with.
	PublicKey string `api:"publicKey,writeOnly"`
}

// ServerPatchApplication is the patching of a server.
type ServerPatchApplication struct {
	schema.Head `head:"readOnly"`
	// Patch is the patch, by its id or name.
	Patch schema.Ref `api:"patch,writeOnly" ref:"ServerPatch"`
	// DateTime is when it was done.
	DateTime time.Time `api:"dateTime,readOnly"`
	// Version is the version of the server from then on.
	Version string `api:"version,readOnly"`
}
