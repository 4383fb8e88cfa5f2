package authz

import "slices"

// Level is an access level. Each level includes the lower ones.
type Level int

// The access levels (defaultAccessLevel of an access right).
const (
	Hide Level = iota
	View
	Change
	Add
	Full
)

// levels are the names of the levels.
var levels = []string{"HIDE", "VIEW", "CHANGE", "ADD", "FULL"}

func (l Level) String() string { return levels[l] }

// levelOf returns the level with a name. An unknown name is Hide.
func levelOf(name string) Level { return Level(max(0, slices.Index(levels, name))) }

// place holds the rights at one resource; nil if there are none.
type place struct {
	rights []*AccessRight
	// own is the level of the resource itself and of everything below it, except for the types in special. lowest is the lowest of all these
	// levels.
	own, lowest Level
	special     map[string]Level
	// recommends is true if one of the rights has the workflow level RECOMMEND, approves if one has APPROVE.
	recommends, approves bool
}

// The workflow levels of a right.
const (
	noWorkflow = "NONE"
	recommends = "RECOMMEND"
	approves   = "APPROVE"
)

// combine computes the levels of the place. For each type, the highest level of its rights counts.
func (p *place) combine() {
	for _, r := range p.rights {
		p.own = max(p.own, levelOf(r.DefaultAccessLevel))
		p.recommends = p.recommends || r.WorkflowLevel == recommends
		p.approves = p.approves || r.WorkflowLevel == approves
	}
	named := make([]map[string]Level, len(p.rights))
	p.special = map[string]Level{}
	for i, r := range p.rights {
		named[i] = make(map[string]Level, len(r.AccessOverrides))
		for _, o := range r.AccessOverrides {
			named[i][o.ResourceType] = levelOf(o.AccessLevel)
			p.special[o.ResourceType] = Hide
		}
	}
	p.lowest = p.own
	for name := range p.special {
		level := Hide
		for i, r := range p.rights {
			one, overridden := named[i][name]
			if !overridden {
				one = levelOf(r.DefaultAccessLevel)
			}
			level = max(level, one)
		}
		if p.special[name] = level; level == p.own {
			delete(p.special, name)
		}
		p.lowest = min(p.lowest, level)
	}
}

// levelBelow returns the level of resources of a type below the place.
func (p *place) levelBelow(typeName string) Level {
	if p == nil {
		return Hide
	}
	if level, ok := p.special[typeName]; ok {
		return level
	}
	return p.own
}

// requiresApproval reports whether a change at a level needs an approval. typeName is the type of a resource below the place, or "" for the
// resource itself. One right with this level and without RECOMMEND makes the approval unnecessary.
func (p *place) requiresApproval(typeName string, level Level) bool {
	if p == nil || !p.recommends {
		return false
	}
	asks := false
	for _, r := range p.rights {
		if r.level(typeName) < level {
			continue
		}
		if r.WorkflowLevel != recommends {
			return false
		}
		asks = true
	}
	return asks
}

// requiresAnyApproval reports whether any change below the place, of any type and level, needs an approval.
func (p *place) requiresAnyApproval() bool {
	if p == nil || !p.recommends {
		return false
	}
	for level := Change; level <= Full; level++ {
		if p.requiresApproval("", level) {
			return true
		}
		for _, r := range p.rights {
			for _, o := range r.AccessOverrides {
				if p.requiresApproval(o.ResourceType, level) {
					return true
				}
			}
		}
	}
	return false
}

// minBelow returns the lowest level of any type below the place.
func (p *place) minBelow() Level {
	if p == nil {
		return Hide
	}
	return p.lowest
}

// ids returns the ids of the rights.
func (p *place) ids() (all []int64) {
	for _, r := range p.rights {
		all = append(all, r.ID)
	}
	return all
}

// allowsDeployment reports whether one of the rights allows a deployment of the given type.
func (p *place) allowsDeployment(typeName string) bool {
	return p != nil && slices.ContainsFunc(p.rights, func(r *AccessRight) bool {
		switch typeName {
		case "QuickDeployment":
			return r.QuickDeploymentsAllowed
		case "SelectiveDeployment":
			return r.SelectiveDeploymentsAllowed
		case "ValidationDeployment":
			return true
		}
		return r.DeploymentsAllowed
	})
}
