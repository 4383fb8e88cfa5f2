package naming

import (
	"fmt"
	"strings"

	"github.com/miekg/dns"
)

// CheckData says what is wrong with a record's data in zone-file syntax. Types that the DNS library
// does not know pass when they are one line.
func CheckData(recordType, data string) error {
	if strings.ContainsAny(data, "\n\r") {
		return fmt.Errorf("must be one line")
	}
	if _, known := dns.StringToType[recordType]; !known {
		return nil
	}
	rr, err := dns.NewRR("name.invalid. 3600 IN " + recordType + " " + data)
	if err != nil {
		reason := strings.TrimPrefix(err.Error(), "dns: ")
		if at := strings.Index(reason, " at line"); at > 0 {
			reason = reason[:at]
		}
		return fmt.Errorf("%q is no data of a record %s: %s", data, recordType, reason)
	}
	if rr == nil || dns.TypeToString[rr.Header().Rrtype] != recordType {
		return fmt.Errorf("%q is no data of a record %s", data, recordType)
	}
	return nil
}
