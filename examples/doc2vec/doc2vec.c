/*
 * A run: the loader delivers each rank its slice of a batch, and all ranks
 * train on it together. Every epoch is verified: each sequence occurs once, and
 * the content is the same as in the epoch before. Anything else is an error.
 */
#include "doc2vec.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "batch.h"
#include "classes.h"
#include "saved.h"
#include "train.h"
#include "vectors.h"

/* The loss at the start, where out is zero, and when it has diverged. */
#define START_LOSS (2 * 0.6931471805599453)
#define DIVERGED (3 * START_LOSS)

struct run {
	const struct options *o;
	FILE *out; /* NULL: not rank 0 */
	struct pen_ranks *ranks;
	int rank, nranks;
	struct pen_loader *loader;
	const struct pen_dataset *data;
	uint32_t field; /* that has the words */
	struct trainer trainer;
	bool trains;  /* the trainer is open */
	bool printed; /* an epoch was */
	struct slice slice;
	struct classes classes;
	/* the order of the epoch */
	uint64_t position, length, global; /* samples, per epoch, per batch */
	/* of all epochs, and the current one */
	uint64_t steps, content;
	struct epoch epoch;
	double loss, recent; /* recent: moving average */
	double load_s, model_s, began, shown;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- opening ---- */

/* deterministic= is ours; all else belongs to the loader. */
static int take_arg(struct run *r, struct pen_spec *spec, const char *arg,
		    struct pen_err *err)
{
	static const char key[] = "deterministic=";

	if (!strchr(arg, '='))
		return pen_spec_add_path(spec, arg, err);
	if (strncmp(arg, key, sizeof(key) - 1) != 0)
		return pen_spec_parse(spec, arg, err);
	arg += sizeof(key) - 1;
	r->trainer.deterministic = !strcmp(arg, "true");
	if (!r->trainer.deterministic && strcmp(arg, "false") != 0)
		return fail_at(err, PEN_EINVAL, "deterministic",
			       "'%s' is not valid; use true or false", arg);
	return 0;
}

static int take_args(struct run *r, struct pen_spec *spec, char *const *args,
		     int n, struct pen_err *err)
{
	char set[4][64];
	int rc;

	snprintf(set[0], sizeof(set[0]), "epochs=%" PRIu64, r->o->epochs);
	snprintf(set[1], sizeof(set[1]), "seed=%" PRIu64, r->o->seed);
	snprintf(set[2], sizeof(set[2]), "world=%d", r->nranks);
	snprintf(set[3], sizeof(set[3]), "rank=%d", r->rank);
	if ((rc = pen_spec_parse(spec, "format=lines", err)) ||
	    (rc = pen_spec_parse(spec, "format.tokens=dm", err)) ||
	    (rc = pen_spec_parse(spec, "format.dtype=int32", err)) ||
	    (rc = pen_spec_parse(spec, "shuffle=true", err)))
		return rc;
	for (unsigned i = 0; i < (r->nranks > 1 ? 4 : 2) && !rc; i++)
		rc = pen_spec_parse(spec, set[i], err);
	if (!rc && r->nranks > 1)
		rc = pen_spec_parse(spec, "tail=keep", err);
	for (int i = 0; i < n && !rc; i++)
		rc = take_arg(r, spec, args[i], err);
	return rc;
}

static int open_loader(struct run *r, char *const *args, int n,
		       struct pen_err *err)
{
	struct pen_loader_info info;
	struct pen_spec *spec;
	char cache[16];
	int rc = pen_spec_new(&spec, err);

	if (rc)
		return rc;
	rc = take_args(r, spec, args, n, err);
	if (!rc && r->nranks > 1 &&
	    !pen_spec_get(spec, "cache", cache, sizeof(cache)) &&
	    !strncmp(cache, "ddict", 5))
		pen_spec_use_ranks(spec, r->ranks);
	if (!rc)
		rc = pen_loader_open(&r->loader, spec, err);
	pen_spec_free(spec);
	if (rc)
		return rc;
	pen_loader_get_info(r->loader, &info, sizeof(info));
	r->length = info.epoch_samples;
	r->global = info.world * info.batch_samples;
	if (r->nranks > 1 && (info.batch_tokens || info.pack))
		return fail_at(err, PEN_EINVAL, "batch_tokens",
			       "does not work with several ranks; use "
			       "batch_size=");
	return 0;
}

static int find_words(struct run *r, uint64_t *nwords, struct pen_err *err)
{
	const uint32_t n = pen_dataset_nfields(r->data);

	while (r->field < n &&
	       strcmp(pen_dataset_field(r->data, r->field)->name,
		      field_names[TARGET]) != 0)
		r->field++;
	if (r->field == n)
		return fail_at(err, PEN_EINVAL, field_names[TARGET],
			       "the data has no such field; set "
			       "format.tokens=dm");
	*nwords = pen_dataset_nlabels(r->data, r->field);
	if (!*nwords && !r->o->none)
		return fail_at(err, PEN_EINVAL, field_names[TARGET],
			       "the number of words is unknown; set "
			       "format.vocab");
	return 0;
}

static int resume(struct run *r, struct pen_err *err)
{
	struct saved s = { .epoch = r->epoch };
	int rc = saved_read(&s, &r->trainer, r->o->resume, err);

	if (!rc)
		rc = pen_loader_restore(r->loader, &s.state, err);
	r->epoch = s.epoch;
	r->loss = s.loss;
	r->steps = s.steps;
	r->content = s.content;
	r->recent = s.recent;
	return rc;
}

static int prepare(struct run *r, struct pen_err *err)
{
	struct sizes z = { .dim = r->o->dim, .threads = r->o->threads };
	struct trainer *t = &r->trainer;
	int rc = find_words(r, &z.nwords, err);

	z.ndocs = r->epoch.nseen = pen_dataset_nsamples(r->data);
	r->epoch.seen = calloc(epoch_words(&r->epoch), sizeof(uint64_t));
	if (!rc && !r->epoch.seen)
		rc = fail_nomem(err, "the sequences");
	if (!rc && r->o->labels && !r->rank)
		rc = classes_read(&r->classes, r->o->labels, z.ndocs, err);
	if (rc || r->o->none)
		return rc;
	t->ranks = r->ranks;
	t->nparts = r->o->parts;
	t->model.update = r->o->update;
	t->model.rate = r->o->rate;
	t->model.seed = r->o->seed;
	t->model.spread = 1.0 / r->o->dim;
	r->trains = true;
	rc = trainer_open(t, &z, err);
	if (!rc && r->o->resume)
		rc = resume(r, err);
	return rc;
}

/* ---- an epoch ---- */

static void progress(struct run *r, uint64_t number)
{
	const double t = now(), rate = (double)r->position / (t - r->began);

	if (!r->out || r->o->quiet || r->o->json || !isatty(2) ||
	    t - r->shown < 0.2)
		return;
	r->shown = t;
	fprintf(stderr,
		"\repoch %" PRIu64 ": %.1f %%, %.0f sequences/s, loss %.4f, "
		"%.0f s left \033[K",
		number + 1, 100.0 * (double)r->position / (double)r->length,
		rate, r->recent, (double)(r->length - r->position) / rate);
}

/* A loss that only grows: the steps are too long. */
static int check_loss(struct run *r, double loss, struct pen_err *err)
{
	r->recent += 0.2 * (loss - r->recent);
	if (r->recent < DIVERGED)
		return 0;
	return fail_at(err, PEN_EDATA, "--rate",
		       "%g is too high: the loss rose from %.3g to %.3g in "
		       "%" PRIu64 " batches; use a lower rate",
		       r->o->rate, START_LOSS, r->recent, r->steps + 1);
}

static int save(struct run *r, struct pen_err *err)
{
	struct saved s = { .epoch = r->epoch,
			   .loss = r->loss,
			   .steps = r->steps,
			   .content = r->content,
			   .recent = r->recent };
	const uint64_t words = epoch_words(&r->epoch);
	int rc = 0;

	pen_loader_state(r->loader, &s.state);
	s.epoch.seen = calloc(words, sizeof(uint64_t));
	if (!s.epoch.seen)
		return fail_nomem(err, "the checkpoint");
	memcpy(s.epoch.seen, r->epoch.seen, words * sizeof(uint64_t));
	rc = epoch_join(&s.epoch, r->ranks, err);
	if (!rc)
		rc = saved_write(&s, &r->trainer, r->o->save, err);
	free(s.epoch.seen);
	return rc;
}

/*
 * The next batch of this rank; *out is NULL if its slice is empty: the last
 * batch of an epoch may have fewer sequences than there are ranks.
 */
static int take(struct run *r, struct pen_batch **out, struct pen_err *err)
{
	const uint64_t rest = r->length - r->position;
	const uint64_t n = (uint64_t)r->nranks, k = (uint64_t)r->rank;
	int rc = 0;

	*out = NULL;
	if (r->nranks == 1 || !rest || rest >= r->global ||
	    rest * k / n < rest * (k + 1) / n)
		rc = pen_loader_next(r->loader, out, err);
	r->position += rest < r->global ? rest : r->global;
	return rc;
}

static int train(struct run *r, const struct pen_batch *b, struct pen_err *err)
{
	struct step s;
	int rc = 0;

	r->slice.n = 0;
	if (b)
		rc = slice_take(&r->slice, b, &r->epoch, err);
	if (rc || r->o->none)
		return rc;
	rc = trainer_step(&r->trainer, r->slice.q, r->slice.n, &s, err);
	if (rc || !s.ntargets)
		return rc;
	r->loss += s.loss;
	return check_loss(r, s.loss / (double)s.ntargets, err);
}

/* Adds up the ranks, verifies a complete epoch, and prints it. */
static int finish(struct run *r, uint64_t number, bool whole,
		  struct pen_err *err)
{
	const struct epoch *e = &r->epoch;
	double s[2] = { r->load_s, r->model_s }, loss;
	char text[32] = "null";
	int rc = epoch_join(&r->epoch, r->ranks, err);

	if (!rc)
		rc = pen_ranks_reduce(r->ranks, s, 2, PEN_F64, PEN_SUM, err);
	if (!rc && whole)
		rc = epoch_check(e, err);
	if (!rc && whole && number && r->content && e->sum != r->content)
		rc = fail_at(err, PEN_EDATA, "epoch",
			     "its content differs from that of the epoch "
			     "before");
	if (whole)
		r->content = e->sum;
	/* rank 0 keeps what all ranks took */
	if (r->rank)
		epoch_clear(&r->epoch);
	if (rc || !r->out)
		return rc;
	s[0] /= r->nranks;
	s[1] /= r->nranks;
	loss = e->ntargets ? r->loss / (double)e->ntargets : 0;
	if (isfinite(loss))
		snprintf(text, sizeof(text), "%.17g", loss);
	if (r->o->json) {
		fprintf(r->out,
			"],\n     \"epoch\": %" PRIu64
			", \"whole\": %s, \"samples\": %" PRIu64
			", \"targets\": %" PRIu64 ", \"batches\": %" PRIu64
			", \"content\": %" PRIu64
			", \"loss\": %s, \"seconds\": %.6f, \"load_s\": %.6f, "
			"\"model_s\": %.6f}",
			number, whole ? "true" : "false", e->nsamples,
			e->ntargets, e->nbatches, e->sum, text, s[0] + s[1],
			s[0], s[1]);
		return 0;
	}
	if (isatty(2) && !r->o->quiet)
		fprintf(stderr, "\r\033[K");
	fprintf(r->out,
		"epoch %" PRIu64 "%s: %" PRIu64 " sequences, %" PRIu64
		" targets in %.3f s (waited for data %.3f s, model %.3f s)",
		number + 1, whole ? "" : " (cut short)", e->nsamples,
		e->ntargets, s[0] + s[1], s[0], s[1]);
	if (!r->o->none)
		fprintf(r->out, ", loss %.6f", loss);
	fprintf(r->out, ", content %016" PRIx64 "\n", e->sum);
	fflush(r->out);
	return 0;
}

/* PEN_END: finished; 0: there is another; negative: failed. */
static int run_epoch(struct run *r, uint64_t number, struct pen_err *err)
{
	const uint64_t most = pen_loader_nbatches(r->loader) / 100 + 1;
	double at = r->began = now();
	struct pen_batch *b;
	uint64_t n = 0;
	int rc = 0;

	if (r->out && r->o->json)
		fprintf(r->out, "%s\n    {\"losses\": [",
			r->printed ? "," : "");
	r->printed = true;
	while (r->steps < r->o->steps && !(rc = take(r, &b, err))) {
		const double got = now();

		r->load_s += got - at;
		rc = train(r, b, err);
		pen_batch_unref(b);
		r->steps++;
		r->epoch.nbatches++;
		if (!rc && r->o->every && !(r->steps % r->o->every))
			rc = save(r, err);
		at = now();
		r->model_s += at - got;
		if (rc)
			return rc;
		if (r->out && r->o->json && !r->o->none && ++n % most == 0)
			fprintf(r->out, "%s[%" PRIu64 ", %.6g]",
				n > most ? ", " : "", r->steps, r->recent);
		progress(r, number);
	}
	if (rc < 0)
		return rc;
	if (finish(r, number, rc == PEN_END, err))
		return err->code;
	return r->steps < r->o->steps ? 0 : PEN_END;
}

static void begin_epoch(struct run *r)
{
	epoch_clear(&r->epoch);
	r->epoch.nbatches = 0;
	r->loss = r->load_s = r->model_s = 0;
	r->position = 0;
}

/* ---- all epochs ---- */

static int run_epochs(struct run *r, struct pen_err *err)
{
	struct pen_state s;
	int rc = 0;

	pen_loader_state(r->loader, &s);
	r->position = s.position;
	for (uint64_t i = s.epoch; !rc && i < r->o->epochs; i++) {
		rc = run_epoch(r, i, err);
		if (!rc)
			begin_epoch(r);
	}
	return rc < 0 ? rc : 0;
}

/* On rank 0: the vectors of documents, what they tell apart, and the files. */
static int put_vectors(struct run *r, double *accuracy, struct pen_err *err)
{
	struct vectors v = { .dir = r->o->vectors,
			     .model = &r->trainer.model,
			     .data = r->data,
			     .field = r->field,
			     .ndocs = r->epoch.nseen };
	float *docs;
	int rc = vectors_docs(&r->trainer.docs, v.ndocs, &docs, err);

	if (rc)
		return rc;
	v.docs = docs;
	if (r->o->labels && classes_accuracy(&r->classes, docs, r->o->dim,
					     &accuracy[0], &accuracy[1]))
		rc = fail_nomem(err, "the classes");
	if (!rc && r->o->vectors)
		rc = vectors_save(&v, err);
	free(docs);
	return rc;
}

static void print_footer(struct run *r, const double *accuracy, double began)
{
	struct pen_stats s;
	struct rusage u;

	if (!r->o->json) {
		if (r->o->labels)
			fprintf(r->out,
				"accuracy %.4f on labels that the fit did not "
				"see (shuffled labels: %.4f)\n",
				accuracy[0], accuracy[1]);
		return;
	}
	pen_loader_stats(r->loader, &s, sizeof(s));
	getrusage(RUSAGE_SELF, &u);
	fprintf(r->out, "\n  ],\n  ");
	if (r->o->labels)
		fprintf(r->out,
			"\"accuracy\": %.6f, \"accuracy_shuffled\": %.6f, ",
			accuracy[0], accuracy[1]);
	fprintf(r->out,
		"\"ranks\": %d, \"open_s\": %.6f, \"first_batch_s\": %.6f, "
		"\"real_s\": %.6f, \"user_s\": %.6f, \"system_s\": %.6f, "
		"\"peak_bytes\": %ld\n}\n",
		r->nranks, (double)s.open_ns * 1e-9,
		(double)s.first_batch_ns * 1e-9, now() - began,
		(double)u.ru_utime.tv_sec + 1e-6 * (double)u.ru_utime.tv_usec,
		(double)u.ru_stime.tv_sec + 1e-6 * (double)u.ru_stime.tv_usec,
		u.ru_maxrss * 1024);
}

static int go(struct run *r, char *const *args, int n, struct pen_err *err)
{
	const double began = now();
	double accuracy[2] = { 0, 0 };
	int rc = 0;

	if (r->o->vectors && !r->rank)
		rc = vectors_place(r->o->vectors, err);
	if (!rc)
		rc = open_loader(r, args, n, err);
	if (rc)
		return rc;
	r->data = pen_loader_dataset(r->loader);
	rc = prepare(r, err);
	if (rc)
		return rc;
	if (r->out && r->o->json)
		fprintf(r->out,
			"{\n  \"model\": \"%s\", \"sequences\": %" PRIu64
			", \"words\": %" PRIu64 ", \"epochs\": [",
			r->o->none ? "none" : "dm", r->epoch.nseen,
			r->trainer.model.nwords);
	rc = run_epochs(r, err);
	if (!rc && r->o->save)
		rc = save(r, err);
	if (!rc && r->out && (r->o->vectors || r->o->labels))
		rc = put_vectors(r, accuracy, err);
	if (!rc && r->out)
		print_footer(r, accuracy, began);
	return rc;
}

int doc2vec(const struct options *o, struct pen_ranks *ranks, char *const *args,
	    int n, FILE *out, struct pen_err *err)
{
	struct run r = { .o = o,
			 .ranks = ranks,
			 .rank = pen_ranks_rank(ranks),
			 .nranks = pen_ranks_size(ranks),
			 .recent = START_LOSS,
			 .trainer.deterministic = true };
	int rc;

	r.out = r.rank ? NULL : out;
	rc = pen_ranks_agree(ranks, go(&r, args, n, err), err);
	if (r.trains)
		trainer_close(&r.trainer);
	pen_loader_close(r.loader);
	classes_fini(&r.classes);
	free(r.epoch.seen);
	free(r.slice.q);
	return rc;
}
