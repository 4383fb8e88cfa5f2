package notify

import (
	"cmp"
	"embed"
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/event"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

//go:embed migrations/*/*.sql
var migrations embed.FS

// groups is the name of the collection.
const groups = "notificationGroups"

// The types of notification groups.
const (
	byMail = "SMTP_SERVICE"
	byTrap = "SNMP_TRAP_SERVICE"
)

// registerGroups declares the collection of notification groups, and the table of their pending notices.
func registerGroups(r *resource.Registry) {
	r.Extension(&store.Extension{Name: groups, Migrations: migrations, Tables: []store.Table{
		{Name: "notice", Columns: []string{"receiver", "event"}, Key: 2, Derived: "events before a backup are not sent again after a restore"}}})
	r.Collection(resource.Collection{Name: groups, Parents: []string{""}, Guard: resource.Administration}, &NotificationGroup{})
}

// NotificationGroup receives notifications of events: its users and the members of its groups by mail, or the receivers of SNMP traps.
type NotificationGroup struct {
	schema.Head `unique:"all"`
	// NotificationType is the service that sends the notifications: SMTP_SERVICE sends mail, SNMP_TRAP_SERVICE sends traps.
	NotificationType string `api:"notificationType,required" enum:"SMTP_SERVICE|SNMP_TRAP_SERVICE"`
	// EventSubscriptions select the events to notify of; an empty list selects all.
	EventSubscriptions []EventSubscription `api:"eventSubscriptions,notNull"`
	// Subjects are the users and groups to notify by mail.
	Subjects schema.RefList `api:"subjects,writeOnly" ref:"User|UserGroup" onDelete:"clear"`
}

// EventSubscription selects events of one category.
type EventSubscription struct {
	// Category is the category of an Event.
	Category string `api:"category,required"`
	// EventTypes are the types of an Event; an empty list means all.
	EventTypes []string `api:"eventTypes,required"`
}

// Validate checks the name, the members and the events of a group.
func (x *NotificationGroup) Validate(c *resource.Change) error {
	switch {
	case x.NotificationType == byMail && strings.TrimSpace(x.Name) == "":
		return problem.Missing("name")
	case x.NotificationType == byTrap && x.Name != "":
		return problem.Field("UnsupportedResourceFieldValue", "name", "a group of the type %s cannot have a name", byTrap)
	case x.NotificationType == byTrap && len(x.Subjects.Items) > 0:
		return problem.Field("UnsupportedResourceFieldValue", "subjects",
			"traps are only sent to the receivers in --snmp-trap of the manager")
	}
	t := c.API.TypeNamed("Event")
	for i, s := range x.EventSubscriptions {
		if f := t.ByName["category"]; !slices.Contains(f.Enum, s.Category) {
			return problem.Field("InvalidEnumValue", "eventSubscriptions.category", "entry %d: must be one of %s", i, strings.Join(f.Enum, ", "))
		}
		for _, kind := range s.EventTypes {
			if f := t.ByName["eventType"]; !slices.Contains(f.Enum, kind) {
				return problem.Field("InvalidEnumValue", "eventSubscriptions.eventTypes", "entry %d: must be one of %s, not %q", i,
					strings.Join(f.Enum, ", "), kind)
			}
		}
	}
	return nil
}

// AfterWrite adds an event if the manager cannot notify the group yet. The mail server and the receivers of traps may be configured later.
func (x *NotificationGroup) AfterWrite(c *resource.Change) error {
	var lacks string
	if old, ok := c.Old.(*NotificationGroup); ok && old.NotificationType == x.NotificationType { // reported when it was created
		return nil
	}
	switch can := resource.Provided[Options](c.API.Provisions); {
	case x.NotificationType == byMail && !can.Mail:
		lacks = "no mail server: start it with --smtp"
	case x.NotificationType == byTrap && !can.Traps:
		lacks = "no receiver of traps: start it with --snmp-trap"
	default:
		return nil
	}
	return event.Add(c.Tx, event.Event{EventType: "WARNING", Category: "SYSTEM_MAINTENANCE", SourceName: cmp.Or(x.Name, byTrap),
		Message: "The notification group receives no notifications: the manager has " + lacks + "."}, x.ID)
}

// isSubscribed reports whether the group receives events of a category and a type.
func (x *NotificationGroup) isSubscribed(category, kind string) bool {
	return len(x.EventSubscriptions) == 0 || slices.ContainsFunc(x.EventSubscriptions, func(s EventSubscription) bool {
		return s.Category == category && (len(s.EventTypes) == 0 || slices.Contains(s.EventTypes, kind))
	})
}
