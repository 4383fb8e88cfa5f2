# Copied by go generate ./clients/python from clients/python/portolan/__init__.py. Do not edit.
"""Portolan keeps the addresses, names and service points of a network.

    from portolan import Portolan

    p = Portolan("http://127.0.0.1:8080", token="ptl_...")
    p.apply([{"type": "IPv4Network", "range": "10.1.0.0/24", "name": "office"}], into="configurations/main")
    printer = p.assign("networks/10.1.0.0/24", name="printer")
    for network in p.list("networks", filter="range:within('10.0.0.0/8')"):
        print(network["range"], network["usage"])

It needs Python 3.9 and nothing else. What resources have is in portolan.types, made from the OpenAPI document.
"""

from __future__ import annotations

import json
import os
import ssl
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Dict, Iterable, Iterator, List, Optional

from .keys import KEYS

__all__ = ["Portolan", "PortolanError", "NotFound"]


class PortolanError(Exception):
    """An answer that says no: its HTTP status, its code (docs/errors.md), its message, and the fields that it is about."""

    def __init__(self, status: int, code: str, message: str, fields: List[str]):
        super().__init__(f"{message} ({status} {code})")
        self.status, self.code, self.message, self.fields = status, code, message, fields


class NotFound(PortolanError):
    """There is no such resource."""


def quoted(text: str) -> str:
    """A text as filters have it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


class Portolan:
    """A manager.

    url is its URL. token is a bearer token; without one, user and password go as Basic credentials; without these PORTOLAN_URL and
    PORTOLAN_TOKEN hold. ca is a file with the authority to trust, in PEM, beside the system's. timeout is how long an answer may take, in
    seconds.
    """

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, user: Optional[str] = None,
                 password: Optional[str] = None, ca: Optional[str] = None, timeout: float = 60):
        self.url = (url or os.environ.get("PORTOLAN_URL") or "http://127.0.0.1:8080").rstrip("/")
        self.timeout = timeout
        self._headers = {"Accept": "application/json", "User-Agent": "portolan-python"}
        if user is not None:
            import base64
            credentials = base64.b64encode(f"{user}:{password or ''}".encode()).decode()
            self._headers["Authorization"] = "Basic " + credentials
        else:
            self._headers["Authorization"] = "Bearer " + (token or os.environ.get("PORTOLAN_TOKEN") or "")
        self._tls = None
        if self.url.startswith("https:"):
            self._tls = ssl.create_default_context()
            if ca:
                self._tls.load_verify_locations(ca)

    def ask(self, method: str, path: str, body: Any = None, headers: Optional[Dict[str, str]] = None) -> Any:
        """Sends a request below /api/v2, or to a path that begins with /, and gives the answer; None where it is empty."""
        url = self.url + (path if path.startswith("/") else "/api/v2/" + path)
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data=data, method=method, headers={**self._headers, **(headers or {})})
        if data is not None:
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=self.timeout, context=self._tls) as answer:
                raw = answer.read()
        except urllib.error.HTTPError as e:
            raise _refused(e) from None
        return json.loads(raw) if raw else None

    def list(self, path: str, filter: Optional[str] = None, order_by: Optional[str] = None, fields: Optional[str] = None,
             limit: Optional[int] = None) -> Iterator[Dict[str, Any]]:
        """Gives the resources of a collection such as "networks", or of a subcollection such as "networks/10.1.0.0/24/addresses", page by
        page; limit is the most that are given."""
        query = {"filter": filter, "orderBy": order_by, "fields": fields, "limit": str(min(limit or 1000, 1000))}
        text = urllib.parse.urlencode({k: v for k, v in query.items() if v})
        at, left = "/api/v2/" + self.path(path) + "?" + text, limit
        while at:
            page = self.ask("GET", at)
            for one in page["data"]:
                if left is not None:
                    if left == 0:
                        return
                    left -= 1
                yield one
            at = page.get("_links", {}).get("next", {}).get("href")

    def count(self, path: str, filter: Optional[str] = None) -> int:
        """How many there are."""
        query = {"total": "true", "limit": "1", "fields": "id", **({"filter": filter} if filter else {})}
        return self.ask("GET", self.path(path) + "?" + urllib.parse.urlencode(query))["totalCount"]

    def path(self, path: str) -> str:
        """A path with the number of the resource that it names: networks/10.1.0.0/24/addresses is networks/100123/addresses."""
        collection, _, rest = path.strip("/").partition("/")
        if not rest or rest.split("/")[0].isdigit():
            return path.strip("/")
        key, _, sub = rest.rpartition("/")
        if not key or not sub.isalpha() or not sub[0].islower():
            key, sub = rest, ""
        field = KEYS.get(collection, "name")
        found = self.ask("GET", collection + "?" + urllib.parse.urlencode({"filter": field + ":" + quoted(key), "limit": 2, "fields": "id"}))
        if len(found["data"]) != 1 and sub:  # a name with a slash
            key, sub = rest, ""
            found = self.ask("GET", collection + "?" + urllib.parse.urlencode({"filter": field + ":" + quoted(key), "limit": 2, "fields": "id"}))
        if not found["data"]:
            raise NotFound(404, "ResourceNotFound", f"{collection} contains no resource with the {field} {key!r}", [])
        if len(found["data"]) > 1:
            raise PortolanError(409, "ConflictingResourceFieldValues", f"several {collection} have the {field} {key!r}: use the id", [])
        return f"{collection}/{found['data'][0]['id']}" + ("/" + sub if sub else "")

    def get(self, path: str, fields: Optional[str] = None) -> Dict[str, Any]:
        """A resource, such as networks/10.1.0.0/24."""
        return self.ask("GET", self.path(path) + ("?" + urllib.parse.urlencode({"fields": fields}) if fields else ""))

    def create(self, path: str, **members: Any) -> Dict[str, Any]:
        """Makes a resource in a collection, such as configurations/main/blocks."""
        return self.ask("POST", self.path(path), members)

    def update(self, path: str, **members: Any) -> Dict[str, Any]:
        """Changes fields of a resource."""
        return self.ask("PATCH", self.path(path), members)

    def delete(self, path: str) -> None:
        """Deletes a resource with all that lies below it."""
        self.ask("DELETE", self.path(path))

    def assign(self, path: str, **members: Any) -> Dict[str, Any]:
        """Assigns what is free next: an address of a network, or, with range="/26", a network of a block."""
        path = self.path(path)
        above = self.get(path, fields="id,type")["type"]
        if path.startswith("networks/"):
            return self.ask("POST", path + "/addresses", {"type": above[:4] + "Address", "state": "STATIC", **members})
        return self.ask("POST", path + "/networks", {"type": above[:4] + "Network", **members})

    def apply(self, resources: Iterable[Dict[str, Any]], into: Optional[str] = None, defaults: Optional[Dict[str, Any]] = None,
              tag: Optional[str] = None, prune: bool = False, dry_run: bool = False, comment: Optional[str] = None) -> Dict[str, Any]:
        """Lets resources be as they are given, in one transaction, all or none (docs/apply.md). dry_run only tries it."""
        body: Dict[str, Any] = {"resources": list(resources)}
        for name, value in (("into", into), ("defaults", defaults), ("tag", tag), ("prune", prune or None)):
            if value is not None:
                body[name] = value
        headers = {}
        if dry_run:
            headers["x-portolan-dry-run"] = "true"
        if comment:
            headers["x-bcn-change-control-comment"] = comment
        answer = self.ask("POST", "apply", body, headers)
        return answer["resource"] if dry_run and answer.get("resource") else answer

    def undo(self, transaction: int) -> Dict[str, Any]:
        """Takes a transaction back."""
        return self.ask("POST", "transactions", {"transactionType": "UNDO", "transactionId": transaction})

    def search(self, text: str, limit: int = 20) -> List[Dict[str, Any]]:
        """What a text may mean, best first."""
        return self.ask("GET", "search?" + urllib.parse.urlencode({"q": text, "limit": limit}))["data"]

    def status(self) -> Dict[str, Any]:
        """How the manager is."""
        return self.ask("GET", "status")


def _refused(e: urllib.error.HTTPError) -> PortolanError:
    try:
        said = json.loads(e.read())
        code, message, fields = said.get("code", ""), said.get("message", ""), said.get("fields") or []
    except ValueError:
        code, message, fields = "", "the answer is no error of Portolan's", []
    return (NotFound if e.code == 404 else PortolanError)(e.code, code, message, fields)
