#!/bin/sh
# Makes the user that the manager runs as. Called by dpkg and rpm before files are unpacked.
set -e
if ! getent group portolan >/dev/null 2>&1; then
    groupadd --system portolan 2>/dev/null || addgroup --system portolan
fi
if ! getent passwd portolan >/dev/null 2>&1; then
    useradd --system --gid portolan --home-dir /var/lib/portolan --no-create-home --shell /usr/sbin/nologin portolan 2>/dev/null ||
        adduser --system --ingroup portolan --home /var/lib/portolan --no-create-home --shell /usr/sbin/nologin portolan
fi
