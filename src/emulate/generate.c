/*
 * Generates a data set, in steps that all ranks take together: rank 0 creates
 * the directories and removes incomplete files of a killed run before any rank
 * writes; each rank checks which of its files exist; the free space for the
 * rest is checked; each rank generates its files. Fails early if the data does
 * not fit on the disk.
 */
#include "emulate/generate.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/team.h"
#include "emulate/datafile.h"

struct job {
	struct pen_generate *g;
	struct pen_data_layout l;
	struct pen_datafile d;
	struct pen_synth_run run;
	uint64_t n;	/* files of this rank */
	bool *there;	/* one per file: it exists */
	uint64_t space; /* bytes on disk still needed */
};

/* ---- directories ---- */

static int make_folder(const char *dir, struct pen_err *err)
{
	struct pen_err why = { 0 };
	struct stat sb;

	if (pen__make_dirs(dir, 0777, false, &why)) {
		int rc = pen__fail_sys(err, why.sys, why.where,
				       "cannot create the directory");

		if (why.sys == ENOENT || why.sys == ENOTDIR)
			rc = PEN_ENOTFOUND;
		return pen__err_code(err, rc);
	}
	if (stat(dir, &sb) || !S_ISDIR(sb.st_mode))
		return pen__fail(err, P_BAD_VALUE, dir,
				 "not a directory; remove it or change "
				 "dataset.data_folder");
	if (access(dir, W_OK | X_OK))
		return pen__fail_sys(err, errno, dir,
				     "cannot write to the directory");
	return 0;
}

/* PREFIX_....PID-N.tmp: the name that the posix store uses while writing. */
static bool is_left_over(const char *name, const char *prefix)
{
	const size_t np = strlen(prefix), n = strlen(name);
	const char *p = name + n;
	unsigned a = 0, b = 0;

	if (n < np + 10 || strncmp(name, prefix, np) != 0 || name[np] != '_' ||
	    strcmp(name + n - 4, ".tmp") != 0)
		return false;
	p -= 5;
	for (; *p >= '0' && *p <= '9'; p--)
		a++;
	if (!a || *p-- != '-')
		return false;
	for (; *p >= '0' && *p <= '9'; p--)
		b++;
	return b && *p == '.' && strstr(name, "_of_");
}

static int clean_folder(const struct job *j, const char *dir,
			struct pen_err *err)
{
	const char *prefix = j->l.c->dataset.file_prefix;
	DIR *d = opendir(dir);
	const struct dirent *e;

	if (!d)
		return pen__fail_sys(err, errno, dir,
				     "cannot list the directory");
	while ((e = readdir(d)))
		if (is_left_over(e->d_name, prefix ? prefix : ""))
			unlinkat(dirfd(d), e->d_name, 0);
	closedir(d);
	return 0;
}

static int prepare_folder(const struct job *j, const char *dir,
			  struct pen_err *err)
{
	int rc = make_folder(dir, err);

	return rc ? rc : clean_folder(j, dir, err);
}

/* train and valid are always created, as in DLIO. */
static int prepare(const struct job *j, struct pen_err *err)
{
	static const char *const names[] = { "train", "valid" };
	char dir[PEN_LAYOUT_PATH];
	int rc = 0;

	for (int s = PEN_TRAIN; s <= PEN_VALID && !rc; s++) {
		const uint64_t n =
			pen__layout_nsubfolders(&j->l, (enum pen_split)s);

		pen__layout_dir(&j->l, (enum pen_split)s, dir, sizeof(dir));
		rc = prepare_folder(j, dir, err);
		for (uint64_t k = 0; k < n && !rc; k++) {
			pen__layout_subfolder(&j->l, (enum pen_split)s, k, dir,
					      sizeof(dir));
			rc = prepare_folder(j, dir, err);
		}
		if (!rc && !strcmp(j->l.c->dataset.format, "tfrecord")) {
			snprintf(dir, sizeof(dir), "%s/index/%s", j->l.root,
				 names[s]);
			rc = prepare_folder(j, dir, err);
		}
	}
	return rc;
}

/* ---- files ---- */

static uint64_t file_of(const struct job *j, uint64_t k)
{
	return (uint64_t)j->g->comm->rank + k * (uint64_t)j->g->comm->size;
}

static int tick(void *arg)
{
	const struct pen_generate *g = ((struct job *)arg)->g;

	return g->tick ? g->tick(g->arg, g) : 0;
}

static int look(void *arg, uint64_t k, struct pen_err *err)
{
	struct job *j = arg;

	(void)err;
	j->there[k] = pen__datafile_there(&j->d, file_of(j, k));
	return 0;
}

static int step(void *arg, size_t n, struct pen_err *err)
{
	struct job *j = arg;

	if (atomic_load_explicit(&j->run.stop, memory_order_relaxed))
		return pen__fail(err, P_INTERRUPTED, j->l.root, "interrupted");
	atomic_fetch_add_explicit(&j->g->bytes_done, n, memory_order_relaxed);
	return 0;
}

static int make(void *arg, uint64_t k, struct pen_err *err)
{
	struct job *j = arg;
	const struct pen_datafile_step s = { step, j };
	int rc;

	if (j->there[k])
		return 0;
	rc = pen__datafile_write(&j->d, file_of(j, k), &s, err);
	if (!rc)
		atomic_fetch_add(&j->g->files_done, 1);
	return rc;
}

static int run(struct job *j, int (*each)(void *, uint64_t, struct pen_err *),
	       struct pen_err *err)
{
	const int local = j->g->comm->local_size;
	unsigned threads = j->g->threads;

	if (!threads) {
		threads = pen__cpus() / (unsigned)(local > 1 ? local : 1);
		threads = threads ? threads : 1;
	}
	j->run = (struct pen_synth_run){ .n = j->n,
					 .threads = threads,
					 .make = each,
					 .tick = tick,
					 .arg = j,
					 .name = j->l.root };
	return pen__synth_run(&j->run, err);
}

/* ---- steps ---- */

static int begin(struct job *j, struct pen_err *err)
{
	struct pen_generate *g = j->g;
	const uint64_t rank = (uint64_t)g->comm->rank,
		       size = (uint64_t)g->comm->size;
	int rc = pen__layout_init(&j->l, g->c, err);

	if (rc)
		return rc;
	atomic_store(&g->files_done, 0);
	atomic_store(&g->files_kept, 0);
	atomic_store(&g->bytes_done, 0);
	atomic_store(&g->bytes_total, 0);
	j->n = j->l.nfiles > rank ? (j->l.nfiles - rank + size - 1) / size : 0;
	g->files_total = j->n;
	rc = pen__datafile_init(&j->d, &j->l, err);
	if (rc)
		return rc;
	j->there = pen__calloc((size_t)j->n + 1, sizeof(*j->there));
	if (!j->there)
		return pen__fail_nomem(err, j->l.root, (size_t)j->n);
	return rank ? 0 : prepare(j, err);
}

static int look_around(struct job *j, struct pen_err *err)
{
	uint64_t kept = 0, bytes = 0;
	int rc = run(j, look, err);

	for (uint64_t k = 0; k < j->n && !rc; k++) {
		if (j->there[k]) {
			kept++;
			continue;
		}
		j->space += pen__datafile_size(&j->d, file_of(j, k));
		bytes += pen__layout_bytes(&j->l, file_of(j, k));
	}
	atomic_store(&j->g->files_kept, kept);
	atomic_store(&j->g->files_done, kept);
	atomic_store(&j->g->bytes_total, bytes);
	return rc;
}

/* All ranks write to the same file system, which must have space for all files.
 */
static int check_space(struct job *j, struct pen_err *err)
{
	double need = (double)j->space;
	int rc = pen__comm_reduce(j->g->comm, &need, 1, PEN_SUM, err);

	if (!rc && j->g->comm->rank == 0)
		rc = pen__synth_space(j->l.root,
				      need < 1e19 ? (uint64_t)need : UINT64_MAX,
				      err);
	return pen__comm_agree(j->g->comm, rc, err);
}

int pen__generate(struct pen_generate *g, struct pen_err *err)
{
	struct job j = { .g = g };
	int rc = pen__comm_agree(g->comm, begin(&j, err), err);

	if (!rc)
		rc = pen__comm_agree(g->comm, look_around(&j, err), err);
	if (!rc)
		rc = check_space(&j, err);
	if (!rc)
		rc = pen__comm_agree(g->comm, run(&j, make, err), err);
	pen__datafile_fini(&j.d);
	pen__layout_fini(&j.l);
	pen__free(j.there);
	return rc;
}
