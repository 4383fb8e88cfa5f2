"""Asks a manager what the public package bluecat-libraries asks, unmodified. Arguments: the manager's URL, a user, a password, a bearer token."""

import csv
import io
import sys

from bluecat_libraries.address_manager.apiv2 import BAMV2ErrorResponse, Client, MediaType
from bluecat_libraries.address_manager.apiv2.constants import BAMCookieName

url, user, password, token = sys.argv[1:]
faults = []


def check(what, right, found=None):
    if not right:
        faults.append(f"{what}: {found!r}")


def refused(ask):
    try:
        ask()
    except BAMV2ErrorResponse as e:
        return e.status, e.code
    return None


c = Client(url)
check("before a sign-in", refused(lambda: c.http_get("/configurations")) == (401, "InvalidAuthorizationToken"))
check("a wrong password", refused(lambda: c.login(user, "wrong")) == (401, "InvalidAuthorizationCredentials"))
session = c.login(user, password)
check("sign-in", session["state"] == "LOGGED_IN" and c.username == user and c.is_read_only is False, session)
check("version", str(c.bam_version) >= "9.5.0", c.bam_version)

# Resources: made, listed by pages, replaced, changed, deleted.
conf = c.http_post("/configurations", json={"type": "Configuration", "name": "client"}, expected_status_codes=[201])
block = c.http_post(f"/configurations/{conf['id']}/blocks", json={"type": "IPv4Block", "range": "10.0.0.0/8"}, expected_status_codes=[201])
network = c.http_post(f"/blocks/{block['id']}/networks", json={"type": "IPv4Network", "range": "10.1.0.0/24", "name": "n"}, expected_status_codes=[201])
for _ in range(25):
    c.http_post(f"/networks/{network['id']}/addresses", json={"type": "IPv4Address", "state": "STATIC"})
page = c.http_get(f"/networks/{network['id']}/addresses", params={"limit": 7, "total": "true", "fields": "id,address"})
seen, total = [x["id"] for x in page["data"]], page["totalCount"]
while "next" in page["_links"]:
    page = c.http_get(page["_links"]["next"]["href"].removeprefix("/api/v2"))
    seen += [x["id"] for x in page["data"]]
check("pages", len(seen) == len(set(seen)) == total == 26, (len(seen), total))
network = c.http_get(f"/networks/{network['id']}")
check("PUT", c.http_put(f"/networks/{network['id']}", json=network | {"name": "replaced"})["name"] == "replaced")
check("PATCH", c.http_patch(f"/networks/{network['id']}", json={"name": "patched"}, headers={"Content-Type": MediaType.MERGE_PATCH_JSON})["name"] == "patched")

# Media types and refusals.
for media, start in {MediaType.JSON: dict, MediaType.HAL_JSON: dict, MediaType.CSV: str, MediaType.HTML: str}.items():
    check(media, isinstance(c.http_get("/configurations", headers={"Accept": media}), start))
rows = list(csv.reader(io.StringIO(c.http_get("/configurations", headers={"Accept": MediaType.CSV}))))
check("CSV", rows[0][0] == "id" and rows[0][2] == "name", rows[0])
check("404", refused(lambda: c.http_get("/networks/999999999")) == (404, "ResourceNotFound"))
check("409", refused(lambda: c.http_post("/configurations", json={"type": "Configuration", "name": "client"})) == (409, "ResourceAlreadyExists"))
check("400", refused(lambda: c.http_post("/configurations", json={"type": "Configuration"})) == (400, "MissingRequiredField"))

# The names at the apex of a zone are texts.
view = c.http_post(f"/configurations/{conf['id']}/views", json={"type": "View", "name": "v"})
zone = c.http_post(f"/views/{view['id']}/zones", json={"absoluteName": "client.example"})
apex = c.http_post(f"/zones/{zone['id']}/resourceRecords", json={"type": "TXTRecord", "name": "", "text": "x"})
check("apex", apex["name"] == "" and apex["absoluteName"] == "client.example", apex)
c.http_delete(f"/configurations/{conf['id']}")

# Other credentials: the client asks who they belong to.
for value in [f"Bearer {session['apiToken']}", f"Bearer {token}"]:
    other = Client(url)
    other.auth = value
    check("auth " + value[:11], other.username == user and other.is_authenticated, other.username)
other = Client(url)
other.set_cookie(BAMCookieName.API_TOKEN, session["apiToken"])
check("cookie", other.username == user, other.username)
check("sign-out", c.logout()["state"] == "LOGGED_OUT")
check("behind it", refused(lambda: other.http_get("/configurations")) is not None)
sys.exit("\n".join(faults) or 0)
