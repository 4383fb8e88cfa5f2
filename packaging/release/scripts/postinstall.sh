#!/bin/sh
# Tells systemd of the units, and starts the manager again where it ran before an upgrade. A first installation starts nothing.
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
    for unit in portolan portolan-agent; do
        systemctl try-restart "$unit.service" || true
    done
fi
if [ "$1" = configure ] && [ -z "$2" ] || [ "$1" = 1 ]; then
    echo "Portolan is installed. Look at /etc/portolan/portolan.yaml, then: systemctl enable --now portolan"
    echo "The password of admin is printed once, to the journal: journalctl -u portolan"
fi
