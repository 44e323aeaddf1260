/*
 * doc2vec: paragraph vectors of sequences (distributed memory, negative
 * sampling), an example of a training program on penstock's public API. The
 * loader makes the tensors (target, context, noise words) and the model uses
 * them in place, without copying.
 *
 * Every epoch is verified: each sequence occurs once, and the content is the
 * same as in the epoch before. Anything else is an error.
 */
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "crew.h"
#include "options.h"
#include "penstock.h"
#include "vectors.h"

/* The four fields of a batch. */
enum { DOC, TARGET, CONTEXT, GUESS, NFIELDS };
static const char *const names[NFIELDS] = { "doc_ids", "target_ids",
					    "context_ids", "target_noise_ids" };

/* Totals of an epoch. */
struct epoch {
	uint64_t nsamples, ntargets, nbatches;
	uint64_t sum; /* of targets and contexts, independent of the order */
	double loss;  /* summed over targets */
	double load_s, model_s, start;
};

struct run {
	struct options o;
	struct pen_loader *loader;
	const struct pen_dataset *data;
	struct model model;
	struct crew *crew;
	struct sequence *q;
	uint32_t room;	/* of q */
	uint8_t *seen;	/* a bit per sequence */
	uint64_t first; /* content of the first epoch */
	bool first_known;
	double shown; /* time of the last progress line */
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int set(struct pen_spec *spec, const char *setting, struct pen_err *err)
{
	return pen_spec_parse(spec, setting, err);
}

static int open_loader(struct run *r, char **args, int n, struct pen_err *err)
{
	char epochs[40], seed[40];
	struct pen_spec *spec;
	int rc = pen_spec_new(&spec, err);

	if (rc)
		return rc;
	snprintf(epochs, sizeof(epochs), "epochs=%" PRIu64, r->o.epochs);
	snprintf(seed, sizeof(seed), "seed=%" PRIu64, r->o.seed);
	if ((rc = set(spec, "format=lines", err)) ||
	    (rc = set(spec, "format.tokens=dm", err)) ||
	    (rc = set(spec, "format.dtype=int32", err)) ||
	    (rc = set(spec, "shuffle=true", err)) ||
	    (rc = set(spec, epochs, err)) || (rc = set(spec, seed, err)))
		goto out;
	for (int i = 0; i < n && !rc; i++)
		rc = strchr(args[i], '=')
			     ? set(spec, args[i], err)
			     : pen_spec_add_path(spec, args[i], err);
	if (!rc)
		rc = pen_loader_open(&r->loader, spec, err);
out:
	pen_spec_free(spec);
	return rc;
}

/* Finds the tensors of a batch, in the order of `names`. */
static int find(const struct pen_batch *b, const struct pen_tensor **t)
{
	for (unsigned f = 0; f < NFIELDS; f++) {
		t[f] = NULL;
		for (uint32_t i = 0; i < b->ntensors; i++)
			if (!strcmp(b->tensors[i].name, names[f]))
				t[f] = &b->tensors[i];
		if (!t[f])
			return fail(names[f], "the data has no such field; set "
					      "format.tokens=dm");
		if (t[f]->dtype != PEN_I32 ||
		    (t[f]->layout != PEN_DENSE && t[f]->layout != PEN_RAGGED))
			return fail(
				names[f],
				"must be int32 and neither padded nor packed; "
				"do not set format.dtype, shapes or pack");
	}
	return 0;
}

/* Start and length of row i of a field. */
static const int32_t *row(const struct pen_tensor *t, uint32_t i, uint64_t *n)
{
	const int32_t *data = t->data;

	if (t->layout == PEN_RAGGED) {
		*n = (uint64_t)(t->offsets[i + 1] - t->offsets[i]);
		return data + t->offsets[i];
	}
	*n = 1;
	for (uint32_t d = 1; d < t->ndim; d++)
		*n *= (uint64_t)t->shape[d];
	return data + *n * i;
}

static uint64_t total(const int32_t *v, uint64_t n)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < n; i++)
		sum += (uint32_t)v[i];
	return sum;
}

static bool all_are(const int32_t *v, uint64_t n, int32_t what)
{
	int32_t differ = 0;

	for (uint64_t i = 0; i < n; i++)
		differ |= v[i] ^ what;
	return !differ;
}

/* Splits a batch into sequences, and adds it to the epoch's totals. */
static int sequences(struct run *r, const struct pen_batch *b, struct epoch *e)
{
	const struct pen_tensor *t[NFIELDS];
	const int32_t *v[NFIELDS];
	uint64_t n[NFIELDS];

	if (find(b, t))
		return 1;
	if (b->nsamples > r->room) {
		free(r->q);
		r->room = b->nsamples;
		r->q = calloc(r->room, sizeof(*r->q));
		if (!r->q)
			return fail("memory", "not enough for a batch");
	}
	for (uint32_t i = 0; i < b->nsamples; i++) {
		uint64_t id = b->ids[i], c;

		for (unsigned f = 0; f < NFIELDS; f++)
			v[f] = row(t[f], i, &n[f]);
		c = n[TARGET];
		if (n[DOC] != c || (c && (n[CONTEXT] % c || n[GUESS] % c)) ||
		    (c && !all_are(v[DOC], c, v[DOC][0])))
			return fail("batch",
				    "the fields do not match one another");
		r->q[i] = (struct sequence){
			.doc = c ? (uint64_t)(uint32_t)v[DOC][0] : 0,
			.ntargets = (uint32_t)c,
			.ncontext = c ? (uint32_t)(n[CONTEXT] / c) : 0,
			.nwords = c ? (uint32_t)(n[GUESS] / c) : 1,
			.context = v[CONTEXT],
			.guess = v[GUESS],
		};
		if (r->seen[id / 8] & 1 << id % 8)
			return fail("epoch", "a sequence occurred twice");
		r->seen[id / 8] |= (uint8_t)(1 << id % 8);
		e->ntargets += c;
		e->sum += total(v[TARGET], c) +
			  3 * total(v[CONTEXT], n[CONTEXT]) +
			  7 * total(v[DOC], c);
	}
	e->nsamples += b->nsamples;
	e->nbatches++;
	return 0;
}

static void progress(struct run *r, const struct epoch *e, uint64_t number)
{
	double t = now(), rate = (double)e->nsamples / (t - e->start);
	double left = (double)(pen_dataset_nsamples(r->data) - e->nsamples);

	if (r->o.quiet || r->o.json || !isatty(2) || t - r->shown < 0.2)
		return;
	r->shown = t;
	fprintf(stderr,
		"\repoch %" PRIu64 ": %.1f %%, %.0f sequences/s, loss %.4f, "
		"%.0f s left \033[K",
		number + 1,
		100.0 * (double)e->nsamples /
			(double)pen_dataset_nsamples(r->data),
		rate, e->ntargets ? e->loss / (double)e->ntargets : 0.0,
		left / rate);
}

static int train(struct run *r, const struct pen_batch *b, struct epoch *e)
{
	uint64_t before = e->ntargets;
	double loss = 0;

	if (sequences(r, b, e))
		return 1;
	if (r->o.none)
		return 0;
	switch (crew_step(r->crew, r->q, b->nsamples, &loss)) {
	case STEP_WRONG:
		return fail("batch",
			    "an id is not that of a word or document; check "
			    "that format.vocab belongs to this data");
	case STEP_NOMEM:
		return fail("memory", "not enough for the gradients of a "
				      "batch; reduce batch_size");
	case STEP_DONE:
		break;
	}
	e->loss += loss * (double)(e->ntargets - before);
	return 0;
}

/* Verifies a completed epoch. */
static int check(struct run *r, const struct epoch *e)
{
	uint64_t want = pen_dataset_nsamples(r->data);

	if (e->nsamples != want) {
		fprintf(stderr,
			"doc2vec: the epoch had %" PRIu64 " of %" PRIu64
			" sequences; do not set subset, world or on_error\n",
			e->nsamples, want);
		return 1;
	}
	if (r->first_known && e->sum != r->first)
		return fail("epoch",
			    "its content differs from that of the first epoch");
	r->first = e->sum;
	r->first_known = true;
	return 0;
}

static void report(struct run *r, const struct epoch *e, uint64_t number,
		   bool whole)
{
	double loss = e->ntargets ? e->loss / (double)e->ntargets : 0;
	char number_or_null[32] = "null";

	if (r->o.json) {
		if (isfinite(loss))
			snprintf(number_or_null, sizeof(number_or_null), "%.9g",
				 loss);
		printf("%s\n    {\"epoch\": %" PRIu64
		       ", \"whole\": %s, \"samples\": %" PRIu64
		       ", \"targets\": %" PRIu64 ", \"batches\": %" PRIu64
		       ", \"content\": %" PRIu64
		       ", \"loss\": %s, \"seconds\": %.6f, \"load_s\": %.6f, "
		       "\"model_s\": %.6f}",
		       number ? "," : "", number, whole ? "true" : "false",
		       e->nsamples, e->ntargets, e->nbatches, e->sum,
		       number_or_null, e->load_s + e->model_s, e->load_s,
		       e->model_s);
		return;
	}
	if (isatty(2) && !r->o.quiet)
		fprintf(stderr, "\r\033[K");
	printf("epoch %" PRIu64 "%s: %" PRIu64 " sequences, %" PRIu64
	       " targets in %.3f s (waited for data %.3f s, model %.3f s)",
	       number + 1, whole ? "" : " (cut short)", e->nsamples,
	       e->ntargets, e->load_s + e->model_s, e->load_s, e->model_s);
	if (!r->o.none)
		printf(", loss %.6f", loss);
	printf(", content %016" PRIx64 "\n", e->sum);
	fflush(stdout);
}

/* PEN_END: finished; 0: there is another; -1: failed, and reported. */
static int run_epoch(struct run *r, uint64_t number, uint64_t *steps)
{
	struct epoch e = { .start = now() };
	double at = e.start;
	struct pen_batch *b;
	struct pen_err err;
	int rc = 0;

	memset(r->seen, 0, pen_dataset_nsamples(r->data) / 8 + 1);
	while (*steps < r->o.steps &&
	       !(rc = pen_loader_next(r->loader, &b, &err))) {
		double got = now();

		e.load_s += got - at;
		rc = train(r, b, &e);
		pen_batch_unref(b);
		at = now();
		e.model_s += at - got;
		++*steps;
		if (rc)
			return -1;
		progress(r, &e, number);
	}
	if (rc < 0)
		return -fail(err.where, err.msg);
	if (rc == PEN_END && check(r, &e))
		return -1;
	report(r, &e, number, rc == PEN_END);
	return *steps < r->o.steps ? 0 : PEN_END;
}

static int find_field(const struct run *r, const char *name)
{
	for (uint32_t i = 0; i < pen_dataset_nfields(r->data); i++)
		if (!strcmp(pen_dataset_field(r->data, i)->name, name))
			return (int)i;
	return -1;
}

static int prepare(struct run *r)
{
	uint64_t ndocs = pen_dataset_nsamples(r->data);
	int field = find_field(r, names[TARGET]);
	uint64_t nwords;

	if (field < 0)
		return fail(names[TARGET],
			    "the data has no such field; set format.tokens=dm");
	nwords = pen_dataset_nlabels(r->data, (uint32_t)field);
	r->seen = calloc(ndocs / 8 + 1, 1);
	if (!r->seen)
		return fail("memory", "not enough");
	if (r->o.none)
		return 0;
	if (!nwords)
		return fail(names[TARGET],
			    "the number of words is unknown; set format.vocab");
	r->model.update = r->o.update;
	r->model.rate = r->o.rate;
	if (!model_init(&r->model, r->o.dim, ndocs, nwords, r->o.seed))
		return fail("memory", "not enough for the vectors");
	r->crew = crew_new(&r->model, r->o.threads);
	if (!r->crew)
		return fail("--train-threads",
			    "cannot start that many threads");
	return 0;
}

static void footer(const struct run *r, double began)
{
	struct pen_stats s;
	struct rusage u;

	pen_loader_stats(r->loader, &s, sizeof(s));
	getrusage(RUSAGE_SELF, &u);
	if (r->o.json)
		printf("\n  ],\n  \"open_s\": %.6f, \"first_batch_s\": %.6f, "
		       "\"real_s\": %.6f, \"user_s\": %.6f, "
		       "\"system_s\": %.6f, \"peak_bytes\": %ld\n}\n",
		       (double)s.open_ns * 1e-9,
		       (double)s.first_batch_ns * 1e-9, now() - began,
		       (double)u.ru_utime.tv_sec +
			       1e-6 * (double)u.ru_utime.tv_usec,
		       (double)u.ru_stime.tv_sec +
			       1e-6 * (double)u.ru_stime.tv_usec,
		       u.ru_maxrss * 1024);
}

static int go(struct run *r, int argc, char **argv)
{
	uint64_t steps = 0, number = 0;
	double began = now();
	struct pen_err err;
	int rc;

	if (r->o.vectors && !r->o.none && vectors_place(r->o.vectors))
		return 1;
	if (open_loader(r, argv, argc, &err))
		return fail(err.where, err.msg);
	r->data = pen_loader_dataset(r->loader);
	if (prepare(r))
		return 1;
	if (r->o.json)
		printf("{\n  \"model\": \"%s\", \"sequences\": %" PRIu64
		       ", \"words\": %" PRIu64 ", \"epochs\": [",
		       r->o.none ? "none" : "dm", pen_dataset_nsamples(r->data),
		       r->model.words.rows);
	do {
		rc = number < r->o.epochs ? run_epoch(r, number, &steps)
					  : PEN_END;
		number++;
	} while (!rc);
	if (rc != PEN_END)
		return 1;
	footer(r, began);
	if (!r->o.vectors || r->o.none)
		return 0;
	return vectors_save(&(struct vectors){
		.dir = r->o.vectors,
		.model = &r->model,
		.data = r->data,
		.field = (uint32_t)find_field(r, names[TARGET]),
	});
}

int main(int argc, char **argv)
{
	struct run r = { .o = { .dim = 24,
				.rate = 0.1,
				.epochs = 1,
				.steps = UINT64_MAX } };
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	bool help = false;
	int rc;

	r.o.threads = cpus > 0 ? (unsigned)cpus : 1;
	rc = options_parse(&r.o, argc, argv, &help);
	if (rc)
		return rc;
	if (help) {
		fputs(doc2vec_usage, stdout);
		return 0;
	}
	if (optind == argc) {
		fail("", "no PATH given; run doc2vec PATH... "
			 "format.vocab=FILE, or see doc2vec --help");
		return 2;
	}
	rc = go(&r, argc - optind, argv + optind);
	if (r.crew)
		crew_free(r.crew);
	model_fini(&r.model);
	pen_loader_close(r.loader);
	free(r.seen);
	free(r.q);
	return rc;
}
