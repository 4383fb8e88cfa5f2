package dns

import (
	"portolan/internal/resource"
	"portolan/internal/schema"
)

// registerViews declares the collection of views.
func registerViews(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "views", Parents: []string{"configurations"},
		Counts: resource.Counts{Name: recordCountsName, Summary: "How many records the zones of a view have", Of: recordsOfView}}, &View{})
}

// View is a namespace of DNS within a configuration: the same name may mean another thing in
// another view.
type View struct {
	schema.Head `head:"post,nonblank" unique:"siblings"`
	// Configuration is the configuration the view lies in.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// DeviceRegistrationEnabled says whether devices may be registered in the view.
	DeviceRegistrationEnabled bool `api:"deviceRegistrationEnabled,put"`
	// DeviceRegistrationPortalAddress is the address of the registration portal.
	DeviceRegistrationPortalAddress string `api:"deviceRegistrationPortalAddress"`
	// LiveDeployment says whether every change in the view is put on the wire as soon as it is made, where its zones were deployed before.
	LiveDeployment bool `api:"liveDeployment"`
	// FollowedServer is the server of somebody else whose zones those of the view are kept like; null: nobody's. It alone changes their
	// records.
	FollowedServer schema.Ref `api:"followedServer" ref:"Server" onDelete:"refuse"`
}
