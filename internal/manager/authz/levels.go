package authz

import "slices"

// Level is what may be done with resources: each has what those before it have.
type Level int

// The levels (defaultAccessLevel of an access right).
const (
	Hide Level = iota
	View
	Change
	Add
	Full
)

// levels are their names.
var levels = []string{"HIDE", "VIEW", "CHANGE", "ADD", "FULL"}

func (l Level) String() string { return levels[l] }

// levelOf gives the level of a name, which was checked.
func levelOf(name string) Level { return Level(max(0, slices.Index(levels, name))) }

// place is what is said at one resource; nil is where nothing is said.
type place struct {
	rights []*AccessRight
	// own is the level of the resource itself, and of what lies below it, but for resources of special types, which have others. least is
	// the lowest of all these.
	own, least Level
	special    map[string]Level
	// recommends says that one of the rights lets changes be asked for, approves that one lets others' be approved.
	recommends, approves bool
}

// The workflow levels of a right.
const (
	noWorkflow = "NONE"
	recommends = "RECOMMEND"
	approves   = "APPROVE"
)

// settle finds out what its rights say together: of each type the highest level that one of them gives.
func (p *place) settle() {
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
	p.least = p.own
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
		p.least = min(p.least, level)
	}
}

// below is the level of resources of a type below it.
func (p *place) below(typeName string) Level {
	if p == nil {
		return Hide
	}
	if level, ok := p.special[typeName]; ok {
		return level
	}
	return p.own
}

// asks reports whether a change that takes a level has to be asked for: of resources of a type below it, or, with the type "", of the
// resource itself. It has not where one of the rights that give the level lets it be made.
func (p *place) asks(typeName string, level Level) bool {
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

// asksAny reports whether a change of a resource of any type below it, at any level, has to be asked for.
func (p *place) asksAny() bool {
	if p == nil || !p.recommends {
		return false
	}
	for level := Change; level <= Full; level++ {
		if p.asks("", level) {
			return true
		}
		for _, r := range p.rights {
			for _, o := range r.AccessOverrides {
				if p.asks(o.ResourceType, level) {
					return true
				}
			}
		}
	}
	return false
}

// leastBelow is the lowest level of any type below it.
func (p *place) leastBelow() Level {
	if p == nil {
		return Hide
	}
	return p.least
}

// ids are the numbers of its rights.
func (p *place) ids() (all []int64) {
	for _, r := range p.rights {
		all = append(all, r.ID)
	}
	return all
}

// deploys reports whether one of the rights lets its user deploy by a deployment of a type.
func (p *place) deploys(typeName string) bool {
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
