#!/bin/sh
# Installs, uses, upgrades and removes the package on a Debian of its own: this machine's files below a file system in memory that takes what
# is written, with a network of its own. Called in new namespaces of mounts, processes and network: install.sh SCRATCH OLD.deb NEW.deb
set -eu
scratch=$1 old=$(realpath "$2") new=$(realpath "$3")
mount -t tmpfs tmpfs "$scratch"
mkdir "$scratch/upper" "$scratch/work" "$scratch/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$scratch/upper,workdir=$scratch/work" "$scratch/root"
cp "$old" "$scratch/root/old.deb"
cp "$new" "$scratch/root/new.deb"
mount -t proc proc "$scratch/root/proc"
mount --rbind /dev "$scratch/root/dev"
mount -t tmpfs tmpfs "$scratch/root/run"
mount -t tmpfs tmpfs "$scratch/root/tmp"
ip link set lo up
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$scratch/root" sh -eu -c '
say() { echo "== $(($(date +%s) - began)) s: $*"; }
began=$(date +%s)
dpkg --force-depends -i /old.deb >/tmp/install.log 2>&1 || { cat /tmp/install.log; exit 1; }
grep -q "systemctl enable --now portolan" /tmp/install.log
portolan --version
man -w portolan >/dev/null 2>&1 || test -f /usr/share/man/man1/portolan.1
test -f /usr/share/bash-completion/completions/portolan
getent passwd portolan >/dev/null
say "installed"

# What the unit does, without systemd: its directories, its user, its command.
install -d -o portolan -g portolan -m 0700 /var/lib/portolan
as() { setpriv --reuid=portolan --regid=portolan --clear-groups "$@"; }
start() { # starts the manager and waits until it is ready
  PORTOLAN_ADMIN_PASSWORD=a-password-of-the-day setpriv --reuid=portolan --regid=portolan --clear-groups portolan serve --config /etc/portolan/portolan.yaml >>/tmp/manager.log 2>&1 &
  manager=$!
  for i in $(seq 600); do portolan ready --url http://127.0.0.1:8080 >/dev/null 2>&1 && return; sleep 0.05; done
  cat /tmp/manager.log; exit 1
}
as portolan serve --config /etc/portolan/portolan.yaml --check
start
say "the manager serves"
echo a-password-of-the-day | portolan login http://127.0.0.1:8080
portolan create configuration name=main
portolan create block range=10.0.0.0/8
portolan create network range=10.1.0.0/24 name=office
portolan assign networks/10.1.0.0/24 name=printer | grep -q "10.1.0.2"
say "the first address is assigned"

portolan fleet create quay >/tmp/quay
key=$(grep -o "ptlk_[A-Za-z0-9_-]*" /tmp/quay | head -1)
install -d -m 0700 /var/lib/portolan-agent
PORTOLAN_REGISTRATION_KEY=$key portolan agent --state /var/lib/portolan-agent --registration-endpoint https://127.0.0.1:8443/enrol/v1 \
  --diagnostics-listen 127.0.0.1:8083 --status-listen off --gateway off --ping-target off --http-target off >/tmp/agent.log 2>&1 &
agent=$!
for i in $(seq 600); do portolan fleet list --filter status=HEALTHY | grep -q quay && break; sleep 0.05; done
portolan fleet list | grep -q "quay.*HEALTHY" || { cat /tmp/agent.log; exit 1; }
say "the first service point is enrolled"

portolan backup --data /var/lib/portolan /tmp/backup
portolan restore --data /tmp/restored /tmp/backup
portolan check --data /tmp/restored | grep -q "no faults found"
say "the first backup is restored"
portolan status

# The next version takes its place, and finds everything.
kill $manager; wait $manager || true
dpkg --force-depends -i /new.deb >/tmp/upgrade.log 2>&1 || { cat /tmp/upgrade.log; exit 1; }
start
portolan --version
portolan get addresses/10.1.0.2 | grep -q printer
for i in $(seq 1200); do portolan fleet list --filter connectionStatus=CONNECTED | grep -q quay && break; sleep 0.05; done
portolan fleet list | grep -q "quay.*HEALTHY"
say "upgraded"

# And back: what the newer version has not changed the older one opens.
kill $manager; wait $manager || true
dpkg --force-depends --force-downgrade -i /old.deb >/tmp/downgrade.log 2>&1
start
portolan get addresses/10.1.0.2 | grep -q printer
say "gone back"
kill $agent $manager; wait || true
dpkg -r portolan >/dev/null 2>&1
test ! -e /usr/bin/portolan && test -f /etc/portolan/portolan.yaml && test -f /var/lib/portolan/portolan.db
dpkg -P portolan >/dev/null 2>&1
test ! -e /etc/portolan/portolan.yaml && test -f /var/lib/portolan/portolan.db
say "removed; the data is still there"
'
