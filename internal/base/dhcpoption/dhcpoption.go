// Package dhcpoption contains the definitions of the options of DHCP servers: those of the standards, and the settings of servers.
package dhcpoption

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
)

// Files are the tables of the definitions. The columns are: name, code, format, display name, description, other names.
//
//go:embed *.tsv
var Files embed.FS

// The tables of the options that servers send to clients.
const (
	Client4 = "dhcpv4_client"
	Client6 = "dhcpv6_client"
)

// Definition is the definition of an option that is sent to clients.
type Definition struct {
	// Name is the name of the option, and Code its number.
	Name string
	Code int
	// Format is the format of its values, such as ["<ipv4_address>"].
	Format string
	// OtherNames are further names of the option.
	OtherNames []string
}

// Read returns the definitions of a table of client options, in the order of the table.
func Read(table string) (all []Definition, err error) {
	text, err := Files.ReadFile(table + ".tsv")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") {
			continue
		}
		if len(parts) != 6 {
			return nil, fmt.Errorf("%s.tsv: %q has %d columns", table, line, len(parts))
		}
		d := Definition{Name: parts[0], Format: parts[2]}
		if d.Code, err = strconv.Atoi(parts[1]); err != nil {
			return nil, fmt.Errorf("%s.tsv: code of %s: %w", table, d.Name, err)
		}
		if parts[5] != "" {
			d.OtherNames = strings.Split(parts[5], ",")
		}
		all = append(all, d)
	}
	return all, nil
}
