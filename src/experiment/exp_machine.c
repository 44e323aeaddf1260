/*
 * A machine with limited resources: files mapped, read with pread, and read
 * entirely into memory, with less memory than data; and loading while a
 * training step uses the CPU, each alone and both together, with several
 * numbers of loader threads.
 *
 * A limit on address space does not limit mapped files, which count whether or
 * not they are in memory. So a run either joins a cgroup with a limit, if one
 * can be created, or drops the pages of the files each time it has delivered
 * that many bytes: not a limit, but the same misses for data in random order.
 * Only cgroup v2 with the memory controller is used.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/page_cache.h"
#include "base/team.h"
#include "experiment/harness.h"

/* ---- a cgroup ---- */

/* Limits the memory for files to `limit` bytes. */
struct squeeze {
	uint64_t limit;
	char group[2100]; /* cgroup; "": pages are dropped instead */
	const char *path; /* of the data: prefix of the mapped files */
	const struct pen_dataset *ds;
	uint64_t used, ndrops, drop_ns;
};

static bool read_word(const char *dir, const char *file, char *buf, size_t cap)
{
	char path[4400];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, buf, cap - 1);
	close(fd);
	if (n < 0)
		return false;
	buf[n] = '\0';
	return true;
}

static bool write_word(const char *dir, const char *file, const char *word)
{
	char path[4400];
	const size_t n = strlen(word);
	bool ok;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ok = write(fd, word, n) == (ssize_t)n;
	close(fd);
	return ok;
}

/* The cgroup of this process, from the line "0::/path". */
static bool own_group(char *dir, size_t cap)
{
	static const char *const mounts[] = { "/sys/fs/cgroup",
					      "/sys/fs/cgroup/unified" };
	char text[4096], *line;

	if (!read_word("/proc/self", "cgroup", text, sizeof(text)))
		return false;
	line = !strncmp(text, "0::", 3) ? text : strstr(text, "\n0::");
	if (!line)
		return false;
	line += *line == '\n' ? 4 : 3;
	line[strcspn(line, "\n")] = '\0';
	for (size_t i = 0; i < 2; i++) {
		char all[1024];

		snprintf(dir, cap, "%s%s", mounts[i], line);
		if (read_word(dir, "cgroup.controllers", all, sizeof(all)))
			return true;
	}
	return false;
}

static void squeeze_close(struct squeeze *q)
{
	if (q->group[0])
		rmdir(q->group);
	q->group[0] = '\0';
}

static bool squeeze_open(struct squeeze *q, const char *in)
{
	char dir[2048], down[1024], limit[32];

	if (in)
		snprintf(dir, sizeof(dir), "%s", in);
	else if (!own_group(dir, sizeof(dir)))
		return false;
	/* a group without the memory controller cannot be limited */
	if (!read_word(dir, "cgroup.subtree_control", down, sizeof(down)) ||
	    !strstr(down, "memory"))
		return false;
	snprintf(q->group, sizeof(q->group), "%s/penstock.%ld", dir,
		 (long)getpid());
	snprintf(limit, sizeof(limit), "%llu", (unsigned long long)q->limit);
	if (mkdir(q->group, 0755)) {
		q->group[0] = '\0';
		return false;
	}
	if (!write_word(q->group, "memory.max", limit)) {
		squeeze_close(q);
		return false;
	}
	(void)!write_word(q->group, "memory.swap.max", "0");
	return true;
}

static int squeeze_enter(const struct squeeze *q, struct pen_err *err)
{
	char pid[32];

	if (!q->group[0])
		return 0;
	snprintf(pid, sizeof(pid), "%ld", (long)getpid());
	if (!write_word(q->group, "cgroup.procs", pid))
		return pen__fail_sys(err, errno, q->group,
				     "cannot join the cgroup");
	return 0;
}

/* ---- dropping pages ---- */

/* Releases the pages of mapped files whose names start with `path`. */
static void unmap_pages(const char *path)
{
	FILE *f = fopen("/proc/self/maps", "re");
	const size_t n = strlen(path);
	char line[4600];

	while (f && fgets(line, sizeof(line), f)) {
		unsigned long long from, to;
		const char *name = strchr(line, '/');

		if (!name || strncmp(name, path, n) != 0 ||
		    sscanf(line, "%llx-%llx", &from, &to) != 2)
			continue;
		madvise((void *)(uintptr_t)from, (size_t)(to - from),
			MADV_DONTNEED);
	}
	if (f)
		fclose(f);
}

static void drop(struct squeeze *q)
{
	const uint64_t start = pen__now_ns();
	char path[4096];

	unmap_pages(q->path);
	for (uint64_t i = 0; i < pen_dataset_nobjects(q->ds); i++)
		if (!pen_dataset_object(q->ds, i, path, sizeof(path), NULL))
			pen__page_cache_drop(path);
	q->ndrops++;
	q->drop_ns += pen__now_ns() - start;
	q->used = 0;
}

static int squeeze_batch(void *arg, const struct pen_batch *b,
			 struct pen_err *err)
{
	struct squeeze *q = arg;

	(void)err;
	for (uint32_t i = 0; i < b->ntensors; i++)
		q->used += b->tensors[i].nbytes;
	if (!q->group[0] && q->used >= q->limit)
		drop(q);
	return 0;
}

/* ---- limited memory ---- */

enum { MAPPED, PREAD, MEMORY, NWAYS };
static const char *const ways[] = { "mmap", "pread", "in memory" };
static const char *const stores[] = { "mmap", "posix", "ram" };

struct mapping {
	struct squeeze q;
	char real[4096];
};

static int run_mapped(struct pen_session *r, const struct pen_trial *t,
		      struct pen_text *j, struct pen_err *err)
{
	const struct mapping *g = r->own;
	const struct pen_spec_change set[] = {
		{ "store", stores[t->of->kind], 0 }, { .key = NULL }
	};
	struct squeeze q = g->q;
	/* cold, so that all pages are charged to this process */
	struct pen_pass pass = { .content = true,
				 .temper = PEN_COLD,
				 .eat = squeeze_batch,
				 .arg = &q };
	struct pen_dataset *ds;
	int rc = pen_dataset_open(&ds, r->spec, err);

	if (rc)
		return rc;
	q.path = g->real;
	q.ds = ds;
	rc = squeeze_enter(&q, err);
	if (!rc)
		rc = pen__run_pass_with(r, t, &pass, set, j, err);
	if (!rc) {
		const double all = pass.open_s + pass.seconds;

		pen__json_num(j, "samples_per_s_in_all",
			      all > 0 ? (double)pass.nsamples / all : 0);
		pen__json_int(j, "limit_bytes", q.limit);
		pen__json_str(j, "limited_by",
			      q.group[0]	      ? "cgroup"
			      : t->of->kind == MEMORY ? "nothing"
						      : "dropping pages");
		pen__json_int(j, "n_drops", q.ndrops);
		pen__json_num(j, "drop_s", (double)q.drop_ns / 1e9);
	}
	pen_dataset_close(ds);
	return rc;
}

/* Chooses how to limit memory, before the first run. */
static int settle(struct pen_session *r, struct pen_err *err)
{
	const char *cgroup = pen__value(r, "--cgroup")->text;
	const bool evict = pen__given(r, "--evict");
	struct mapping *g = r->own;

	if (!realpath(pen_spec_path(r->spec, 0), g->real))
		return pen__fail(err, P_BAD_VALUE, r->name,
				 "'%s' is not a single file or directory",
				 pen_spec_path(r->spec, 0));
	g->q.limit = pen__given(r, "--limit")
			     ? (uint64_t)pen__number(r, "--limit")
			     : (uint64_t)r->shared->bytes / 2;
	if (!evict && !squeeze_open(&g->q, cgroup) && cgroup)
		return pen__fail(err, P_BAD_VALUE, r->name,
				 "--cgroup: cannot create a cgroup with a "
				 "memory limit in '%s'",
				 cgroup);
	pen__text_add(&r->notes, "  Memory for the %sfiles: %s, ",
		      g->q.group[0] ? "process and its " : "",
		      pen__show_bytes((double)g->q.limit).s);
	if (g->q.group[0])
		pen__text_add(&r->notes, "enforced by a cgroup.\n");
	else
		pen__text_add(&r->notes,
			      "not enforced%s: pages are dropped each\n  time "
			      "that many bytes were delivered; `in memory` is "
			      "not limited.\n",
			      evict ? "" : " (cannot create a cgroup)");
	return 0;
}

static int prepare_mapped(struct pen_session *r, struct pen_err *err)
{
	const struct mapping *g = r->own;
	int rc = pen__run_data(r, err);

	if (!rc)
		rc = settle(r, err);
	for (int i = 0; !rc && i < NWAYS; i++) {
		struct pen_setup *s =
			pen__setup_add(r, ways[i], "", (uint64_t)i);

		s->kind = i;
		s->as_it_is = true;
		snprintf(s->check, sizeof(s->check), "limit=%llu %s",
			 (unsigned long long)g->q.limit,
			 g->q.group[0] ? "cgroup" : "dropped");
	}
	return rc;
}

static void close_mapped(struct pen_session *r)
{
	squeeze_close(&((struct mapping *)r->own)->q);
}

static bool is_limited(const struct pen_variants *a,
		       const struct pen_variant *m)
{
	(void)a;
	return strcmp(pen__line_text(m->row, "limited_by"), "nothing") != 0;
}

static void words_mapped(struct pen_text *t, const struct pen_variants *a)
{
	static const struct pen_ranking fastest = {
		.what = "Fastest with limited memory",
		.key = "samples_per_s_in_all",
		.takes = is_limited
	};

	pen__put_best(t, a, &fastest);
}

static void facts_mapped(struct pen_text *t, const struct pen_variants *a)
{
	const struct pen_variant *in = pen__variant_find(a, "in memory", NULL);
	const struct pen_variant *best = NULL;

	for (size_t i = 0; i < a->n && !best; i++)
		if (is_limited(a, &a->v[i]) && a->v[i].n)
			best = &a->v[i];
	if (!best)
		return;
	if (!strcmp(pen__line_text(best->row, "limited_by"), "cgroup")) {
		if (!in)
			pen__text_add(t, "Reading all files into memory "
					 "exceeds the limit.\n");
		return;
	}
	pen__text_add(
		t,
		"Memory was not limited: pages were dropped each time %s had "
		"been delivered.\n",
		pen__show_bytes(pen__median_of(a, best, "limit_bytes")).s);
	if (in && pen__median_of(a, in, "own_memory_bytes") >
			  pen__median_of(a, in, "limit_bytes"))
		pen__text_add(t,
			      "`in memory` used %s, more than the limit: it "
			      "would have failed.\n",
			      pen__shown_of(a, in, "own_memory_bytes").s);
}

struct pen_experiment pen__exp_mmap = {
	.kind = { .experiment = "mmap",
		  .words = words_mapped,
		  .facts = facts_mapped },
	.own = sizeof(struct mapping),
	.prepare = prepare_mapped,
	.run = run_mapped,
	.close = close_mapped,
};

/* ---- a busy CPU ---- */

/* Threads that compute continuously, like a training step on the CPU, and count
 * their work. They stay within the L1 cache: they compete for the CPU, not for
 * memory. */
struct busy {
	struct pen_team *team;
	atomic_uint_fast64_t done;
	atomic_bool stop;
	uint64_t start_ns;
};

#define NUMBERS 1024

/* One unit of work: about 10 us. */
static double piece(double seed)
{
	double v[NUMBERS], sum = 0;

	for (int i = 0; i < NUMBERS; i++)
		v[i] = seed + i;
	for (int k = 0; k < 4; k++)
		for (int i = 0; i < NUMBERS; i++) {
			v[i] = v[i] * 0.999 + 0.5;
			sum += v[i];
		}
	return sum;
}

static void work(void *arg, unsigned i)
{
	struct busy *b = arg;
	double x = i;

	while (!atomic_load_explicit(&b->stop, memory_order_relaxed)) {
		x = fmod(piece(x), 7);
		atomic_fetch_add_explicit(&b->done, 1, memory_order_relaxed);
	}
	/* keeps the compiler from removing the work */
	if (x == 0.123)
		atomic_fetch_add(&b->done, 1);
}

static int busy_start(struct busy *b, unsigned threads, struct pen_err *err)
{
	atomic_store(&b->done, 0);
	atomic_store(&b->stop, false);
	b->start_ns = pen__now_ns();
	b->team = NULL;
	return threads ? pen__team_start(&b->team, threads, "pen-busy", work, b,
					 err)
		       : 0;
}

static double busy_stop(struct busy *b)
{
	const double n = (double)atomic_load(&b->done);
	const double s = (double)(pen__now_ns() - b->start_ns) / 1e9;

	atomic_store(&b->stop, true);
	pen__team_join(b->team);
	b->team = NULL;
	return s > 0 ? n / s : 0;
}

enum { WORK, LOADER, BOTH };

static int work_alone(const struct pen_session *r, unsigned threads,
		      struct pen_text *j, struct pen_err *err)
{
	const uint64_t ms = (uint64_t)pen__number(r, "--alone");
	const struct timespec t = { (time_t)(ms / 1000),
				    (long)(ms % 1000) * 1000000 };
	struct busy w;
	int rc = busy_start(&w, threads, err);

	if (rc)
		return rc;
	nanosleep(&t, NULL);
	pen__json_num(j, "work_per_s", busy_stop(&w));
	return 0;
}

static unsigned busy_threads(const struct pen_session *r)
{
	return pen__given(r, "--busy") ? (unsigned)pen__number(r, "--busy")
				       : pen__cpus();
}

static int run_beside(struct pen_session *r, const struct pen_trial *t,
		      struct pen_text *j, struct pen_err *err)
{
	const int kind = t->of->kind;
	const unsigned busy = kind == LOADER ? 0 : busy_threads(r);
	const struct pen_spec_change set[] = {
		{ "threads", NULL, t->of->value }, { .key = NULL }
	};
	struct busy w;
	int rc;

	pen__json_int(j, "busy_threads", busy);
	pen__json_int(j, "loader_threads", t->of->value);
	if (kind == WORK)
		return work_alone(r, busy, j, err);
	rc = busy_start(&w, busy, err);
	if (rc)
		return rc;
	rc = pen__run_pass_with(r, t, NULL, set, j, err);
	if (kind == BOTH)
		pen__json_num(j, "work_per_s", busy_stop(&w));
	return rc;
}

static int prepare_beside(struct pen_session *r, struct pen_err *err)
{
	const unsigned busy = busy_threads(r);
	struct pen_taken threads = *pen__value(r, "--threads");
	struct pen_setup *s = pen__setup_add(r, "work alone", "", 0);

	s->kind = WORK;
	s->as_it_is = true;
	s->check[0] = '\0';
	for (unsigned n = 1; !pen__given(r, "--threads") &&
			     n <= 2 * pen__cpus() && threads.n < 16;
	     n *= 2)
		threads.v[threads.n++] = n;
	for (size_t i = 0; i < 2 * threads.n; i++) {
		const uint64_t n = (uint64_t)threads.v[i / 2];
		char name[48] = "loader alone";

		if (i % 2)
			snprintf(name, sizeof(name), "beside %.30s busy",
				 pen__show_grouped(busy).s);
		pen__setup_add(r, name, pen__show_counted(n, "thread").s, n)
			->kind = i % 2 ? BOTH : LOADER;
	}
	return pen__run_data(r, err);
}

static void words_beside(struct pen_text *t, const struct pen_variants *a)
{
	const struct pen_variant *alone =
		pen__variant_find(a, "work alone", "");

	for (size_t i = 0; i < a->n; i++) {
		const struct pen_variant *c = &a->v[i];
		const struct pen_variant *was =
			pen__variant_find(a, "loader alone", c->group);

		if (isnan(pen__median_of(a, c, "work_per_s")) ||
		    isnan(pen__median_of(a, c, "samples_per_s")) || !was)
			continue;
		pen__text_add(t,
			      "%s: the loader keeps %s of its rate, the work "
			      "keeps %s of its own.\n",
			      c->group,
			      pen__part_of(a, was, c, "samples_per_s").s,
			      pen__part_of(a, alone, c, "work_per_s").s);
	}
}

struct pen_experiment pen__exp_neighbour = {
	.kind = { .experiment = "neighbour", .words = words_beside },
	.prepare = prepare_beside,
	.run = run_beside,
};
