package dnspublish

import (
	"fmt"
	"slices"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// endGroup updates the deployment of a server group after one of its parts has ended or is being deleted. group may be 0 for none. without
// is the part that is being deleted; 0 for none. The group has FAILED if one part has. A group that has ended is not changed.
func endGroup(c *resource.Change, group, without int64) error {
	if group == 0 {
		return nil
	}
	row, err := c.Tx.Get(group)
	if store.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	object, err := c.API.Object(row)
	if err != nil || !headOf(object).CompletionDateTime.IsZero() {
		return err
	}
	parts, err := partsOf(c.Tx, group)
	if err != nil {
		return err
	}
	parts = slices.DeleteFunc(parts, func(r *store.Resource) bool { return r.ID == without })
	ended, state, message := 0, completed, ""
	for _, r := range parts {
		o, err := c.API.Object(r)
		if err != nil {
			return err
		}
		x := headOf(o)
		switch {
		case x.State == failed:
			state = failed
		case x.State == warned && state == completed:
			state = warned
		case x.State != completed && x.State != warned:
			continue
		}
		ended++
		message = joinSentences(message, fmt.Sprintf("server %d: %s", r.Parent, x.State))
	}
	if without != 0 {
		message = joinSentences(message, "a server was deleted")
	}
	return updateDeployment(c, row, func(x *DeploymentHead) {
		if ended == len(parts) {
			x.end(c.Tx, state, message)
			return
		}
		percent := int64(100 * ended / len(parts))
		x.PercentComplete = &percent
	})
}

// deployedTo returns the target of a deployment in words: its server, group, zone or network; empty where it has several targets.
func deployedTo(tx *store.Tx, row *store.Resource) (string, error) {
	above, err := tx.Head(row.Parent)
	if store.IsNotFound(err) {
		return "", nil
	}
	if err != nil || above.Name == "" {
		return "", err
	}
	return fmt.Sprintf(" of %s %s", above.Type, above.Name), nil
}

// partsOf returns the deployments of single servers that are the parts of the deployment of a server group.
func partsOf(tx *store.Tx, group int64) (parts []*store.Resource, err error) {
	err = tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection(deployments),
		store.LinksTo{Targets: []int64{group}, Field: "group"}}}, func(r *store.Resource) error {
		parts = append(parts, r.Clone())
		return nil
	})
	return parts, err
}
