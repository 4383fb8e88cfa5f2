package resource

// Provisions hold the values that the packages of a manager receive at its start, one value of each type. The code that starts the
// manager sets them before the first request (Provide); the package that declares a type reads its own (Provided). Reading is not safe
// while a value is set.
type Provisions struct{ byType map[any]any }

// Provide stores the value of type T in place of the one before.
func Provide[T any](p *Provisions, value T) { p.byType[(*T)(nil)] = value }

// Provided returns the value of type T; the zero value if none was set.
func Provided[T any](p *Provisions) T {
	value, _ := p.byType[(*T)(nil)].(T)
	return value
}

// Provisions returns the provisions of the API that follows from the registry.
func (r *Registry) Provisions() *Provisions {
	if r.provisions == nil {
		r.provisions = &Provisions{byType: map[any]any{}}
	}
	return r.provisions
}
