#!/bin/bash
# inspect and verify --sandbox: the same answers as without; what leads out of
# the given paths is refused; and code that runs inside, as that of an attacker
# would, gets no network, no program, no other file and no write.
set -euo pipefail
penstock=${PENSTOCK:?the command}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export XDG_CACHE_HOME=$dir/cache
# it looks for leaks in a process of its own, which the sandbox refuses
[ -z "${SANITIZE:-}" ] || export ASAN_OPTIONS=detect_leaks=0
cd "$dir"

fail() {
	echo "failed: $*" >&2
	[ ! -s err ] || cat err >&2
	exit 1
}

mkdir data
"$penstock" gen data/x.npy samples=300 shape=8 >log
"$penstock" gen t.tfrecord samples=300 shape=8 >log
"$penstock" gen c.h5ad samples=200 genes=50 >log
"$penstock" gen c.zarr samples=200 genes=50 >log
"$penstock" gen dna s.fa size=20k length=400 >log
seq 0 99 >ids.txt

# a kernel that cannot do it: refused, not half done
code=0
"$penstock" verify data --sandbox >log 2>err || code=$?
if grep -q 'the kernel does not support' err; then
	[ $code != 0 ] && [ ! -s log ] || fail "without Landlock: exit $code"
	echo "skipped: the kernel has no Landlock"
	exit 77
fi

# the same with it and without it
for what in data t.tfrecord c.h5ad c.zarr s.fa "data/*.npy" \
	"data/x.npy subset=ids.txt"; do
	# shellcheck disable=SC2086 # several words
	for command in verify inspect; do
		case $what in *\**) set -- "$what" ;; *) set -- $what ;; esac
		rm -rf cache
		"$penstock" $command "$@" index_cache=off 2>err |
			grep -v 'opened in\|store ' >plain || fail "$command $what"
		"$penstock" $command "$@" --sandbox 2>err |
			grep -v 'opened in\|store ' >inside ||
			fail "$command $what --sandbox"
		cmp -s plain inside || fail "$command $what: $(diff plain inside)"
		[ ! -e cache ] || fail "$command $what --sandbox wrote an index"
	done
done
"$penstock" verify data --sandbox --json | grep -q '"good_samples": *300' ||
	fail "verify --json"

# a link that leads out: read without it, refused with it
"$penstock" gen secret.npy samples=300 shape=8 >log
mkdir linked
ln -s ../secret.npy linked/x.npy
"$penstock" verify linked index_cache=off >log || fail "a link"
code=0
"$penstock" verify linked --sandbox >log 2>err || code=$?
[ $code != 0 ] || fail "a link out of the sandbox was followed"
grep -q 'ermission denied' err log || fail "what a link out of it says"

# what would be ignored is refused
code=0
"$penstock" verify data --sandbox index_cache=x 2>err || code=$?
[ $code = 2 ] && [ ! -e x ] || fail "index_cache= in a sandbox: exit $code"
code=0
"$penstock" verify data --sandbox store=uring >log 2>err || code=$?
[ $code != 0 ] || fail "io_uring works in a sandbox"

# an attacker that has taken control in the first read: each line of the output
# is a thing that worked
if [ -n "${SANITIZE:-}" ]; then
	echo "the sandbox holds (not tried from inside under a sanitizer)"
	exit 0
fi
cat >inside.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRY(what)                                                              \
	do {                                                                   \
		if ((long)(what) >= 0)                                         \
			dprintf(2, "worked: %s\n", #what);                     \
	} while (0)

static void attack(void)
{
	char *const argv[] = { "true", NULL };
	int pid;

	dprintf(2, "inside\n");
	TRY(socket(AF_INET, SOCK_STREAM, 0));
	TRY(socket(AF_UNIX, SOCK_DGRAM, 0));
	TRY(syscall(SYS_io_uring_setup, 1, argv));
	TRY(open("/etc/passwd", O_RDONLY));
	TRY(open("secret.npy", O_RDONLY));
	TRY(open("/proc/1/environ", O_RDONLY));
	TRY(open("data/x.npy", O_RDWR));
	TRY(open("data/new", O_WRONLY | O_CREAT, 0600));
	TRY(open("new", O_WRONLY | O_CREAT, 0600));
	TRY(syscall(SYS_creat, "data/new", 0600));
	TRY(truncate("data/x.npy", 0));
	TRY(unlink("data/x.npy"));
	TRY(rename("data/x.npy", "data/z.npy"));
	TRY(mkdir("data/d", 0700));
	TRY(chmod("data/x.npy", 0));
	TRY(symlink("a", "data/l"));
	TRY(kill(getppid(), 0));
	TRY(pid = fork());
	if (!pid)
		_exit(0);
	TRY(execv("/bin/true", argv));
}

ssize_t pread64(int fd, void *buf, size_t n, off64_t at)
{
	static int once;

	if (!__atomic_exchange_n(&once, 1, __ATOMIC_SEQ_CST))
		attack();
	return syscall(SYS_pread64, fd, buf, n, at);
}
ssize_t pread(int fd, void *buf, size_t n, off_t at)
{
	return pread64(fd, buf, n, at);
}
C
gcc -shared -fPIC -O1 -w -o inside.so inside.c || fail "the attacker's code"
LD_PRELOAD=$dir/inside.so "$penstock" verify data store=posix --sandbox \
	>log 2>err || fail "verify with an attacker inside"
grep -q '^inside$' err || fail "the attacker never ran"
! grep '^worked' err || fail "an attacker can do that"
grep -q '300 samples are good' log || fail "what verify says then"
# and without it, most of that works
mkdir control
cp -r data secret.npy control
(cd control && LD_PRELOAD=$dir/inside.so "$penstock" verify data store=posix \
	index_cache=off) >log 2>err || true
[ "$(grep -c '^worked' err)" -ge 10 ] || fail "the attacker can do nothing"
echo "the sandbox holds"
