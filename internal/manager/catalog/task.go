package catalog

import (
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerTasks declares the tasks of a user and the favorites of a user, which can be any resources.
func registerTasks(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "tasks", Parents: []string{"users"}, Guard: resource.Sessions, NoSearch: true}, &Task{})
	r.Links(resource.Links{Name: "favorites", From: []string{"users"}, To: "*"})
}

// Task is an entry in a user's to-do list.
type Task struct {
	schema.Head `head:"required,nonblank"`
	// Priority is the urgency of the task.
	Priority string `api:"priority,required" enum:"ALL|LOW|NORMAL|HIGH"`
	// State is the progress of the task.
	State string `api:"state,required" enum:"NOT_STARTED|IN_PROGRESS|COMPLETED|WAITING_FOR_OTHER|DEFERRED"`
	// PercentComplete is the completed part of the task, in percent.
	PercentComplete int64 `api:"percentComplete,required" min:"0" max:"100"`
	// StartDateTime is the planned start.
	StartDateTime time.Time `api:"startDateTime"`
	// DueDateTime is the planned end.
	DueDateTime time.Time `api:"dueDateTime"`
	// Comment is a free text.
	Comment string `api:"comment" length:"4000"`
}

// maxTasks is the maximum number of tasks of a user.
const maxTasks = 1000

// Validate rejects a task that ends before it starts, and a new task where the user has maxTasks already.
func (x *Task) Validate(c *resource.Change) error {
	if c.IsRequested() && c.IsCreation() {
		n, err := c.Tx.Count(store.Query{From: store.Resources, Where: store.All{store.InCollection("tasks"), store.HasParent(x.Parent)}})
		if err != nil {
			return err
		}
		if n >= maxTasks {
			return problem.Conflict("ResourceConflictsWithOther", "the user already has %d tasks, which is the maximum: delete some", n)
		}
	}
	switch {
	case x.Priority == "ALL":
		return problem.Field("InvalidEnumValue", "priority", "ALL is only supported in filters; must be LOW, NORMAL or HIGH")
	case !x.StartDateTime.IsZero() && !x.DueDateTime.IsZero() && x.DueDateTime.Before(x.StartDateTime):
		return problem.Field("InvalidStartEndDates", "dueDateTime", "is before startDateTime")
	}
	return nil
}
