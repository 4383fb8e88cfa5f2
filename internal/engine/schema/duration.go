package schema

import (
	"fmt"
	"strings"
	"time"

	"github.com/sosodev/duration"
)

// maxDuration is the longest accepted length of time; it is less than the range of time.Duration.
const maxDuration = 100 * 365 * 24 * time.Hour

// ParseDuration parses a length of time as in ISO 8601: PT30S, P7D, PT720H. A year has 365 days, a month 30.4167.
func ParseDuration(text string) (time.Duration, error) {
	d, err := duration.Parse(text)
	if err != nil || strings.HasPrefix(text, "-") || strings.HasSuffix(text, "T") || text == "P" {
		return 0, fmt.Errorf("%q is not a duration in ISO 8601, such as PT30S or P7D", text)
	}
	long := d.ToTimeDuration()
	if long < 0 || long > maxDuration || d.Years > 100 || d.Days > 36500 || d.Hours > 876000 {
		return 0, fmt.Errorf("%q is longer than 100 years", text)
	}
	return long, nil
}

// LengthOf returns the length of time in a field that was validated when it was set; 0 for other texts.
func LengthOf(text string) time.Duration {
	d, err := ParseDuration(text)
	if err != nil {
		return 0
	}
	return d
}
