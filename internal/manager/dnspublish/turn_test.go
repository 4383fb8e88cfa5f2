package dnspublish

import "testing"

// TestUsersTakeTurnsInDeployments checks that a user with very many deployments does not block other users: users take turns.
func TestUsersTakeTurnsInDeployments(t *testing.T) {
	d := &Deployer{turns: map[int64]int64{}}
	next := map[int64]int64{1: 100, 2: 0, 3: 0} // the first deployment of each user; 0 for none
	pick := func() int64 {
		first := map[int64]int64{}
		for user, id := range next {
			if id != 0 {
				first[user] = id
			}
		}
		id := d.nextInTurn(first)
		for user, one := range next {
			if one == id {
				next[user]++
				return user
			}
		}
		t.Fatalf("%d is of nobody", id)
		return 0
	}
	for range 50 {
		if user := pick(); user != 1 {
			t.Fatalf("it is the turn of %d", user)
		}
	}
	next[2] = 1000
	came := map[int64]int{}
	for range 10 {
		came[pick()]++
	}
	if came[2] < 5 {
		t.Errorf("the user who came later has had %d of 10 turns", came[2])
	}
	next[3], next[2] = 2000, 0
	if user := pick(); user != 3 && pick() != 3 {
		t.Error("the third user waits for more than one other")
	}
}
