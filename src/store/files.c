/*
 * What stores of files share: finding files and keeping them open.
 *
 * Listing reads directories itself, in large pieces and relative to the
 * directory's descriptor, because a million files must list in seconds and in
 * no more memory than their names take. Directories wait in the object set, not
 * on the stack, so depth costs nothing. A pattern is matched level by level for
 * the same reason, and so that every directory visited is recorded (glob(3)
 * hides them): a later run must notice what was added or removed.
 *
 * An open file is checked against the size and time its object was indexed
 * with. Links to directories are not followed, and only regular files are
 * opened.
 */
#include "store/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"

#define DENTS_SIZE (256u << 10)

const char *const pen__file_advice[] = { "auto",       "normal",   "random",
					 "sequential", "willneed", "noreuse",
					 NULL };

int pen__file_code(int sys)
{
	switch (sys) {
	case ENOENT:
	case ENOTDIR:
		return PEN_ENOTFOUND;
	case ENOMEM:
		return PEN_ENOMEM;
	default:
		return PEN_EIO;
	}
}

/* Wraps for times beyond an int64_t of nanoseconds; only equality matters. */
static int64_t mtime_of(const struct stat *sb)
{
	return (int64_t)((uint64_t)sb->st_mtim.tv_sec * 1000000000u +
			 (uint64_t)sb->st_mtim.tv_nsec);
}

/* ---- listing ---- */

struct walk {
	struct pen_objects *set;
	struct pen_err *err;
	pen_keep_fn *keep;
	void *arg;
	const char *pattern; /* NULL: everything, including subfolders */
	bool last; /* the last part of the pattern: files are wanted */
	uint64_t nmatches;
	struct pen_buf found; /* directories that matched, NUL-terminated */
	char *dents;
	char path[PATH_MAX]; /* of the directory being read */
};

static int fail_path(struct pen_err *err, int sys, const char *path)
{
	const int code = pen__file_code(sys);

	if (code == PEN_ENOTFOUND)
		pen__fail(err, P_NOT_FOUND, path,
			  "no such file or directory; check the path");
	else if (sys == EACCES || sys == EPERM)
		pen__fail(err, P_NO_PERMISSION, path,
			  "permission denied; check the permissions of the "
			  "file and of the directories above it");
	else
		pen__fail_sys(err, sys, path, "cannot read it");
	if (err)
		err->sys = sys;
	return code;
}

static int fail_set(struct walk *w, int code)
{
	if (code == PEN_ENOMEM)
		return pen__fail_nomem(w->err, w->path, 0);
	return pen__fail(w->err, P_TOO_LONG, w->path,
			 "too many objects: a data set has at most 4294967295; "
			 "split it");
}

/* Sources are paths that fit already; the bound is only for certainty. */
static void copy_path(char out[PATH_MAX], const char *path)
{
	const size_t n = strnlen(path, PATH_MAX - 1);

	memcpy(out, path, n);
	out[n] = '\0';
}

/* "dir/name" without redundant parts, so that equal paths are equal strings. */
static bool join(char out[PATH_MAX], const char *dir, const char *name)
{
	const size_t d = strcmp(dir, ".") == 0 ? 0 : strlen(dir);
	const size_t sep = d && dir[d - 1] != '/', n = strlen(name);

	if (d + sep + n >= PATH_MAX)
		return false;
	memcpy(out, dir, d);
	out[d] = '/';
	memcpy(out + d + sep, name, n + 1);
	return true;
}

static bool normalise(char out[PATH_MAX], const char *path)
{
	char name[NAME_MAX + 1], dir[PATH_MAX];

	copy_path(out, *path == '/' ? "/" : ".");
	while (*path) {
		const size_t n = strcspn(path, "/");

		if (n > NAME_MAX)
			return false;
		memcpy(name, path, n);
		name[n] = '\0';
		path += n + (path[n] == '/');
		if (!n || strcmp(name, ".") == 0)
			continue;
		copy_path(dir, out);
		if (!join(out, dir, name))
			return false;
	}
	return true;
}

static bool ends_with(const char *s, const char *end)
{
	const size_t n = strlen(s), m = strlen(end);

	return n >= m && strcmp(s + n - m, end) == 0;
}

static bool skipped(const struct walk *w, const char *name)
{
	if (ends_with(name, ".tmp") || ends_with(name, "~") ||
	    strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return true;
	if (w->pattern)
		return fnmatch(w->pattern, name, FNM_PERIOD) != 0;
	/* some formats consist of hidden files */
	return name[0] == '.' && !(w->keep && w->keep(w->arg, w->path, NULL));
}

static bool wanted(struct walk *w, const char *name)
{
	if (!w->last)
		return false;
	w->nmatches++;
	return !w->keep || w->keep(w->arg, w->path, name);
}

/* Records the directory as it is before it is read. */
static int note_dir(struct walk *w, const char *path, const struct stat *sb,
		    uint32_t *index)
{
	struct pen_objects *s = w->set;
	int rc;

	if (s->ndir && strcmp(s->names + s->dir[s->ndir - 1].name, path) == 0) {
		*index = (uint32_t)s->ndir - 1;
		return 0;
	}
	rc = pen__objects_add_dir(s, path, sb->st_ino, mtime_of(sb), index);
	return rc ? fail_set(w, rc) : 0;
}

static int subdir(struct walk *w, const char *name)
{
	char path[PATH_MAX];
	uint32_t d;
	int rc;

	if (!w->pattern && name[0] == '.')
		return 0;
	if (!join(path, w->path, name))
		return fail_path(w->err, ENAMETOOLONG, w->path);
	w->nmatches += w->last;
	if (w->pattern) {
		pen__buf_put(&w->found, path, strlen(path) + 1);
		return w->found.bad ? fail_set(w, PEN_ENOMEM) : 0;
	}
	rc = pen__objects_add_dir(w->set, path, 0, 0, &d);
	return rc ? fail_set(w, rc) : 0;
}

/* Not an error: the entry was removed meanwhile, or is a dangling link. */
static int fail_entry(struct walk *w, int sys, const char *name)
{
	char path[PATH_MAX];

	if (sys == ENOENT || sys == ELOOP || sys == ENOTDIR)
		return 0;
	return fail_path(w->err, sys, join(path, w->path, name) ? path : name);
}

static int entry(struct walk *w, int dfd, uint32_t dir,
		 const struct dirent64 *e)
{
	const int type = e->d_type;
	bool link = type == DT_LNK;
	struct stat sb;
	int rc;

	if (skipped(w, e->d_name))
		return 0;
	if (type == DT_DIR)
		return subdir(w, e->d_name);
	if (type != DT_REG && type != DT_LNK && type != DT_UNKNOWN)
		return 0;
	if (type == DT_REG && !wanted(w, e->d_name))
		return 0;
	if (fstatat(dfd, e->d_name, &sb, link ? 0 : AT_SYMLINK_NOFOLLOW))
		return fail_entry(w, errno, e->d_name);
	if (S_ISLNK(sb.st_mode)) {
		link = true;
		if (fstatat(dfd, e->d_name, &sb, 0))
			return fail_entry(w, errno, e->d_name);
	}
	if (S_ISDIR(sb.st_mode))
		return link && !w->pattern ? 0 : subdir(w, e->d_name);
	if (!S_ISREG(sb.st_mode) || sb.st_size < 0 ||
	    (type != DT_REG && !wanted(w, e->d_name)))
		return 0;
	rc = pen__objects_add(w->set, dir, e->d_name, (uint64_t)sb.st_size,
			      mtime_of(&sb));
	return rc ? fail_set(w, rc) : 0;
}

static int read_entries(struct walk *w, int dfd, uint32_t dir)
{
	for (;;) {
		const ssize_t n = getdents64(dfd, w->dents, DENTS_SIZE);
		int rc = 0;

		if (n < 0 && errno != ENOENT)
			return fail_path(w->err, errno, w->path);
		if (n <= 0)
			return 0;
		for (ssize_t at = 0; at < n && !rc;) {
			/* the kernel aligns the records */
			const struct dirent64 *e =
				(const void *)(w->dents + at);

			rc = entry(w, dfd, dir, e);
			at += e->d_reclen;
		}
		if (rc)
			return rc;
	}
}

/* Reads w->path, and adds it to the set unless it is there as `pending`. */
static int scan(struct walk *w, uint32_t *pending)
{
	const int fd = open(w->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat sb;
	uint32_t dir;
	int rc;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR) &&
	    (pending || w->pattern))
		return 0; /* removed, or not a directory */
	if (fd < 0)
		return fail_path(w->err, errno, w->path);
	if (fstat(fd, &sb)) {
		rc = fail_path(w->err, errno, w->path);
	} else if (pending) {
		dir = *pending;
		w->set->dir[dir].ino = sb.st_ino;
		w->set->dir[dir].mtime_ns = mtime_of(&sb);
		rc = read_entries(w, fd, dir);
	} else {
		rc = note_dir(w, w->path, &sb, &dir);
		if (!rc)
			rc = read_entries(w, fd, dir);
	}
	close(fd);
	return rc;
}

static int walk_tree(struct walk *w, const char *root)
{
	struct pen_objects *s = w->set;
	uint64_t d = s->ndir;
	uint32_t first;
	int rc;

	w->pattern = NULL;
	w->last = true;
	rc = pen__objects_add_dir(s, root, 0, 0, &first);
	if (rc)
		return fail_set(w, rc);
	for (; d < s->ndir && !rc; d++) {
		uint32_t dir = (uint32_t)d;

		copy_path(w->path, s->names + s->dir[d].name);
		rc = scan(w, &dir);
	}
	return rc;
}

/* Adds one file by its name. `maybe`: it need not exist. */
static int one_file(struct walk *w, const char *path, bool maybe)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	struct stat dsb, sb;
	uint32_t dir;
	int rc;

	copy_path(w->path, path);
	w->path[slash ? (slash > path ? slash - path : 1) : 0] = '\0';
	if (!slash)
		copy_path(w->path, ".");
	if (stat(w->path, &dsb) || !S_ISDIR(dsb.st_mode))
		return maybe ? 0 : fail_path(w->err, ENOENT, w->path);
	rc = note_dir(w, w->path, &dsb, &dir);
	if (rc)
		return rc;
	if (stat(path, &sb))
		return maybe && (errno == ENOENT || errno == ENOTDIR)
			       ? 0
			       : fail_path(w->err, errno, path);
	if (S_ISDIR(sb.st_mode)) {
		w->nmatches++;
		pen__buf_put(&w->found, path, strlen(path) + 1);
		return w->found.bad ? fail_set(w, PEN_ENOMEM) : 0;
	}
	if (!S_ISREG(sb.st_mode) || sb.st_size < 0)
		return maybe ? 0
			     : pen__fail(w->err, P_UNSUPPORTED_FEATURE, path,
					 "not a regular file; name files or "
					 "directories");
	if (!wanted(w, name))
		return 0;
	rc = pen__objects_add(w->set, dir, name, (uint64_t)sb.st_size,
			      mtime_of(&sb));
	return rc ? fail_set(w, rc) : 0;
}

/* A part without wildcards: nothing to read, but its folder is recorded. */
static int step_literal(struct walk *w, const char *dir, const char *part,
			bool seen)
{
	char path[PATH_MAX];
	struct stat sb;
	uint32_t d;

	if (!join(path, dir, part))
		return 0;
	if (w->last)
		return one_file(w, path, true);
	pen__buf_put(&w->found, path, strlen(path) + 1);
	if (w->found.bad)
		return fail_set(w, PEN_ENOMEM);
	if (!seen || stat(dir, &sb) || !S_ISDIR(sb.st_mode))
		return 0;
	return note_dir(w, dir, &sb, &d);
}

/* One level: every directory in `in` yields directories in w->found, or
 * files. */
static int step(struct walk *w, const struct pen_buf *in, const char *part,
		bool seen)
{
	const bool wild = strpbrk(part, "*?[") != NULL;
	int rc = 0;

	w->pattern = part;
	for (size_t at = 0; at < in->n && !rc;) {
		const char *dir = (const char *)in->p + at;

		at += strlen(dir) + 1;
		if (!wild) {
			rc = step_literal(w, dir, part, seen);
			continue;
		}
		copy_path(w->path, dir);
		rc = scan(w, NULL);
	}
	return rc;
}

static int walk_pattern(struct walk *w, const char *pattern)
{
	const char *rest = pattern + (*pattern == '/');
	struct pen_buf level = { 0 };
	char part[NAME_MAX + 1];
	bool seen = false;
	int rc = 0;

	pen__buf_put(&level, *pattern == '/' ? "/" : ".", 2);
	if (level.bad)
		return fail_set(w, PEN_ENOMEM);
	while (*rest && !rc) {
		const size_t n = strcspn(rest, "/");

		memcpy(part, rest, n); /* normalise() checked its length */
		part[n] = '\0';
		rest += n + (rest[n] == '/');
		w->last = !*rest;
		rc = step(w, &level, part, seen);
		seen = seen || strpbrk(part, "*?[");
		pen__buf_fini(&level);
		level = w->found;
		w->found = (struct pen_buf){ 0 };
	}
	if (!rc && !w->nmatches)
		rc = pen__fail(w->err, P_NOT_FOUND, pattern,
			       "no file matches this pattern; check the path");
	/* a directory that matched last stands for everything in it */
	for (size_t at = 0; at < level.n && !rc;) {
		const char *dir = (const char *)level.p + at;

		at += strlen(dir) + 1;
		rc = walk_tree(w, dir);
	}
	pen__buf_fini(&level);
	return rc;
}

int pen__files_list(struct pen_store *st, const char *path, pen_keep_fn *keep,
		    void *arg, struct pen_objects *set, struct pen_err *err)
{
	char norm[PATH_MAX];
	struct walk *w;
	struct stat sb;
	int rc;

	(void)st;
	if (!*path)
		return pen__fail(err, P_BAD_VALUE, "path", "the path is empty");
	rc = pen__check_local(path, err);
	if (rc)
		return rc;
	if (!normalise(norm, path))
		return fail_path(err, ENAMETOOLONG, path);
	w = pen__calloc(1, sizeof(*w));
	if (!w)
		return pen__fail_nomem(err, path, sizeof(*w));
	*w = (struct walk){
		.set = set, .err = err, .keep = keep, .arg = arg, .last = true
	};
	w->dents = pen__alloc(1, DENTS_SIZE);
	if (!w->dents)
		rc = pen__fail_nomem(err, path, DENTS_SIZE);
	else if (stat(norm, &sb) == 0)
		rc = S_ISDIR(sb.st_mode) ? walk_tree(w, norm)
					 : one_file(w, norm, false);
	else if (errno == ENOENT && strpbrk(norm, "*?["))
		rc = walk_pattern(w, norm);
	else
		rc = fail_path(err, errno, path);
	pen__buf_fini(&w->found);
	pen__free(w->dents);
	pen__free(w);
	return rc;
}

/* ---- open files ---- */

static const char *fs_name(const char *path)
{
	static const struct {
		long magic;
		const char *name;
	} known[] = {
		{ 0xef53, "ext" },	     { 0x58465342, "xfs" },
		{ 0x01021994, "tmpfs" },     { 0x858458f6, "ramfs" },
		{ 0x6969, "nfs" },	     { 0x9123683e, "btrfs" },
		{ 0x794c7630, "overlayfs" }, { 0x65735546, "fuse" },
		{ 0x0bd00bd0, "lustre" },    { 0x2fc12fc1, "zfs" },
		{ 0x01021997, "9p" },	     { 0x00c36400, "ceph" },
	};
	struct statfs sf;

	if (statfs(path, &sf) == 0)
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			if (known[i].magic == (long)sf.f_type)
				return known[i].name;
	return "unknown type";
}

static int fail_direct(struct pen_err *err, const char *path)
{
	return pen__fail(err, P_UNSUPPORTED_SYSTEM, path,
			 "this file system (%s) does not support O_DIRECT; set "
			 "store.direct=false",
			 fs_name(path));
}

int pen__files_bind_direct(struct pen_store *st, struct pen_err *err)
{
	const struct pen_file_opts *o = st->priv;
	char path[PATH_MAX];
	struct statx sx;
	int fd;

	if (!o->direct || !st->objs->nobj)
		return 0;
	if (!pen__object_path(st->objs, 0, path, sizeof(path)))
		return fail_path(err, ENAMETOOLONG, path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
	if (fd < 0)
		return errno == EINVAL ? fail_direct(err, path)
				       : fail_path(err, errno, path);
	if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &sx) == 0 &&
	    sx.stx_mask & STATX_DIOALIGN) {
		st->align = sx.stx_dio_offset_align > sx.stx_dio_mem_align
				    ? sx.stx_dio_offset_align
				    : sx.stx_dio_mem_align;
		if (st->align && st->align < 512)
			st->align = 512;
	}
	close(fd);
	/* 0, or more than page-aligned buffers guarantee */
	if (!st->align || st->align > 4096 || st->align & (st->align - 1))
		return fail_direct(err, path);
	return 0;
}

int pen__files_init(struct pen_files *fs, struct pen_store *st, unsigned cap,
		    int flags, struct pen_err *err)
{
	const struct pen_objects *s = st->objs;
	uint32_t nhead = 2;

	if (cap > s->nobj)
		cap = (unsigned)s->nobj;
	fs->st = st;
	fs->flags = flags | O_RDONLY | O_CLOEXEC;
	fs->cap = cap ? cap : 1;
	while (nhead < 2 * fs->cap)
		nhead *= 2;
	fs->mask = nhead - 1;
	fs->slot = pen__calloc(fs->cap, sizeof(*fs->slot));
	fs->head = pen__calloc(nhead, sizeof(*fs->head));
	/* directories take descriptors too: a small share on top */
	if (s->ndir && s->ndir <= st->max_open / 8)
		fs->dirfd = pen__alloc(s->ndir, sizeof(*fs->dirfd));
	fs->ndirfd = fs->dirfd ? (uint32_t)s->ndir : 0;
	for (uint32_t i = 0; i < fs->ndirfd; i++)
		fs->dirfd[i] = -1;
	if (fs->slot && fs->head) {
		pen__descriptors_reserve((uint64_t)st->nqueues *
					 (fs->cap + fs->ndirfd));
		return 0;
	}
	pen__files_fini(fs);
	return pen__fail_nomem(err, "", fs->cap * sizeof(*fs->slot));
}

static void vacate(struct pen_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	if (f->map_len)
		munmap(f->map, f->map_len);
	f->fd = -1;
	f->map = NULL;
	f->map_len = 0;
}

void pen__files_fini(struct pen_files *fs)
{
	for (uint32_t i = 0; fs->slot && i < fs->n; i++)
		vacate(&fs->slot[i]);
	for (uint32_t i = 0; i < fs->ndirfd; i++)
		if (fs->dirfd[i] >= 0)
			close(fs->dirfd[i]);
	pen__free(fs->slot);
	pen__free(fs->head);
	pen__free(fs->dirfd);
	fs->slot = NULL;
	fs->head = NULL;
	fs->dirfd = NULL;
	fs->n = fs->ndirfd = 0;
}

/* Opens relative to the directory if its descriptor is open: a shorter
 * lookup. */
static int open_object(struct pen_files *fs, uint32_t object)
{
	const struct pen_objects *s = fs->st->objs;
	const uint32_t dir = s->obj[object].dir;
	const char *path = s->names + s->dir[dir].name;
	int fd;

	if (fs->dirfd && *path) {
		if (fs->dirfd[dir] < 0)
			fs->dirfd[dir] =
				open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		fd = fs->dirfd[dir];
		if (fd >= 0)
			return openat(fd, pen__object_name(s, object),
				      fs->flags);
	}
	if (!pen__object_path(s, object, fs->path, sizeof(fs->path))) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return open(fs->path, fs->flags);
}

static int open_checked(struct pen_files *, uint32_t object, int *out,
			int *sys);

/* EINVAL: the file system does not support O_DIRECT, or the file has
 * changed. */
static int refused(struct pen_files *fs, uint32_t object, int *sys)
{
	int fd, rc;

	fs->flags &= ~O_DIRECT;
	rc = open_checked(fs, object, &fd, sys);
	fs->flags |= O_DIRECT;
	if (rc)
		return rc;
	close(fd);
	*sys = EINVAL;
	return PEN_ENOTSUP;
}

static int open_checked(struct pen_files *fs, uint32_t object, int *out,
			int *sys)
{
	const struct pen_object *o = &fs->st->objs->obj[object];
	struct stat sb;
	int fd;

	do {
		fd = open_object(fs, object);
	} while (fd < 0 && errno == EINTR);
	if (fd < 0 && errno == EINVAL && fs->flags & O_DIRECT)
		return refused(fs, object, sys);
	if (fd < 0) {
		*sys = errno;
		return pen__file_code(errno);
	}
	*sys = 0;
	*out = fd;
	if (!fs->st->checks_stale)
		return 0;
	if (fstat(fd, &sb) == 0 && S_ISREG(sb.st_mode) &&
	    (uint64_t)sb.st_size == o->size && mtime_of(&sb) == o->mtime_ns)
		return 0;
	close(fd);
	return PEN_ESTALE;
}

int pen__files_open(struct pen_files *fs, uint32_t object, int *out, int *sys)
{
	const uint64_t t0 = pen__now_ns();
	int rc = open_checked(fs, object, out, sys);

	atomic_fetch_add_explicit(&fs->st->open_ns, pen__now_ns() - t0,
				  memory_order_relaxed);
	return rc;
}

static uint32_t *chain_of(struct pen_files *fs, uint32_t object)
{
	return &fs->head[(object * 0x9e3779b1u >> 7) & fs->mask];
}

/* Removes a file from its chain and closes it. */
static void drop(struct pen_files *fs, struct pen_file *f)
{
	const uint32_t id = (uint32_t)(f - fs->slot) + 1;
	uint32_t *at = chain_of(fs, f->object);

	while (*at && *at != id)
		at = &fs->slot[*at - 1].chain;
	if (*at)
		*at = f->chain;
	vacate(f);
}

static bool vacant(const struct pen_file *f)
{
	return f->fd < 0 && !f->map;
}

/* The next unpinned file in CLOCK order; `open`: not a vacant one. */
static struct pen_file *victim(struct pen_files *fs, bool open)
{
	for (uint32_t i = 0; i < 2 * fs->n; i++) {
		struct pen_file *f = &fs->slot[fs->hand];

		fs->hand = fs->hand + 1 < fs->n ? fs->hand + 1 : 0;
		if (f->pins || (open && vacant(f)))
			continue;
		if (!f->recent || vacant(f))
			return f;
		f->recent = false;
	}
	return NULL;
}

static struct pen_file *room(struct pen_files *fs)
{
	struct pen_file *f;

	if (fs->n < fs->cap) {
		f = &fs->slot[fs->n++];
		f->fd = -1;
		return f;
	}
	f = victim(fs, false);
	if (f && !vacant(f))
		drop(fs, f);
	return f;
}

static bool any_pinned(const struct pen_files *fs)
{
	for (uint32_t i = 0; i < fs->n; i++)
		if (fs->slot[i].pins)
			return true;
	return false;
}

/* Opens into f; drops others if the process runs out of descriptors. */
static int fill(struct pen_files *fs, struct pen_file *f, uint32_t object,
		int *sys)
{
	struct pen_file *other;
	int rc, fd = -1;

	for (;;) {
		rc = pen__files_open(fs, object, &fd, sys);
		if (!rc)
			break;
		if (*sys != EMFILE && *sys != ENFILE)
			return rc;
		other = victim(fs, true);
		if (!other)
			return any_pinned(fs) ? PEN_END : rc;
		drop(fs, other);
	}
	*f = (struct pen_file){ .object = object,
				.fd = fd,
				.serial = ++fs->serial,
				.advice = PEN_ADVISE_NORMAL };
	return 0;
}

int pen__files_get(struct pen_files *fs, uint32_t object, struct pen_file **out,
		   int *sys)
{
	uint32_t *head = chain_of(fs, object);
	struct pen_file *f;
	int rc;

	for (uint32_t i = *head; i; i = f->chain) {
		f = &fs->slot[i - 1];
		if (f->object == object) {
			f->recent = true;
			f->pins++;
			*out = f;
			return 0;
		}
	}
	f = room(fs);
	if (!f)
		return PEN_END;
	rc = fill(fs, f, object, sys);
	if (rc)
		return rc;
	f->chain = *head;
	*head = (uint32_t)(f - fs->slot) + 1;
	f->pins = 1;
	*out = f;
	return 0;
}
