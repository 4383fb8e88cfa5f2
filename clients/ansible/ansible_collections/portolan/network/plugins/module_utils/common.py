"""What the modules have in common: how the manager is reached."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ansible.module_utils.basic import env_fallback

from .client import Portolan, PortolanError

REACHED = dict(
    url=dict(type="str", fallback=(env_fallback, ["PORTOLAN_URL"]), default="http://127.0.0.1:8080"),
    token=dict(type="str", no_log=True, fallback=(env_fallback, ["PORTOLAN_TOKEN"]), required=True),
    ca=dict(type="path", fallback=(env_fallback, ["PORTOLAN_CA"])),
)


def reach(module):
    """The manager that a module's options name."""
    return Portolan(url=module.params["url"], token=module.params["token"], ca=module.params["ca"])


def refused(module, error):
    """Ends a module with what the manager refused."""
    if isinstance(error, PortolanError):
        module.fail_json(msg=error.message, status=error.status, code=error.code, fields=error.fields)
    module.fail_json(msg="connect to the manager at %s: %s" % (module.params["url"], error))
