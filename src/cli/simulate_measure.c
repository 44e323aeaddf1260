/*
 * simulate PATH: measures the data with `load` in a few cold runs and derives
 * the inputs of the model. The loader's threads are always busy during `load`,
 * so their time per sample is CPU time plus time in reads; with the latter as
 * latency, the model of this machine reproduces the measured throughput. If the
 * bandwidth of storage was the bottleneck, it becomes the limit of a node
 * instead, because more ranks would not get more.
 */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cmd_simulate.h"
#include "experiment/process.h"
#include "report/doc.h"
#include "verdict/verdict.h"

#define SHORT_S 3.0 /* less is a poor sample */
/* Above this share from the page cache, storage was not measured. */
#define CACHED 0.1

static const char measured[] = "measured";

bool sim_is_data(const char *arg)
{
	return !pen__names_workload(arg) &&
	       (strpbrk(arg, "/*?") || arg[0] == '@' || !access(arg, F_OK));
}

static bool is_given(const struct sim_ask *a, const char *name)
{
	return !strcmp(sim_from(a, name), "given");
}

static bool load_sets(const struct sim_ask *a, const char *key)
{
	const size_t n = strlen(key);

	for (unsigned i = 0; i < a->nload; i++)
		if (!strncmp(a->load_arg[i], key, n) &&
		    a->load_arg[i][n] == '=')
			return true;
	return false;
}

/* ---- where the bytes came from ---- */

static bool is_file_store(const char *store)
{
	return !strcmp(store, "posix") || !strcmp(store, "uring") ||
	       !strcmp(store, "mmap");
}

/*
 * Share of the bytes from the page cache; NAN: unknown. Files without a device
 * are on a network, or in memory, where they stay in the page cache. A run
 * reads each sample once, so no more comes from there than was there at the
 * start; bytes of the device alone do not tell, because those that the loader
 * reads ahead while it is opened are not counted, which matters for little
 * data.
 */
static double cached_share(const struct pen_doc *d)
{
	const double before = pen__doc_number(d, 0, "data.page_cache_share");
	struct pen_facts f;
	double cached;

	pen__facts_init(&f);
	snprintf(f.store, sizeof(f.store), "%s", pen__doc_text(d, 0, "store"));
	if (isfinite(pen__doc_number(d, 0, "why.figures.disk_busy_s")))
		snprintf(f.device, sizeof(f.device), "known");
	f.v[PEN_READ_BYTES] = pen__doc_number(d, 0, "read_bytes");
	f.v[PEN_DEVICE_BYTES] =
		pen__doc_number(d, 0, "why.figures.device_bytes");
	cached = pen__facts_cached(&f);
	if (!is_file_store(f.store) || !(before >= 0))
		return cached;
	return isfinite(cached) ? fmin(before, cached) : before;
}

/* Rejects a measurement that did not reach storage, unless storage= is set. */
static int check_storage(struct sim_ask *a, const struct pen_doc *d)
{
	struct sim_measured *m = &a->measured;
	const char *store = pen__doc_text(d, 0, "store");

	m->given = !sim_assumed(a, "storage") || !sim_assumed(a, "client");
	if (m->given)
		return -1;
	if (!(m->read_bytes > 0) || !strcmp(store, "ram") ||
	    !strcmp(store, "null"))
		return complain_usage(
			P_BAD_VALUE, a->path,
			"nothing was read from storage (store=%s), so its "
			"speed is unknown; use another store, or set storage=",
			store);
	if (m->cached > CACHED)
		return complain_usage(
			P_BAD_VALUE, a->path,
			"%s of the bytes came from memory (page cache), so "
			"storage was not measured; use data that is not "
			"cached, or set storage=",
			pen__show_share(m->cached).s);
	return -1;
}

/* ---- running ---- */

static bool by_rate(const struct pen_doc *d)
{
	const char *cause = pen__doc_text(d, 0, "why.cause");

	return !strcmp(cause, pen__cause_name(PEN_CAUSE_RATE)) ||
	       !strcmp(cause, pen__cause_name(PEN_CAUSE_STORAGE));
}

static void take_part(struct sim_measured *m, const struct pen_doc *d)
{
	const double n = pen__doc_number(d, 0, "samples"),
		     s = pen__doc_number(d, 0, "seconds"),
		     cpu = pen__doc_number(d, 0, "cpu_s"),
		     bytes = pen__doc_number(d, 0, "read_bytes"),
		     threads = pen__doc_number(d, 0, "threads"),
		     reads = pen__doc_number(d, 0, "nreads");
	const double cached = cached_share(d);

	m->part[m->n++] = (struct sim_part){
		.samples_per_s = n / s,
		.read_rate = bytes / s,
		.cpu_load = cpu / n,
		.latency = reads > 0 ? fmax(0, threads * s - cpu) / reads : 0,
	};
	m->seconds += s;
	m->starved |= !strcmp(pen__doc_text(d, 0, "why.cause"),
			      pen__cause_name(PEN_CAUSE_CPU));
	m->samples += n;
	/* the worst part counts */
	if (m->n == 1 || !(cached < m->cached))
		m->cached = cached;
	m->read_bytes += bytes;
}

static int by_speed(const void *a, const void *b)
{
	const struct sim_part *x = a, *y = b;

	return (x->samples_per_s > y->samples_per_s) -
	       (x->samples_per_s < y->samples_per_s);
}

/* What a run of `load` reads, and for how long at most. */
struct window {
	double first, count, step; /* of samples; count 0: all */
	double seconds;
};

static void put_window(const struct window *w, char *text, size_t cap)
{
	snprintf(text, cap, "subset=%.0f:%.0f:%.0f", w->first,
		 w->first + (w->count - 1) * w->step + 1, w->step);
}

static int run_load(const struct sim_ask *a, const struct window *w,
		    struct pen_doc *d)
{
	const char *argv[SIM_MOST_ARGS + 16] = { "",	    "load",
						 a->path,   "--json",
						 "--quiet", "--drop-cache",
						 "epochs=1" };
	struct pen_process p = { .stop = interrupt_asked };
	char subset[96], seconds[32], threads[48], batch[48];
	struct pen_err err = { 0 };
	size_t n = 7;

	put_window(w, subset, sizeof(subset));
	snprintf(seconds, sizeof(seconds), "--seconds=%.3f", w->seconds);
	snprintf(threads, sizeof(threads), "threads=%llu",
		 (unsigned long long)a->s.threads);
	snprintf(batch, sizeof(batch), "batch_size=%llu",
		 (unsigned long long)a->s.batch);
	argv[n++] = seconds;
	for (unsigned k = 0; k < a->nload; k++)
		argv[n++] = a->load_arg[k];
	if (w->count > 0)
		argv[n++] = subset;
	if (is_given(a, "threads"))
		argv[n++] = threads;
	if (is_given(a, "batch"))
		argv[n++] = batch;
	d->name = measured;
	if (!pen__process_doc(&p, argv, d, &err))
		return -1;
	if (interrupted())
		return 128 + interrupted();
	complain(&err);
	return p.code > 0 && p.code < 128 ? p.code : EXIT_FAILED;
}

static void show_progress(const struct sim_ask *a, unsigned i)
{
	if (a->quiet || !isatty(STDERR_FILENO))
		return;
	fputs("\r\033[K", stderr);
	if (i <= SIM_PARTS)
		fprintf(stderr, "measuring %s: run %u of %u", shown(a->path), i,
			SIM_PARTS);
}

/* A short run determines the number of samples per part. A part is limited by
 * samples, not by time, so that no prefetched sample distorts its figures. */
static int probe(const struct sim_ask *a, double *samples, double *rate,
		 double *batch)
{
	struct window w = { .seconds = a->s.seconds / 10 };
	double n = 0;
	int rc = -1;

	for (unsigned i = 0; i < 2 && rc < 0 && !(n > 0); i++) {
		struct pen_doc d;

		rc = run_load(a, &w, &d);
		if (rc >= 0)
			return rc;
		n = pen__doc_number(&d, 0, "samples");
		*samples = pen__doc_number(&d, 0, "data.samples");
		*rate = n / pen__doc_number(&d, 0, "seconds");
		*batch = pen__doc_number(&d, 0, "batch_size");
		pen__jdoc_close(&d.j);
		w.seconds = a->s.seconds;
	}
	if (n > 0 && *samples >= 1 && *batch >= 1)
		return -1;
	return complain_usage(P_TOO_FEW_SAMPLES, a->path,
			      "no batch was delivered within %g s; raise "
			      "seconds=, or lower batch_size=",
			      a->s.seconds);
}

static bool shuffles(const struct sim_ask *a)
{
	for (unsigned i = 0; i < a->nload; i++)
		if (!strcmp(a->load_arg[i], "shuffle=true") ||
		    !strcmp(a->load_arg[i], "sampler=shuffle"))
			return true;
	return false;
}

/* Part number i: neighbours, as they are read in order, or samples from all
 * over the data, as a shuffle reads them. */
static struct window window_of(const struct sim_ask *a, unsigned i,
			       double samples, double rate, double batch)
{
	const double each = floor(samples / SIM_PARTS);
	struct window w = { .step = 1, .seconds = a->s.seconds / 2 };

	w.count = floor(fmin(rate * a->s.seconds * 0.3, each) / batch) * batch;
	if (w.count < batch) { /* little data, or slow: as much as there is */
		w.count = fmin(batch, samples);
		w.first = fmin(i * each, samples - w.count);
	} else if (shuffles(a)) {
		w.step = floor(samples / w.count);
		w.first = fmin(i, w.step - 1);
	} else {
		w.first = i * each;
	}
	return w;
}

static void settle(struct sim_ask *a)
{
	struct sim_measured *m = &a->measured;
	struct pen_err err = { 0 };

	if (m->seconds < SHORT_S)
		pen__text_add(&a->notes,
			      "measured: only %s were measured; use more data "
			      "for a better prediction\n",
			      human_time(m->seconds));
	if (m->starved)
		pen__text_add(&a->notes,
			      "measured: other processes used the CPUs; repeat "
			      "on a quiet machine\n");

	qsort(m->part, m->n, sizeof(m->part[0]), by_speed);
	m->mid = m->n / 2;
	if (sim_assumed(a, "nodes"))
		(void)!pen__opt_set(pen__sim_opts, &a->s, "nodes", "1", &err);
	if (sim_assumed(a, "ranks"))
		a->s.ranks = 1;
	if (sim_assumed(a, "epochs") && a->s.cache == PEN_SIM_NONE)
		a->s.epochs = 1;
	/* time in reads is that of threads, whatever is in flight */
	a->s.depth = 1;
	sim_say(a, "depth", measured);
	sim_say(a, "reads", measured);
}

static int take_first(struct sim_ask *a, const struct pen_doc *d)
{
	struct sim_measured *m = &a->measured;
	const int rc = sim_take_load(a, d);

	if (rc >= 0)
		return rc;
	m->by_rate = by_rate(d);
	m->stored_bytes = pen__doc_number(d, 0, "data.bytes") /
			  pen__doc_number(d, 0, "data.samples");
	snprintf(m->why, sizeof(m->why), "%s: %s. %s",
		 pen__doc_text(d, 0, "why.what"),
		 pen__doc_text(d, 0, "why.evidence"),
		 pen__doc_text(d, 0, "why.advice"));
	a->s.reads = pen__doc_number(d, 0, "nreads") /
		     pen__doc_number(d, 0, "samples");
	return -1;
}

/* Pages of files that were just written stay in the page cache until they are
 * on disk. */
static void flush_dirty(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return;
	(void)!syncfs(fd);
	close(fd);
}

int sim_measure(struct sim_ask *a)
{
	double samples = 0, rate = 0, batch = 0;
	int rc = -1;

	if (load_sets(a, "subset"))
		return complain_usage(P_CONFLICT, "simulate",
				      "subset= is used for the measurement; "
				      "omit it");
	flush_dirty(a->path);
	show_progress(a, 1);
	rc = probe(a, &samples, &rate, &batch);
	for (unsigned i = 0; i < SIM_PARTS && rc < 0; i++) {
		const struct window w = window_of(a, i, samples, rate, batch);
		struct pen_doc d;

		show_progress(a, i + 1);
		rc = run_load(a, &w, &d);
		if (rc >= 0)
			break;
		if (!i)
			rc = take_first(a, &d);
		if (rc < 0)
			take_part(&a->measured, &d);
		if (rc < 0)
			rc = check_storage(a, &d);
		pen__jdoc_close(&d.j);
	}
	show_progress(a, SIM_PARTS + 1);
	if (rc < 0)
		settle(a);
	return rc;
}

void sim_use_part(const struct sim_ask *a, unsigned part, struct pen_sim *m)
{
	const struct sim_measured *x = &a->measured;
	const struct sim_part *p = &x->part[part];

	m->cpu_load = p->cpu_load;
	if (x->given)
		return;
	m->storage_latency = x->by_rate ? 0 : p->latency;
	if (x->by_rate) {
		m->client_rate = p->read_rate;
		m->by_net = false;
	}
}
