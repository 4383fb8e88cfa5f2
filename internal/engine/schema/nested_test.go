package schema

import (
	"encoding/json"
	"testing"
	"time"
)

type boat struct {
	Head
	Engine *engine         `api:"engine"`
	Crew   []sailor        `api:"crew" min:"1" max:"3"`
	Code   Secret          `api:"code"`
	Extra  json.RawMessage `api:"extra,any"`
	Pause  string          `api:"pause,duration"`
	Days   []string        `api:"days" enum:"MON|TUE"`
}

type engine struct {
	Fuel   string `api:"fuel,required,variant" enum:"DIESEL|SUN"`
	Litres *int64 `api:"litres" min:"1" for:"DIESEL"`
	Panels int64  `api:"panels,notNull" for:"SUN"`
	Key    Secret `api:"key"`
	Tank   *tank  `api:"tank"`
}

type tank struct {
	Size int64 `api:"size,required" min:"1"`
}

type sailor struct {
	Name string `api:"name,required,nonblank"`
	Pin  Secret `api:"pin"`
}

func (s *sailor) Check() error {
	if s.Name == "nobody" {
		return MemberError("name", "is nobody")
	}
	return nil
}

func read(t *testing.T, o *boat, body string) string {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &members); err != nil {
		t.Fatal(err)
	}
	_, problems := Declare(&boat{}).Decode(o, members, true)
	if len(problems) == 0 {
		return ""
	}
	return problems[0].Code + " " + problems[0].Message
}

// TestNestedMembers checks that members of nested objects are validated like fields, and that errors have their whole path.
func TestNestedMembers(t *testing.T) {
	for body, want := range map[string]string{
		`{"engine":{"fuel":"DIESEL","litres":5,"tank":{"size":3}}}`:      "",
		`{"engine":{"fuel":"SUN","panels":5}}`:                           "",
		`{"engine":{"fuel":"SUN","litres":5}}`:                           "InvalidResourceFieldValue engine.litres: is allowed only if fuel is DIESEL",
		`{"engine":{}}`:                                                  "MissingRequiredField engine.fuel: is required and missing",
		`{"engine":{"fuel":"COAL"}}`:                                     `InvalidEnumValue engine.fuel: must be one of DIESEL, SUN, not "COAL"`,
		`{"engine":{"fuel":"DIESEL","litres":0}}`:                        "ValueLessThanMinimum engine.litres: must be 1 or more",
		`{"engine":{"fuel":"DIESEL","tank":{"size":0}}}`:                 "ValueLessThanMinimum engine.tank.size: must be 1 or more",
		`{"engine":[]}`:                                                  "JsonDeserializationError engine: must be an object",
		`{"crew":[]}`:                                                    "EmptyFieldValue crew: must have 1 or more entries",
		`{"crew":[{"name":"a"},{"name":" "}]}`:                           "BlankFieldValue crew[1].name: must not be blank",
		`{"crew":[{"name":"nobody"}]}`:                                   "InvalidResourceFieldValue crew[0].name: is nobody",
		`{"crew":[{"name":"a"},{"name":"a"},{"name":"a"},{"name":"a"}]}`: "ArrayFieldTooBig crew: must have at most 3 entries",
		`{"code":{"$sealed":"1.x"}}`:                                     "JsonDeserializationError code: must be a string",
		`{"extra":[1,"a"]}`:                                              "",
		`{"extra":true}`:                                                 "",
		`{"pause":"PT30S"}`:                                              "",
		`{"pause":"30 s"}`:                                               `InvalidDurationValue pause: "30 s" is not a duration in ISO 8601, such as PT30S or P7D`,
		`{"days":["MON","WED"]}`:                                         `InvalidEnumValue days: entry 1 must be one of MON, TUE, not "WED"`,
	} {
		if got := read(t, &boat{}, body); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// TestNestedSecrets checks that nested objects are written and read without members of other variants. Secrets are hidden when shown, and
// stay unchanged if a request does not set them.
func TestNestedSecrets(t *testing.T) {
	typ := Declare(&boat{})
	o := &boat{}
	o.Type = "boat"
	if p := read(t, o, `{"code":"c","engine":{"fuel":"SUN","key":"k"},"crew":[{"name":"a","pin":"1"},{"name":"b","pin":"2"}]}`); p != "" {
		t.Fatal(p)
	}
	if _, err := typ.Row(o, nil); err == nil {
		t.Error("a secret that is not sealed was written")
	}
	if err := typ.EachSecret(o, func(path string, s *Secret) error {
		s.Sealed, s.Plain = path+"="+s.Plain, ""
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	row, err := typ.Row(o, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"engine":{"fuel":"SUN","panels":0,"key":null,"tank":null},"crew":[{"name":"a","pin":null},{"name":"b","pin":null}],` +
		`"code":null,"days":[]}`
	if shown := string(Hide(row.Body)); shown != want {
		t.Errorf("it is shown as %s", shown)
	}
	again, err := typ.Object(row)
	if err != nil {
		t.Fatal(err)
	}
	b := again.(*boat)
	fresh := &boat{}
	if p := read(t, fresh, `{"code":null,"engine":{"fuel":"SUN","key":""},"crew":[{"name":"b"},{"name":"c"},{"name":"a","pin":"9"}]}`); p != "" {
		t.Fatal(p)
	}
	typ.KeepSecrets(b, fresh)
	if fresh.Code.Sealed != "code=c" || fresh.Engine.Key.Set() || fresh.Crew[0].Pin.Sealed != "crew[].pin=2" || fresh.Crew[1].Pin.Set() ||
		fresh.Crew[2].Pin.Plain != "9" || fresh.Crew[2].Pin.Sealed != "" {
		t.Errorf("what is kept: %+v %+v", fresh, fresh.Engine)
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{"PT30S": 30 * time.Second, "P7D": 168 * time.Hour, "PT720H": 720 * time.Hour,
		"P1DT12H": 36 * time.Hour, "PT0S": 0, "P1W": 168 * time.Hour} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
	for _, text := range []string{"", "P", "PT", "30", "-PT1S", "PT1S ", "P1", "P900000D", "PTS60"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
