package space

import "testing"

func TestHardware(t *testing.T) {
	for text, want := range map[string]string{
		"00:00:5e:00:53:01": "00-00-5E-00-53-01", "00-00-5E-00-53-01": "00-00-5E-00-53-01", "0000.5e00.5301": "00-00-5E-00-53-01",
		" 00005E005301 ":          "00-00-5E-00-53-01",
		"02:00:5e:10:00:00:00:01": "02-00-5E-10-00-00-00-01", "": "", "00:00:5e:00:53": "", "zz0000000000": "",
		"00:00:00:00:fe:80:00:00:00:00:00:00:02:00:5e:10:00:00:00:01": "",
	} {
		got := ""
		if mac, err := ParseHardware(text); err == nil {
			got = FormatHardware(mac)
		}
		if got != want {
			t.Errorf("%q is read as %q, want %q", text, got, want)
		}
	}
}
