package convert

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestKeaPair checks the settings of a pair of Kea: ranges for one of the servers serve all clients, hot-standby gives the primary all of
// them, and the maximum client lead time is shorter than each lease.
func TestKeaPair(t *testing.T) {
	d, err := Kea([]byte(`{"Dhcp4":{"hooks-libraries":[{"library":"/x/libdhcp_run_script.so","parameters":[1]},{"library":"/x/libdhcp_ha.so",
		"parameters":{"high-availability":[{"mode":"hot-standby","peers":[{"name":"a","role":"primary"},{"name":"b","role":"standby"},
		{"name":"c","role":"backup"}]}]}}],"client-classes":[{"name":"phones","test":"member('HA_a') and option[60].exists"}],
		"subnet4":[{"subnet":"10.1.0.0/24","pools":[{"pool":"10.1.0.9-10.1.0.20","client-class":"HA_b"},
		{"pool":"10.1.0.30-10.1.0.40","client-class":"phones","valid-lifetime":1200}]}]}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string][]string{}
	for _, r := range d.Resources {
		name := fmt.Sprint(r["name"], r["matchExpression"])
		values[name] = append(values[name], fmt.Sprint(r["in"], " ", r["value"]))
	}
	for name, want := range map[string][]string{"load-balance-split<nil>": {"<nil> 256"}, "mclt<nil>": {"<nil> 600"},
		"allow-dhcp-class-members<nil>":                                        {"ranges/10.1.0.30-10.1.0.40 [phones]"},
		"phonesif exists dhcp-message-type and exists vendor-class-identifier": {"<nil> <nil>"}} {
		if !slices.Equal(values[name], want) {
			t.Errorf("%s is %v in %v", name, values[name], values)
		}
	}
	notes := strings.Join(d.Notes(), "\n")
	for _, want := range []string{pairNote, "the backup server c", "libdhcp_run_script.so"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
	d.Serve([]int64{1, 2})
	if notes := d.Notes(); slices.ContainsFunc(notes, func(one string) bool { return strings.Contains(one, pairNote) }) {
		t.Errorf("with both servers the notes are %q", notes)
	}
	if _, err := Kea([]byte(`{"Dhcp4":{"hooks-libraries":[{"library":"libdhcp_ha.so","parameters":{"high-availability":7}}]}}`), nil); err != nil {
		t.Errorf("invalid parameters: %v", err)
	}
}

// TestKeaClassLeaseTimes checks that a class without a minimum or maximum lease time does not inherit those of the server, which its own
// lease time may exceed.
func TestKeaClassLeaseTimes(t *testing.T) {
	d, err := Kea([]byte(`{"Dhcp4":{"valid-lifetime":600,"min-valid-lifetime":300,"max-valid-lifetime":900,
		"client-classes":[{"name":"printers","test":"option[60].exists","valid-lifetime":7200},
		{"name":"phones","test":"option[61].exists","valid-lifetime":1200,"max-valid-lifetime":2400}],
		"subnet4":[{"subnet":"10.1.0.0/24"}]}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, r := range d.Resources {
		values[fmt.Sprint(r["in"], " ", r["name"])] = fmt.Sprint(r["value"])
	}
	for _, want := range []string{"printers min-lease-time 7200", "printers default-lease-time 7200", "printers max-lease-time 7200",
		"phones min-lease-time 1200", "phones default-lease-time 1200", "phones max-lease-time 2400"} {
		class, rest, _ := strings.Cut(want, " ")
		name, value, _ := strings.Cut(rest, " ")
		if got := values["clientClasses/"+class+" "+name]; got != value {
			t.Errorf("%s of the class %s is %q, want %s", name, class, got, value)
		}
	}
}
