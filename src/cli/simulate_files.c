/*
 * Measurements as input of a simulation: results of `penstock load` and
 * `penstock ddict bench`. A missing or impossible figure is an error that names
 * it; nothing is filled in silently.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd_simulate.h"
#include "report/doc.h"

/* --- reading figures --- */

static bool positive(double x)
{
	return x > 0 && x < 1e18;
}

/* Figures that a file must have. */
struct need {
	const char *path;
	double *to;
};

static int complain_number(const struct pen_doc *d, const char *path, double x,
			   const char *how)
{
	if (isnan(x))
		return complain_usage(P_BAD_VALUE, d->name,
				      "%s is missing; measure with `%s`", path,
				      how);
	return complain_usage(
		P_BAD_VALUE, d->name,
		"%s is %g, which is impossible; measure with `%s`", path, x,
		how);
}

/* Takes a count from a file unless it is already known. */
static void take_count(struct sim_ask *a, const struct pen_doc *d,
		       const char *path, const char *name, uint64_t *to)
{
	const double x = pen__doc_number(d, 0, path);

	if (!sim_assumed(a, name) || !(x >= 1) || x > 1e15)
		return;
	*to = (uint64_t)x;
	sim_say(a, name, d->name);
}

/* --- load --- */

#define LOAD "penstock load PATH -o FILE"

/* If batches arrive in bursts, their waits do not show the cost of one. */
static void take_spread(struct sim_ask *a, const struct pen_doc *d, double each)
{
	const double p50 = pen__doc_number(d, 0, "wait_ns.p50") / 1e9,
		     p99 = pen__doc_number(d, 0, "wait_ns.p99") / 1e9;

	if (p50 > each / 2 && p99 >= p50 && p99 < 1e6 * p50) {
		a->s.spread = p99 / p50;
		sim_say(a, "spread", d->name);
		return;
	}
	pen__text_add(&a->notes,
		      "%s: batches arrived in bursts, so the spread is not "
		      "taken from p99 and p50\n",
		      d->name);
}

/* With many reads in flight they are not sequential. */
static void take_reads(struct sim_ask *a, const struct pen_doc *d, double n)
{
	const double reads = pen__doc_number(d, 0, "nreads");

	if (!strcmp(pen__doc_text(d, 0, "store"), "uring")) {
		take_count(a, d, "queue_depth", "depth", &a->s.depth);
		return;
	}
	if (!positive(reads) || reads / n > 1e6)
		return;
	a->s.reads = reads / n;
	sim_say(a, "reads", d->name);
}

int sim_take_load(struct sim_ask *a, const struct pen_doc *d)
{
	double n, cpu, batches, seconds, bytes;
	const struct need v[] = { { "samples", &n },
				  { "cpu_s", &cpu },
				  { "batches", &batches },
				  { "seconds", &seconds },
				  { "payload_bytes", &bytes } };

	for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
		*v[i].to = pen__doc_number(d, 0, v[i].path);
		if (!positive(*v[i].to))
			return complain_number(d, v[i].path, *v[i].to, LOAD);
	}
	if (pen__doc_number(d, 0, "cache.hits") > 0)
		return complain_usage(
			P_BAD_VALUE, d->name,
			"some samples came from the cache, so neither the cost "
			"of a read nor of a hit is known; measure without "
			"cache=, and hits with `penstock ddict bench`");
	if (pen__doc_true(d, 0, "partial"))
		pen__text_add(&a->notes,
			      "%s: the measurement was ended early\n", d->name);
	/* use the stored size where samples were read, not synthesised */
	if (positive(pen__doc_number(d, 0, "read_bytes")))
		bytes = pen__doc_number(d, 0, "read_bytes");
	if (!a->s.sample_bytes) {
		a->s.sample_bytes = (uint64_t)fmax(bytes / n, 1);
		sim_say(a, "sample_bytes", d->name);
	}
	take_count(a, d, "data.samples", "samples", &a->s.samples);
	take_count(a, d, "batch_size", "batch", &a->s.batch);
	take_count(a, d, "threads", "threads", &a->s.threads);
	take_count(a, d, "prefetch", "ahead", &a->s.ahead);
	a->s.cpu_load =
		sim_ns(cpu / n * (double)a->s.sample_bytes / (bytes / n));
	sim_say(a, "cpu_load", d->name);
	take_reads(a, d, n);
	take_spread(a, d, seconds / batches);
	return -1;
}

/* --- ddict bench --- */

#define DDICT "penstock ddict bench --json > FILE"

static double way_cpu(const struct pen_doc *d, const char *name)
{
	const uint32_t ways = pen__doc_at(d, 0, "ways");

	for (uint32_t w = pen__jdoc_first(&d->j, ways); w != PEN_JDOC_NONE;
	     w = pen__jdoc_next(&d->j, w))
		if (!strcmp(pen__doc_text(d, w, "name"), name))
			return pen__doc_number(d, w, "cpu_seconds_each");
	return NAN;
}

static void note_scale(struct sim_ask *a, const struct pen_doc *d, double size,
		       double scale)
{
	if (scale > 2 || scale < 0.5)
		pen__text_add(&a->notes,
			      "%s: values of %s are scaled to samples of %s; "
			      "measure with size=%llu\n",
			      d->name, human_bytes(size),
			      human_bytes((double)a->s.sample_bytes),
			      (unsigned long long)a->s.sample_bytes);
}

/* Both ends were measured together; one value in `home` was not sent at all. */
static int take_wire(struct sim_ask *a, const struct pen_doc *d, double there)
{
	const double machines = pen__doc_number(d, 0, "machines");
	double home = pen__doc_number(d, 0, "ranks");

	if (!(home >= 2 && home < 1e6))
		return complain_usage(
			P_BAD_VALUE, d->name,
			"measured with fewer than 2 ranks; use `mpirun -n 2 "
			"penstock ddict bench share=false --json > FILE`");
	if (machines >= 2 && !strncmp(pen__doc_text(d, 0, "transport"),
				      "shared memory on a machine", 26))
		home = machines;
	if (!sim_assumed(a, "cpu_hit"))
		there -= (double)a->s.cpu_hit / 1e9 / home;
	there = fmax(there, 0) / (1 - 1 / home);
	a->s.cpu_ask = a->s.cpu_serve = sim_ns(there / 2);
	sim_say(a, "cpu_ask", d->name);
	sim_say(a, "cpu_serve", d->name);
	return -1;
}

static int take_ddict(struct sim_ask *a, const struct pen_doc *d)
{
	const double size = pen__doc_number(d, 0, "size"),
		     put = way_cpu(d, "put_many"),
		     here = way_cpu(d, "get_many, copied"),
		     there = way_cpu(d, "get_many, ahead, copied");
	const char *how = pen__doc_text(d, 0, "transport");
	double scale;

	if (!positive(size))
		return complain_number(d, "size", size, DDICT);
	if (!positive(put) || !positive(here) || !positive(there))
		return complain_usage(P_BAD_VALUE, d->name,
				      "the rates of 'put_many', 'get_many, "
				      "copied' or 'get_many, ahead, copied' "
				      "are missing; measure with `" DDICT "`");
	scale = a->s.sample_bytes ? (double)a->s.sample_bytes / size : 1;
	note_scale(a, d, size, scale);
	if (strncmp(how, "shared memory:", 14))
		return take_wire(a, d, there * scale);
	a->s.cpu_put = sim_ns(put * scale);
	a->s.cpu_hit = sim_ns(here * scale);
	sim_say(a, "cpu_put", d->name);
	sim_say(a, "cpu_hit", d->name);
	return -1;
}

/* --- files --- */

static const struct {
	const char *schema;
	int (*take)(struct sim_ask *, const struct pen_doc *);
} kinds[] = { { "penstock.load/", sim_take_load },
	      { "penstock.ddict.bench/", take_ddict } };

/* Only version 1 of each schema exists; a later one may mean something else. */
static int take_doc(struct sim_ask *a, const struct pen_doc *d)
{
	const char *is = pen__doc_text(d, 0, "schema");

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (!pen__doc_is(d, kinds[i].schema))
			continue;
		if (strcmp(is + strlen(kinds[i].schema), "1"))
			return complain_usage(
				P_BAD_VALUE, d->name,
				"the schema is %s, but this build reads %s1; "
				"measure again with this build",
				is, kinds[i].schema);
		return kinds[i].take(a, d);
	}
	if (pen__doc_is(d, "penstock.result/"))
		return complain_usage(P_BAD_VALUE, d->name,
				      "a result of `penstock run` does not "
				      "show what a sample costs; name the "
				      "workload, and measure with `" LOAD "`");
	return complain_usage(P_BAD_VALUE, d->name,
			      "the schema '%s' is not that of a measurement; "
			      "measure with `" LOAD "` or `" DDICT "`",
			      is);
}

int sim_take_file(struct sim_ask *a, const char *path)
{
	struct pen_doc d;
	struct pen_err err = { 0 };
	int rc;

	if (pen__doc_open(&d, path, &err))
		return complain(&err);
	rc = take_doc(a, &d);
	pen__doc_close(&d);
	return rc;
}
