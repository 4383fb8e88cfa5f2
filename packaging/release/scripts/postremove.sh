#!/bin/sh
# What the manager kept stays: /var/lib/portolan. dpkg --purge takes the settings away, and nothing of the data.
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
if [ "$1" = purge ] && [ -d /var/lib/portolan ]; then
    echo "The data of the manager is still in /var/lib/portolan: rm -r it where nobody needs it any more."
fi
