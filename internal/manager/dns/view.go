package dns

import (
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerViews declares the collection of views.
func registerViews(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "views", CacheHeads: true, Parents: []string{"configurations"},
		Counts: resource.Counts{Name: recordCountsName, Summary: "How many records the zones of a view have", Of: countViewRecords}}, &View{})
}

// View is a DNS namespace within a configuration. The same name may have different records in different views.
type View struct {
	schema.Head `head:"post,nonblank" unique:"siblings"`
	// Configuration is the configuration that contains the view.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// DeviceRegistrationEnabled allows the registration of devices in the view.
	DeviceRegistrationEnabled bool `api:"deviceRegistrationEnabled,put"`
	// DeviceRegistrationPortalAddress is the address of the registration portal.
	DeviceRegistrationPortalAddress string `api:"deviceRegistrationPortalAddress"`
	// LiveDeployment deploys every change in the view immediately, if its zones were deployed before.
	LiveDeployment bool `api:"liveDeployment"`
	// FollowedServer is a server of another operator whose zones are copied to this view; null for none. Only the copy changes the records
	// of these zones.
	FollowedServer schema.Ref `api:"followedServer" ref:"Server" onDelete:"refuse"`
	RestrictedRanges
}

// BeforeWrite extracts the restricted ranges of the request.
func (x *View) BeforeWrite(*resource.Change) error {
	x.extractRanges()
	return nil
}

// AfterWrite links the restricted ranges.
func (x *View) AfterWrite(c *resource.Change) error { return x.saveRanges(c, x.ID) }

// Validate checks that followedServer is a server of another operator.
func (x *View) Validate(c *resource.Change) error {
	if x.FollowedServer.ID == 0 {
		return nil
	}
	row, err := c.Tx.Get(x.FollowedServer.ID)
	if store.IsNotFound(err) {
		return resource.NotFoundInlined("followedServer", "resource %d does not exist", x.FollowedServer.ID)
	}
	if err != nil {
		return err
	}
	o, err := c.API.Object(row)
	if err != nil {
		return err
	}
	if profile := c.API.TypeNamed(row.Type).TextOf(o, "profile"); profile != OtherServer {
		return problem.Field("ConflictingResourceFieldValues", "followedServer",
			"server %s has the profile %s: a followed server must be external, with the profile %s", problem.Describe(row.ID,
				row.Name), profile, OtherServer)
	}
	return nil
}

// OtherServer is the profile of a server of another operator.
const OtherServer = "OTHER_DNS_SERVER"
