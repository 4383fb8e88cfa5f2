package server

import (
	"net/http"
	"testing"
	"time"

	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/pgtest"
	"portolan/internal/wire/checkin"
)

// TestRightsFollowAnotherManager checks that a manager's cached conditions of a user's rights are invalidated when another manager changes
// the tree.
func TestRightsFollowAnotherManager(t *testing.T) {
	url := pgtest.URL(t)
	shared := func(o *Options) { o.Database = url }
	one := startManager(t, shared)
	two := startManager(t, shared)
	two.Token = one.Token
	configuration, _, _, block, _ := one.Basics()
	hidden := one.ID("/api/v2/tagGroups", `{"name":"hidden"}`)
	user, as := one.User("ada", "NO_ACCESS")
	one.Right(user, "", "VIEW", "")
	one.Right(user, hidden, "HIDE", "")
	one.Right(user, block, "HIDE", "")
	tags := one.Want(200, "GET", "/api/v2/tags", "", as).Count()
	networks := one.Want(200, "GET", "/api/v2/networks", "", as).Count()
	tag := two.ID("/api/v2/tagGroups/"+hidden+"/tags", `{"name":"outer"}`)
	two.ID("/api/v2/tags/"+tag+"/tags", `{"name":"inner"}`)
	inner := two.ID("/api/v2/blocks/"+block+"/blocks", `{"type":"IPv4Block","range":"10.200.0.0/16"}`)
	two.ID("/api/v2/blocks/"+inner+"/networks", `{"type":"IPv4Network","range":"10.200.0.0/24"}`)
	other := two.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"172.16.0.0/12"}`)
	two.ID("/api/v2/blocks/"+other+"/networks", `{"type":"IPv4Network","range":"172.16.0.0/24"}`)
	apitest.Eventually(t, "the first manager sees what the second has made, but for what is hidden", func() bool {
		return one.Want(200, "GET", "/api/v2/tags", "", as).Count() == tags &&
			one.Want(200, "GET", "/api/v2/networks", "", as).Count() == networks+1
	})
}

// TestHeadsFollowAnotherManager checks that the cached name of an address's parent follows a change immediately at the manager that made
// it, and at another manager with the next notification.
func TestHeadsFollowAnotherManager(t *testing.T) {
	url := pgtest.URL(t)
	shared := func(o *Options) { o.Database = url }
	one := startManager(t, shared)
	two := startManager(t, shared)
	two.Token = one.Token
	configuration, _, _, _, network := one.Basics()
	one.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC","address":"10.0.0.9"}`)
	name := func(m *manager) string {
		return m.Want(200, "GET", "/api/v2/addresses?"+filter("address:'10.0.0.9'"), "").Text("data.0.configuration.name")
	}
	called := "main"
	for _, next := range []string{"second", "third"} {
		for range 20 { // after some of these, rows are read without the names of their parents
			for _, m := range []*manager{one, two} {
				if got := name(m); got != called {
					t.Fatalf("the configuration is %q, and not %q", got, called)
				}
			}
		}
		one.Want(200, "PATCH", "/api/v2/configurations/"+configuration, `{"name":"`+next+`"}`, apitest.MergePatch)
		if got := name(one); got != next {
			t.Errorf("behind the acknowledgement the configuration is %q, and not %q", got, next)
		}
		apitest.Eventually(t, "the other manager has heard of it", func() bool { return name(two) == next })
		called = next
	}
}

// TestManagersShareADatabase checks that managers share only the database: a change at one applies at the other.
func TestManagersShareADatabase(t *testing.T) {
	url := pgtest.URL(t)
	shared := func(o *Options) { o.Database, o.Interval = url, 20*time.Second }
	one := startManager(t, shared)
	two := startManager(t, shared)
	one.Fleet.EndCheckins() // at its end nothing is waited for
	configuration, _, _, _, network := one.Basics()

	// A token of one is good at the other, until it is revoked there or here.
	two.Token = one.Token
	two.Want(200, "GET", "/api/v2/networks/"+network, "")
	session := one.Want(201, "POST", "/api/v2/sessions", `{"username":"admin","password":"`+adminPassword+`"}`, "Authorization:")
	credentials := "Authorization: Basic " + session.Text("basicAuthenticationCredentials")
	two.Want(200, "GET", "/api/v2/networks", "", credentials)
	one.Want(200, "PATCH", "/api/v2/sessions/"+session.Text("id"), `{"state":"LOGGED_OUT"}`, "Content-Type: application/merge-patch+json")
	apitest.Eventually(t, "the session has ended at the other manager", func() bool {
		return two.Do("GET", "/api/v2/networks", "", credentials).StatusCode == http.StatusUnauthorized
	})

	// The same Idempotency-Key at both makes one resource.
	body := `{"type":"IPv4Address","state":"STATIC"}`
	first := one.Want(201, "POST", "/api/v2/networks/"+network+"/addresses", body, "Idempotency-Key: k")
	again := two.Want(201, "POST", "/api/v2/networks/"+network+"/addresses", body, "Idempotency-Key: k")
	if string(first.Body) != string(again.Body) {
		t.Errorf("the second answer is %s, the first was %s", again.Body, first.Body)
	}
	// A change at one manager is visible at the other, including inlined names.
	one.Want(200, "PATCH", "/api/v2/configurations/"+configuration, `{"name":"renamed"}`, "Content-Type: application/merge-patch+json")
	if got := two.Want(200, "GET", "/api/v2/networks/"+network, "").Text("configuration.name"); got != "renamed" {
		t.Errorf("the other manager still says %q", got)
	}

	// A service point made at one enrols at the other and checks in with both; deleted at one, its
	// check-in held open at the other ends.
	id, key := one.create("wanderer")
	e := newEnrolment(t)
	status, answer := two.enrol(e, key)
	if status != 200 {
		t.Fatalf("enrolling at the other manager: %d %v", status, answer)
	}
	certificate := e.certificateOf(t, answer)
	report := &checkin.Report{Version: "1", Variant: checkin.Fleet, ErrorConditions: []string{}}
	for _, m := range []*manager{one, two} {
		if status, a := m.doorPost(checkin.CheckInPath, checkin.Request{Report: report}, certificate); status != 200 {
			t.Errorf("checking in: %d %v", status, a)
		}
		if got := one.Want(200, "GET", "/user/api/v1/fleetInstances/"+id, "").Text("status"); got != "HEALTHY" {
			t.Errorf("its status is %s", got)
		}
	}
	held := make(chan int, 1)
	go func() {
		status, _ := two.doorPost(checkin.CheckInPath, checkin.Request{Desired: 1, WaitSeconds: 30}, certificate)
		held <- status
	}()
	began := time.Now()
	one.Want(204, "DELETE", "/user/api/v1/fleetInstances/"+id, "")
	if status := <-held; status != http.StatusGone || time.Since(began) >= checkin.Interval {
		t.Errorf("the check-in that was held open ends with %d after %v", status, time.Since(began))
	}
	one.Verify()
}
