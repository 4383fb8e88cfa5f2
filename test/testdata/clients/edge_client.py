"""Signs in by a key and lists service points, with the public package bluecat-libraries."""
import json
import sys

from bluecat_libraries.edge.api import EdgeClient

url, key = sys.argv[1], json.loads("".join(sys.argv[2:]))
client = EdgeClient(url)
client.authenticate(key["clientId"], key["clientSecret"])
answer = client.http_get(client._url_for("/user/api/v1/fleetInstances"))
assert answer.status_code == 200, answer.text
answer.json()
