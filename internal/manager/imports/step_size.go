package imports

import "time"

// nextStep returns the size of the next step, after the work of a step of n rows, at most size, took a time.
func nextStep(size, n int, took time.Duration, othersWait bool) int {
	longest := longStepTime
	if othersWait {
		longest = stepTime
	}
	switch {
	case took < longest/2:
		return min(size*2, maxStepRows)
	case took > longest:
		return max(int(int64(n)*int64(longest)/int64(took)), 1)
	}
	return size
}
