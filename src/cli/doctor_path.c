/* doctor: the file system and the device that hold a path. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "cli/doctor.h"
#include "emulate/system.h"
#include "make/maker.h"

struct mount {
	char dir[1024], type[64], options[512];
};

/* The mount of a path: the longest mount point that is a prefix of it. */
static bool mount_of(const char *path, struct mount *out)
{
	char *text = pen__proc_read("/proc/self/mounts");
	size_t best = 0;
	bool found = false;

	for (char *line = text, *next; line && *line; line = next) {
		char dir[1024], type[64], options[512];
		size_t n;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (sscanf(line, "%*s %1023s %63s %511s", dir, type, options) !=
		    3)
			continue;
		n = strlen(dir);
		if (n < best || strncmp(path, dir, n) ||
		    (n > 1 && path[n] && path[n] != '/'))
			continue;
		best = n;
		found = true;
		memcpy(out->dir, dir, sizeof(dir));
		memcpy(out->type, type, sizeof(type));
		memcpy(out->options, options, sizeof(options));
	}
	pen__free(text);
	return found;
}

static bool has_option(const char *options, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = options; *p; p += strcspn(p, ",") + 1) {
		if (strcspn(p, ",") == n && !strncmp(p, name, n))
			return true;
		if (!p[strcspn(p, ",")])
			break;
	}
	return false;
}

static bool is_one_of(const char *type, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(type, *list))
			return true;
	return false;
}

static void check_mount(struct doctor *d, const struct mount *m)
{
	static const char *const memory[] = { "tmpfs", "ramfs", NULL };
	static const char *const far[] = { "nfs",    "nfs4", "cifs", "smb3",
					   "lustre", "gpfs", "ceph", "beegfs",
					   "9p",     "fuse", NULL };

	if (is_one_of(m->type, memory)) {
		doctor_say(d, "file system", DOCTOR_NOTE, "%s on %s", m->type,
			   m->dir);
		doctor_because(d, "this file system is in memory: measurements "
				  "here do not apply to a device");
	} else if (is_one_of(m->type, far) || !strncmp(m->type, "fuse.", 5)) {
		doctor_say(d, "file system", DOCTOR_NOTE, "%s on %s", m->type,
			   m->dir);
		doctor_because(
			d, "bytes read from it do not appear in /proc/self/io, "
			   "so reports cannot distinguish them from cached "
			   "bytes; the server has its own cache");
	} else {
		doctor_say(d, "file system", DOCTOR_FINE, "%s on %s (%s)",
			   m->type, m->dir, m->options);
	}
	if (!has_option(m->options, "noatime") &&
	    !has_option(m->options, "relatime") &&
	    !has_option(m->options, "ro")) {
		doctor_say(d, "access times", DOCTOR_BETTER,
			   "updated on every read");
		doctor_because(d, "reading a million files writes a million "
				  "inodes");
		doctor_advise(d, "mount -o remount,relatime %s", m->dir);
	}
}

static void check_space(struct doctor *d, const char *path)
{
	struct statvfs v;
	double free_bytes;

	if (statvfs(path, &v))
		return;
	free_bytes = (double)v.f_bavail * (double)v.f_frsize;
	if (v.f_files && v.f_favail < 10000) {
		doctor_say(d, "inodes", DOCTOR_BETTER, "%llu left",
			   (unsigned long long)v.f_favail);
		doctor_because(d, "a data set of many small files will not "
				  "fit");
	}
	doctor_say(d, "space", free_bytes < 1e9 ? DOCTOR_BETTER : DOCTOR_FINE,
		   "%s free of %s", human_bytes(free_bytes),
		   human_bytes((double)v.f_blocks * (double)v.f_frsize));
	if (free_bytes < 1e9)
		doctor_because(d, "generated data and checkpoints need more");
}

/* Tries an existing file, or an unnamed temporary one. */
static void check_direct(struct doctor *d, const char *path, bool dir)
{
	int fd = open(path,
		      dir ? O_TMPFILE | O_RDWR | O_CLOEXEC | O_DIRECT
			  : O_RDONLY | O_CLOEXEC | O_DIRECT | O_NONBLOCK,
		      0600);

	if (fd >= 0) {
		close(fd);
		doctor_say(d, "direct reads", DOCTOR_FINE, "O_DIRECT works");
		return;
	}
	if (errno != EINVAL && errno != EOPNOTSUPP)
		return; /* for example not writable: unknown */
	doctor_say(d, "direct reads", DOCTOR_NOTE, "O_DIRECT is not supported");
	doctor_because(d, "store.direct=true fails here; all reads go through "
			  "the page cache");
}

static void check_device(struct doctor *d, const char *path)
{
	struct pen_disk_about a;
	char name[32];

	if (!pen__disk_of(path, name, sizeof(name))) {
		doctor_say(d, "device", DOCTOR_NOTE, "unknown");
		return;
	}
	pen__disk_about(name, &a);
	if (!a.known)
		return;
	doctor_say(d, "device", a.rotational ? DOCTOR_NOTE : DOCTOR_FINE,
		   "%s%s%s, %s, queue of %llu requests", name,
		   a.model[0] ? " " : "", a.model,
		   human_bytes((double)a.size_bytes),
		   (unsigned long long)a.nr_requests);
	if (a.rotational)
		doctor_because(d, "a rotational disk, or a virtual one that "
				  "claims to be: use sampler=block, as every "
				  "seek costs milliseconds");
	if (strcmp(a.scheduler, "none") && strcmp(a.scheduler, "mq-deadline") &&
	    a.scheduler[0] && !a.rotational) {
		doctor_say(d, "scheduler", DOCTOR_BETTER, "%s", a.scheduler);
		doctor_because(d, "fast devices schedule requests themselves");
		doctor_advise(d, "echo none > /sys/block/%s/queue/scheduler",
			      name);
	} else {
		doctor_say(d, "scheduler", DOCTOR_FINE, "%s", a.scheduler);
	}
	doctor_say(d, "read-ahead",
		   a.read_ahead_kb > 1024 ? DOCTOR_BETTER : DOCTOR_FINE,
		   "%s (read_ahead_kb %llu)",
		   human_bytes((double)a.read_ahead_kb * 1024),
		   (unsigned long long)a.read_ahead_kb);
	if (a.read_ahead_kb <= 1024)
		return;
	doctor_because(
		d,
		"programs that read small records at random (mmap, plain read) "
		"read that much each time; penstock reads only what it needs");
	doctor_advise(d, "echo 128 > /sys/block/%s/queue/read_ahead_kb", name);
}

void doctor_path(struct doctor *d, const char *path)
{
	char real[PATH_MAX];
	struct mount m;
	struct stat st;

	if (!realpath(path, real) || stat(real, &st)) {
		doctor_say(d, "path", DOCTOR_BROKEN, "%s: %s", path,
			   strerror(errno));
		return;
	}
	doctor_say(d, "path", access(real, R_OK) ? DOCTOR_BROKEN : DOCTOR_FINE,
		   "%s%s", real, access(real, R_OK) ? " is not readable" : "");
	if (mount_of(real, &m)) {
		check_mount(d, &m);
	} else {
		doctor_say(d, "file system", DOCTOR_NOTE, "unknown");
		doctor_because(d, "/proc/self/mounts lists no mount for this "
				  "path, as in a chroot");
	}
	check_space(d, real);
	check_device(d, real);
	check_direct(d, real, S_ISDIR(st.st_mode));
}

void doctor_cached(struct doctor *d, const char *path)
{
	struct pen_there *set = NULL;
	uint64_t bytes, n;
	double in;

	if (pen__there_list(&set, path, NULL, NULL))
		return;
	n = pen__there_n(set);
	if (n) {
		bytes = pen__there_bytes(set);
		in = pen__there_cached(set);
		if (in < 0)
			doctor_say(d, "in the page cache", DOCTOR_NOTE,
				   "unknown share of %s in %s",
				   human_bytes((double)bytes),
				   counted(n, "file"));
		else
			doctor_say(d, "in the page cache",
				   in > 0.05 ? DOCTOR_NOTE : DOCTOR_FINE,
				   "about %.0f %% of %s in %s", in * 100,
				   human_bytes((double)bytes),
				   counted(n, "file"));
		if (in > 0.05)
			doctor_because(
				d, "the first run reads that part from memory; "
				   "to avoid this: load --drop-cache, bench "
				   "--cold, run reader.page_cache=drop");
	}
	pen__there_free(set);
}
