#!/bin/sh
# box.sh DIRECTORY KEEP COMMAND...: the first process of the box. Makes its file system, network and sysctls,
# then becomes COMMAND. DIRECTORY is an empty folder to mount on; KEEP lists needed folders, separated by `:`,
# that may be mounts of their own. Run by `unshare` (box.ts): everything ends with the namespaces.
set -eu
box=$1 keep=$2
shift 2
here=$PWD

# The machine's files, with changes in memory. Folders unfit for an upper layer are a plain tmpfs.
mount -t tmpfs -o size=2g box "$box"
mkdir "$box/upper" "$box/work" "$box/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$box/upper,workdir=$box/work" "$box/root"
# The kernel's trace has numbers of the machine's processes. Its /proc is below that of the box.
umount /proc
mkdir "$box/root/machine-proc"
mount --bind /proc "$box/root/machine-proc"
mount -o remount,bind,ro "$box/root/machine-proc"
mount -t proc proc /proc
[ -e /sys/kernel/tracing/instances ] || mount -t tracefs tracefs /sys/kernel/tracing || :
cd "$box/root"
for dir in proc sys dev; do mount --rbind "/$dir" "$dir"; done
mkdir -p run var/lib/containerd var/lib/kubelet tmp host
for dir in run var/lib/containerd var/lib/kubelet tmp; do mount -t tmpfs "$(basename $dir)" $dir; done
chmod 1777 tmp
IFS=:
for dir in $keep; do
  mkdir -p ".$dir"
  mount --bind "$dir" ".$dir"
  mount -o remount,bind,ro ".$dir"
done
unset IFS
mount --make-shared var/lib/kubelet

# The kubelet finds these sysctls set and does not change the machine's.
for pair in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
  kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
  file=$box/$(echo "${pair%=*}" | tr / -)
  echo "${pair#*=}" > "$file"
  mount --bind "$file" "proc/sys/${pair%=*}"
done

ip link set lo up
ip link add node0 type bridge # a kubelet takes no loopback address
ip address add 10.99.0.1/24 dev node0
ip address add 10.99.0.2/24 dev node0
ip link set node0 up

mkdir .machine
pivot_root . .machine
umount -l /.machine
rmdir /.machine
# The node as an agent in a container sees it: mounted at /host.
mount --rbind / /host
cd "$here"
exec "$@"
