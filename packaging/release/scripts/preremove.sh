#!/bin/sh
# Stops what runs before the program goes; not where a newer version takes its place.
set -e
if [ "$1" = remove ] || [ "$1" = 0 ]; then
    if [ -d /run/systemd/system ]; then
        systemctl disable --now portolan.service portolan-agent.service 2>/dev/null || true
    fi
fi
