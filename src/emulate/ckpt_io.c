/*
 * Writes and reads the files of one rank, one after another, through one pipe.
 * Directories are created as needed and, with checkpoint.fsync, synced as well
 * as the files: a checkpoint that was reported as saved survives a power
 * failure.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/show.h"
#include "emulate/ckpt_int.h"

#define NBLOCKS 8u
#define DIRECT_THREADS 4u /* a device needs several requests in flight */
#define LONGEST_DIR 4000u
#define DIR_FORMAT "global_epoch%u_step%" PRIu64

struct pen_ckpt {
	const struct pen_config *c;
	unsigned rank, world, per_node;
	struct pen_ckpt_plan own;
	struct pen_ckpt_plan other; /* read by load() if not its own */
	struct pen_ckpt_watch *watch;
};

static const char *folder(const struct pen_config *c)
{
	return c->checkpoint.folder && *c->checkpoint.folder
		       ? c->checkpoint.folder
		       : "./checkpoints";
}

/* Divides the memory budget, shared by all accelerators of a process, into
 * blocks. */
static int block_size(const struct pen_config *c, size_t *block,
		      unsigned *nblocks, struct pen_err *err)
{
	const uint64_t share = c->accelerators ? c->accelerators : 1;
	uint64_t memory = c->checkpoint.memory ? c->checkpoint.memory
					       : PEN_CKPT_MEMORY;
	uint64_t b = c->checkpoint.block_size ? c->checkpoint.block_size
					      : PEN_CKPT_BLOCK;

	memory /= share;
	if (b > memory / 2)
		b = memory / 2;
	b -= b % PEN_CKPT_PAGE;
	if (!b)
		return pen__fail(err, P_BAD_VALUE, "checkpoint.memory",
				 "not enough for %s; each needs two blocks of "
				 "at least 4096 bytes",
				 pen__show_counted(share, "accelerator").s);
	*block = (size_t)b;
	*nblocks = memory / b < NBLOCKS ? (unsigned)(memory / b) : NBLOCKS;
	return 0;
}

int pen__ckpt_new(struct pen_ckpt **out, const struct pen_config *c,
		  unsigned rank, unsigned world, struct pen_err *err)
{
	struct pen_ckpt *k;
	unsigned nblocks;
	size_t block;
	int rc;

	*out = NULL;
	rc = block_size(c, &block, &nblocks, err);
	if (rc < 0)
		return rc;
	k = pen__calloc(1, sizeof(*k));
	if (!k)
		return pen__fail_nomem(err, "checkpoint", sizeof(*k));
	k->c = c;
	k->rank = rank;
	k->world = world;
	rc = pen__ckpt_plan(&k->own, c, rank, world, err);
	if (rc < 0) {
		pen__free(k);
		return rc;
	}
	*out = k;
	return 0;
}

void pen__ckpt_free(struct pen_ckpt *k)
{
	if (!k)
		return;
	pen__ckpt_plan_fini(&k->own);
	pen__ckpt_plan_fini(&k->other);
	pen__free(k);
}

uint64_t pen__ckpt_bytes(const struct pen_ckpt *k)
{
	return k->own.bytes;
}

void pen__ckpt_dlio_bytes(const struct pen_ckpt *k, double *layers,
			  double *optimizer)
{
	*layers = k->own.dlio_model;
	*optimizer = k->own.dlio_optimizer;
}

double pen__ckpt_dlio_model(const struct pen_config *c, double layers)
{
	return c->model.size_bytes && !pen__ckpt_is_transformer(c)
		       ? (double)c->model.size_bytes
		       : layers;
}

unsigned pen__ckpt_nfiles(const struct pen_ckpt *k)
{
	return (unsigned)k->own.nfiles;
}

const char *pen__ckpt_file(const struct pen_ckpt *k, unsigned i,
			   uint64_t *bytes)
{
	if (i >= k->own.nfiles)
		return NULL;
	if (bytes)
		*bytes = k->own.file[i].state.bytes;
	return k->own.file[i].name;
}

/* --- directories --- */

static int sync_dir(const char *path, struct pen_err *err)
{
	const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int sys = fd < 0 ? errno : 0;

	/* EINVAL: the file system needs no sync of directories */
	if (!sys && fsync(fd) && errno != EINVAL)
		sys = errno;
	if (fd >= 0)
		close(fd);
	return sys ? pen__fail_sys(err, sys, path,
				   "cannot sync the directory to disk")
		   : 0;
}

/* Creates one directory, and syncs its name where requested. */
static int make_dir(const struct pen_config *c, char *path, struct pen_err *err)
{
	char *cut = strrchr(path, '/');
	int rc;

	if (mkdir(path, 0777)) {
		struct stat st;

		if (errno == EEXIST && !stat(path, &st) && S_ISDIR(st.st_mode))
			return 0;
		return pen__fail_sys(err, errno, path,
				     "cannot create the directory");
	}
	if (!c->checkpoint.fsync)
		return 0;
	if (!cut)
		return sync_dir(".", err);
	if (cut == path)
		return sync_dir("/", err);
	*cut = '\0';
	rc = sync_dir(path, err);
	*cut = '/';
	return rc;
}

/* Creates a directory and its parents. */
static int make_dirs(const struct pen_config *c, const char *path,
		     struct pen_err *err)
{
	char buf[LONGEST_DIR + 64];
	int rc = 0;

	snprintf(buf, sizeof(buf), "%s", path);
	for (char *p = buf + 1; !rc && *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		rc = make_dir(c, buf, err);
		*p = '/';
	}
	return rc ? rc : make_dir(c, buf, err);
}

static int dir_of(const struct pen_config *c, unsigned epoch, uint64_t step,
		  char buf[LONGEST_DIR + 64], struct pen_err *err)
{
	size_t n = strlen(folder(c));

	while (n > 1 && folder(c)[n - 1] == '/')
		n--;
	if (n >= LONGEST_DIR)
		return pen__fail(err, P_TOO_LONG,
				 "checkpoint.checkpoint_folder",
				 "the path is too long");
	snprintf(buf, LONGEST_DIR + 64, "%.*s/" DIR_FORMAT, (int)n, folder(c),
		 epoch, step);
	return 0;
}

/* --- saving and loading --- */

struct job {
	const struct pen_ckpt_plan *plan;
	unsigned epoch;
	uint64_t step;
	struct pen_ckpt_watch *watch;
	char dir[LONGEST_DIR + 64];
	int (*one)(struct pen_ckpt_io *, const struct pen_torch_state *,
		   const char *path, struct pen_err *err);
};

static int each_file(struct job *j, const struct pen_config *c,
		     struct pen_err *err)
{
	struct pen_ckpt_io io = { .c = c, .watch = j->watch };
	char path[LONGEST_DIR + 64 + 80];
	unsigned nblocks;
	size_t block;
	int rc;

	rc = block_size(c, &block, &nblocks, err);
	if (rc < 0)
		return rc;
	rc = pen__ckpt_fill_init(&io.fill, c, err);
	if (rc < 0)
		return rc;
	rc = pen__ckpt_pipe_new(&io.pipe, block, nblocks,
				c->checkpoint.odirect ? DIRECT_THREADS : 1,
				err);
	for (size_t i = 0; !rc && i < j->plan->nfiles; i++) {
		const struct pen_ckpt_file *f = &j->plan->file[i];

		snprintf(path, sizeof(path), "%s/%s", j->dir, f->name);
		pen__ckpt_fill_file(&io.fill, c, f->name, j->epoch, j->step);
		rc = j->one(&io, &f->state, path, err);
	}
	pen__ckpt_pipe_free(io.pipe);
	pen__ckpt_fill_fini(&io.fill);
	return rc;
}

int pen__ckpt_save(struct pen_ckpt *k, unsigned epoch, uint64_t step,
		   struct pen_err *err)
{
	struct job j = { .plan = &k->own,
			 .epoch = epoch,
			 .step = step,
			 .watch = k->watch,
			 .one = pen__ckpt_file_save };
	int rc = dir_of(k->c, epoch, step, j.dir, err);

	if (!rc)
		rc = make_dirs(k->c, j.dir, err);
	if (rc || !k->own.nfiles)
		return rc;
	rc = each_file(&j, k->c, err);
	if (!rc && k->c->checkpoint.fsync)
		rc = sync_dir(j.dir, err);
	return rc;
}

void pen__ckpt_set_watch(struct pen_ckpt *k, struct pen_ckpt_watch *w)
{
	k->watch = w;
}

void pen__ckpt_drop(const struct pen_ckpt *k, unsigned epoch, uint64_t step)
{
	char dir[LONGEST_DIR + 64], path[LONGEST_DIR + 128];

	if (dir_of(k->c, epoch, step, dir, NULL))
		return;
	for (size_t i = 0; i < k->own.nfiles; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, k->own.file[i].name);
		unlink(path);
	}
	rmdir(dir);
}

static bool shifted(const struct pen_ckpt *k)
{
	return k->c->checkpoint.recovery_rank_shift && k->per_node &&
	       k->per_node < k->world;
}

void pen__ckpt_set_node(struct pen_ckpt *k, unsigned ranks_per_node)
{
	k->per_node = ranks_per_node;
	pen__ckpt_plan_fini(&k->other);
}

static unsigned shifted_rank(const struct pen_ckpt *k)
{
	return (unsigned)(((uint64_t)k->rank + k->per_node) % k->world);
}

uint64_t pen__ckpt_load_bytes(const struct pen_ckpt *k)
{
	struct pen_ckpt_plan p;
	uint64_t bytes;

	if (!shifted(k))
		return k->own.bytes;
	if (k->other.nfiles)
		return k->other.bytes;
	if (pen__ckpt_plan(&p, k->c, shifted_rank(k), k->world, NULL) < 0)
		return 0;
	bytes = p.bytes;
	pen__ckpt_plan_fini(&p);
	return bytes;
}

int pen__ckpt_load(struct pen_ckpt *k, unsigned epoch, uint64_t step,
		   struct pen_err *err)
{
	struct job j = { .plan = &k->own,
			 .epoch = epoch,
			 .step = step,
			 .watch = k->watch,
			 .one = pen__ckpt_file_load };
	int rc = dir_of(k->c, epoch, step, j.dir, err);

	if (!rc && shifted(k)) {
		if (!k->other.nfiles)
			rc = pen__ckpt_plan(&k->other, k->c, shifted_rank(k),
					    k->world, err);
		j.plan = &k->other;
	}
	if (rc || !j.plan->nfiles)
		return rc;
	return each_file(&j, k->c, err);
}

/* --- counting --- */

/* Skips digits; false if there are none. */
static bool skip_digits(const char **s)
{
	const char *p = *s;

	while (*p >= '0' && *p <= '9')
		p++;
	if (p == *s)
		return false;
	*s = p;
	return true;
}

static bool skip_word(const char **s, const char *word)
{
	const size_t n = strlen(word);

	if (strncmp(*s, word, n) != 0)
		return false;
	*s += n;
	return true;
}

static bool is_checkpoint(int dir, const char *name)
{
	const char *s = name;
	struct stat st;

	return skip_word(&s, "global_epoch") && skip_digits(&s) &&
	       skip_word(&s, "_step") && skip_digits(&s) && !*s &&
	       !fstatat(dir, name, &st, 0) && S_ISDIR(st.st_mode);
}

uint64_t pen__ckpt_count(const struct pen_config *c)
{
	DIR *d = opendir(folder(c));
	const struct dirent *e;
	uint64_t n = 0;

	if (!d)
		return 0;
	while ((e = readdir(d)))
		n += is_checkpoint(dirfd(d), e->d_name);
	closedir(d);
	return n;
}
