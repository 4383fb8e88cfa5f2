package catalog

import (
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerTasks declares what belongs to a user alone: the tasks, and the favorites, which are any resources.
func registerTasks(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "tasks", Parents: []string{"users"}, Guard: resource.Sessions, NoSearch: true}, &Task{})
	r.Links(resource.Links{Name: "favorites", From: []string{"users"}, To: "*"})
}

// Task is something that a user has to do.
type Task struct {
	schema.Head `head:"required,nonblank"`
	// Priority is how urgent it is.
	Priority string `api:"priority,required" enum:"ALL|LOW|NORMAL|HIGH"`
	// State is how far it is.
	State string `api:"state,required" enum:"NOT_STARTED|IN_PROGRESS|COMPLETED|WAITING_FOR_OTHER|DEFERRED"`
	// PercentComplete is how far it is, in percent.
	PercentComplete int64 `api:"percentComplete,required" min:"0" max:"100"`
	// StartDateTime is when it is begun.
	StartDateTime time.Time `api:"startDateTime"`
	// DueDateTime is when it should be done.
	DueDateTime time.Time `api:"dueDateTime"`
	// Comment says what there is to say.
	Comment string `api:"comment" length:"4000"`
}

// maxTasks is how many tasks a user has.
const maxTasks = 1000

// Validate refuses a task that ends before it begins, and one more than maxTasks.
func (x *Task) Validate(c *resource.Change) error {
	if c.Requested() && c.Creates() {
		n, err := c.Tx.Count(store.Query{From: store.Resources, Where: store.All{store.InCollection("tasks"), store.HasParent(x.Parent)}})
		if err != nil {
			return err
		}
		if n >= maxTasks {
			return problem.Conflict("ResourceConflictsWithOther", "the user has %d tasks, and may have no more: delete some", n)
		}
	}
	switch {
	case x.Priority == "ALL":
		return problem.Field("InvalidEnumValue", "priority", "ALL is for filters; a task is LOW, NORMAL or HIGH")
	case !x.StartDateTime.IsZero() && !x.DueDateTime.IsZero() && x.DueDateTime.Before(x.StartDateTime):
		return problem.Field("InvalidStartEndDates", "dueDateTime", "lies before startDateTime")
	}
	return nil
}
