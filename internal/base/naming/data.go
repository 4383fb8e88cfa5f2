package naming

import (
	"fmt"
	"strings"

	dns "portolan/internal/base/dnsmsg"
)

// CheckData validates a record's data in zone-file syntax.
func CheckData(recordType, data string) error {
	if strings.ContainsAny(data, "\n\r") {
		return fmt.Errorf("must be one line")
	}
	rr, err := NewRecord("name.invalid.", 3600, recordType, data)
	if err != nil {
		return err
	}
	// Some errors, such as invalid base64, are only detected when the record is packed.
	if _, err := dns.PackRR(rr, make([]byte, dns.MaxMsgSize), 0, nil, false); err != nil {
		return fmt.Errorf("%q is not valid data for a %s record: %s", data, recordType, strings.TrimPrefix(err.Error(), "dns: "))
	}
	return nil
}
