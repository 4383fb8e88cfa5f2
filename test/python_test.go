package test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestPython checks the examples of the Python client's page.
func TestPython(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not here")
	}
	m := serve(t, "")
	m.setEnvironment()
	m.portolan("create", "configuration", "name=main")
	const script = `
import json, sys
from portolan import Portolan, PortolanError, NotFound
import portolan.types
p = Portolan()
plan = [{"type": "IPv4Block", "range": "10.0.0.0/8"}, {"type": "IPv4Network", "range": "10.1.0.0/24", "name": "office"}]
assert p.apply(plan, into="configurations/main", dry_run=True)["created"] == 2
assert p.count("networks") == 0
assert p.apply(plan, into="configurations/main", comment="from Python")["created"] == 2
assert p.apply(plan, into="configurations/main")["unchanged"] == 2
assert p.get("networks/10.1.0.0/24")["name"] == "office"
assert p.assign("networks/10.1.0.0/24", name="printer")["address"] == "10.1.0.2"
assert p.assign("blocks/10.0.0.0/8", range="/26")["range"] == "10.0.0.0/26"
assert [x["address"] for x in p.list("networks/10.1.0.0/24/addresses", filter="state:'STATIC'")] == ["10.1.0.2"]
assert len(list(p.list("locations", limit=3))) == 3
assert len(list(p.list("locations", fields="id"))) == p.count("locations")
assert p.update("networks/10.1.0.0/24", name="lab")["name"] == "lab"
last = next(p.list("transactions", order_by="desc(id)", limit=1))
p.undo(last["id"])
assert p.get("networks/10.1.0.0/24")["name"] == "office"
assert p.search("10.1.0.2", limit=1)
assert p.status()["version"]
p.delete("networks/10.0.0.0/26")
try:
    p.get("networks/10.0.0.0/26")
    sys.exit("it is still there")
except NotFound as e:
    assert "10.0.0.0/26" in e.message
try:
    p.create("configurations/main/blocks", type="IPv4Block", range="10.0.0.1/8")
    sys.exit("it was made")
except PortolanError as e:
    assert e.status == 400 and e.fields == ["range"], (e.status, e.fields)
try:
    Portolan(token="ptl_none").get("networks/1")
    sys.exit("a token that is none is taken")
except PortolanError as e:
    assert e.status == 401
assert Portolan(user="admin", password="a-long-password").count("networks") == 1
assert portolan.types.IPv4Network.__doc__
print("done")
`
	c := exec.Command(python, "-W", "error", "-c", script)
	c.Env = m.environment("PYTHONPATH=../clients/python", "PYTHONDONTWRITEBYTECODE=1")
	out, err := c.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "done\n") {
		t.Fatalf("%v\n%s", err, out)
	}
	m.check()
}
