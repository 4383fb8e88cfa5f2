package imports

// WriteSingly makes each row write its statements at once.
func (r *Runner) WriteSingly() { r.alwaysSingly = true }
