/*
 * Time to the first batch: by number of files, with an index to build and with
 * a cached one; and within an epoch, where a second loader must continue
 * exactly like the interrupted one: restored from its state, restored on twice
 * as many ranks with half the batch size, and by reading everything before that
 * point again, as loaders without a state do.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "experiment/harness.h"
#include "make/synth.h"

typedef unsigned long long ull;

/* A sentence on two variants of a group: "%s ... %s ... %s". */
static void put_two(struct pen_text *t, const struct pen_variants *a,
		    const struct pen_variant *m, const char *key,
		    const char *const between[3], const struct pen_variant *o)
{
	pen__text_add(t, "%s%s%s", m->group, between[0],
		      pen__shown_of(a, m, key).s);
	pen__text_add(
		t, "%s%s%s%s.\n", between[1], pen__shown_of(a, o, key).s,
		between[2],
		pen__change_of(a, m, o, key).differs ? "" : " (no difference)");
}

/* ---- start-up ---- */

#define PER_FOLDER 1000 /* files */

static void dir_path(const struct pen_session *r, uint64_t files, char *buf,
		     size_t cap)
{
	snprintf(buf, cap, "%s/n%llu", r->folder, (ull)files);
}

static int make_file(const struct pen_session *r, const char *dir, uint64_t i,
		     struct pen_err *err)
{
	struct pen_fresh_file f = { .format = "npy", .first = i, .n = 1 };
	char path[4200];
	int rc = 0;

	/* padded, so that names sort as numbers do */
	snprintf(path, sizeof(path), "%s/%06llu", dir, (ull)(i / PER_FOLDER));
	if (i % PER_FOLDER == 0)
		rc = pen__make_dirs(path, 0777, false, err);
	snprintf(path, sizeof(path), "%s/%06llu/%03llu.npy", dir,
		 (ull)(i / PER_FOLDER), (ull)(i % PER_FOLDER));
	f.path = path;
	return rc ? rc : pen__fresh_write(&r->made, &f, err);
}

static int make_files(struct pen_session *r, const void *arg,
		      struct pen_err *err)
{
	const struct pen_taken *files = arg;
	char dir[4096];
	int rc = 0;

	for (size_t n = 0; !rc && n < files->n; n++) {
		dir_path(r, (uint64_t)files->v[n], dir, sizeof(dir));
		for (uint64_t i = 0; !rc && i < (uint64_t)files->v[n]; i++)
			rc = make_file(r, dir, i, err);
	}
	return rc;
}

static int make_all(struct pen_session *r, const struct pen_taken *files,
		    struct pen_err *err)
{
	char path[4096];
	double most = 0;
	int rc;

	for (size_t i = 0; i < files->n; i++)
		most = fmax(most, files->v[i]);
	r->made.nsamples = (uint64_t)most;
	rc = pen__run_made(r, err);
	if (!rc)
		rc = pen__run_child(r, "making files", make_files, files, err);
	if (rc)
		return rc;
	dir_path(r, r->made.nsamples, path, sizeof(path));
	rc = pen_spec_add_path(r->spec, path, err);
	return rc ? rc : pen_spec_set(r->spec, "format.samples", "file", err);
}

/* Opens the data once to fill the index cache. */
static int keep_index(struct pen_session *r, const struct pen_spec_change *set,
		      struct pen_err *err)
{
	struct pen_dataset *ds;
	struct pen_spec *s;
	int rc = pen__run_spec(r, set, &s, err);

	if (rc)
		return rc;
	rc = pen_dataset_open(&ds, s, err);
	if (!rc)
		pen_dataset_close(ds);
	pen_spec_free(s);
	return rc;
}

/* The expected sum of the first batch. */
static int put_sum(const struct pen_session *r, uint64_t n, struct pen_text *j,
		   struct pen_err *err)
{
	const struct pen_spec *s = r->spec;
	uint64_t sum;
	int rc;

	if (!r->is_made || pen__spec_has(s, "subset") ||
	    pen__spec_has(s, "cast") || pen__spec_has(s, "take") ||
	    !pen__spec_is(s, "sampler", "sequential"))
		return 0;
	rc = pen__fresh_sum(&r->made, 0, n, &sum, err);
	pen__json_hex(j, "expected_sum", sum);
	return rc;
}

static int run_start(struct pen_session *r, const struct pen_trial *t,
		     struct pen_text *j, struct pen_err *err)
{
	const bool kept = t->of->kind;
	struct pen_pass pass = { .max_batches = 1, .content = true };
	char path[4096], cache[4096];
	const struct pen_spec_change set[] = {
		{ "index_cache", kept ? cache : "off", 0 },
		{ "path", r->is_made ? path : NULL, 0 },
		{ .key = NULL },
	};
	int rc = 0;

	snprintf(cache, sizeof(cache), "%s/index", r->folder);
	dir_path(r, t->of->value, path, sizeof(path));
	if (kept)
		rc = keep_index(r, set, err);
	if (!rc)
		rc = pen__run_pass_with(r, t, &pass, set, j, err);
	if (rc)
		return rc;
	pen__json_int(j, "n_files", t->of->value);
	pen__json_num(j, "startup_s", pass.open_s + pass.first_s);
	return put_sum(r, pass.nsamples, j, err);
}

static int prepare_start(struct pen_session *r, struct pen_err *err)
{
	static const char *const names[] = { "no index", "index kept" };
	struct pen_taken files = *pen__value(r, "--files");
	int rc = pen_spec_path(r->spec, 0) ? 0 : make_all(r, &files, err);

	if (!rc)
		rc = pen__run_data(r, err);
	if (!rc)
		rc = pen__run_folder(r, err);
	if (!r->is_made) {
		files.v[0] = r->shared->objects;
		files.n = 1;
	}
	for (size_t i = 0; !rc && i < 2 * files.n; i++) {
		const uint64_t n = (uint64_t)files.v[i / 2];
		const struct pen_shown group = pen__show_counted(n, "file");
		struct pen_setup *s =
			pen__setup_add(r, names[i % 2], group.s, n);

		s->kind = i % 2;
		s->samples = r->is_made ? n : 0;
		snprintf(s->check, sizeof(s->check), "%s", group.s);
	}
	return rc;
}

static void words_start(struct pen_text *t, const struct pen_variants *a)
{
	static const char *const between[] = { ": the first batch takes ",
					       ", with a cached index ", "" };
	const struct pen_variant *most = pen__variant_most(a, "n_files");
	const char *group = most ? pen__line_text(most->row, "group") : "";
	const struct pen_variant *of[] = {
		pen__variant_find(a, "no index", group),
		pen__variant_find(a, "index kept", group)
	};

	if (!most || !of[0] || !of[1])
		return;
	put_two(t, a, of[0], "startup_s", between, of[1]);
	for (size_t i = 0; i < 2; i++)
		pen__text_add(
			t,
			i ? "%s with it.\n"
			  : "Opening takes %s per file without an index, ",
			pen__show_time(pen__median_of(a, of[i], "open_s") /
				       pen__median_of(a, of[i], "n_files"))
				.s);
}

struct pen_experiment pen__exp_startup = {
	.kind = { .experiment = "startup", .words = words_start },
	.prepare = prepare_start,
	.run = run_start,
};

/* ---- within an epoch ---- */

#define FOLLOWING 8 /* batches that are compared, at most */

enum { RESTORED, RANKS, AGAIN, NWAYS };
static const char *const ways[] = { "restored", "on 2 ranks", "read again" };

/* Checksums of consecutive batches: of the samples in order, and of the samples
 * of each batch in any order, because ranks share the samples of a batch. */
struct trace {
	uint64_t n, ordered, batched, sum;
};

struct resumed {
	uint64_t k, n; /* batches before, and compared */
	struct pen_state state;
	double resume_s, open_s;
};

static void trace_batch(struct trace *t, uint64_t number,
			const struct pen_batch *b)
{
	for (uint32_t i = 0; i < b->nsamples; i++) {
		t->ordered = pen__mix64(t->ordered + b->ids[i] + 1);
		t->batched += pen__mix64(number << 48 ^ b->ids[i]);
	}
	t->n += b->nsamples;
	t->sum += pen__content_batch(b, b->ids);
}

/* Reads n batches into a trace (NULL: discards them); *took: of the first. */
static int follow(struct pen_loader *l, uint64_t n, struct trace *t,
		  uint64_t *took, struct pen_err *err)
{
	const uint64_t start = pen__now_ns();

	for (uint64_t i = 0; i < n; i++) {
		struct pen_batch *b;
		int rc = pen_loader_next(l, &b, err);

		if (rc == PEN_END)
			return pen__fail(err, P_DAMAGED, "resume",
					 "the epoch ended too early");
		if (rc)
			return rc;
		if (!i && took)
			*took = pen__now_ns() - start;
		if (t)
			trace_batch(t, i, b);
		pen_batch_unref(b);
	}
	return 0;
}

static int go_on(struct resumed *g, const struct pen_spec *s, bool again,
		 struct trace *t, struct pen_err *err)
{
	struct pen_loader *l;
	uint64_t start = pen__now_ns(), took = 0;
	double before;
	int rc = pen_loader_open(&l, s, err);

	if (rc)
		return rc;
	g->open_s += (double)(pen__now_ns() - start) / 1e9;
	start = pen__now_ns();
	rc = again ? follow(l, g->k, NULL, NULL, err)
		   : pen_loader_restore(l, &g->state, err);
	before = (double)(pen__now_ns() - start) / 1e9;
	if (!rc)
		rc = follow(l, g->n, t, &took, err);
	/* ranks run in parallel, so the slower one counts */
	g->resume_s = fmax(g->resume_s, before + (double)took / 1e9);
	pen_loader_close(l);
	return rc;
}

/* Two ranks with half of every batch each. */
static int go_on_ranks(const struct pen_session *r, struct resumed *g,
		       struct trace *t, struct pen_err *err)
{
	const uint64_t half = pen_spec_number(r->spec, "batch_size") / 2;
	int rc = 0;

	for (uint64_t i = 0; !rc && i < 2; i++) {
		const struct pen_spec_change set[] = {
			{ "batch_size", NULL, half },
			{ "world", NULL, 2 },
			{ "rank", NULL, i },
			{ .key = NULL },
		};
		struct pen_spec *s;

		rc = pen__run_spec(r, set, &s, err);
		if (rc)
			return rc;
		rc = go_on(g, s, false, t, err);
		pen_spec_free(s);
	}
	return rc;
}

/* The uninterrupted run; also sets the numbers of batches. */
static int reference(struct resumed *g, const struct pen_spec *s,
		     uint64_t percent, struct trace *t, struct pen_err *err)
{
	struct pen_loader *l;
	uint64_t all;
	int rc = pen_loader_open(&l, s, err);

	if (rc)
		return rc;
	all = pen_loader_nbatches(l);
	/* a short last batch would differ on two ranks */
	all -= all > 1;
	g->k = all * percent / 100;
	g->k = all && g->k >= all ? all - 1 : g->k;
	g->n = all - g->k < FOLLOWING ? all - g->k : FOLLOWING;
	rc = follow(l, g->k, NULL, NULL, err);
	if (!rc) {
		pen_loader_state(l, &g->state);
		rc = follow(l, g->n, t, NULL, err);
	}
	pen_loader_close(l);
	return rc;
}

static void put_result(struct pen_text *j, const struct resumed *g, bool ranks,
		       const struct trace *want, const struct trace *got)
{
	pen__json_int(j, "batches_before", g->k);
	pen__json_int(j, "batches_compared", g->n);
	pen__json_int(j, "n_rows", got->n);
	pen__json_int(j, "expected_rows", want->n);
	pen__json_hex(j, "content_sum", got->sum);
	pen__json_hex(j, "expected_sum", want->sum);
	if (got->n == want->n && (got->batched != want->batched ||
				  (!ranks && got->ordered != want->ordered)))
		pen__json_str(j, "wrong", "different samples or order");
	pen__json_num(j, "open_s", g->open_s);
	pen__json_num(j, "resume_s", g->resume_s);
}

static int run_resume(struct pen_session *r, const struct pen_trial *t,
		      struct pen_text *j, struct pen_err *err)
{
	const int way = t->of->kind;
	struct trace want = { 0 }, got = { 0 };
	struct resumed g = { 0 };
	int rc = reference(&g, r->spec, t->of->value, &want, err);

	if (!rc)
		rc = way == RANKS ? go_on_ranks(r, &g, &got, err)
				  : go_on(&g, r->spec, way == AGAIN, &got, err);
	if (!rc)
		put_result(j, &g, way == RANKS, &want, &got);
	return rc;
}

static int prepare_resume(struct pen_session *r, struct pen_err *err)
{
	const struct pen_taken *at = pen__value(r, "--at");
	int rc;

	for (size_t i = 0; i < NWAYS * at->n; i++) {
		const uint64_t percent = (uint64_t)at->v[i / NWAYS];
		const int way = (int)(i % NWAYS);
		struct pen_setup *s;
		char group[48];

		if (way == RANKS && pen_spec_number(r->spec, "batch_size") % 2)
			continue;
		snprintf(group, sizeof(group), "at %llu %%", (ull)percent);
		s = pen__setup_add(r, ways[way], group, percent);
		s->kind = way;
		s->as_it_is = true;
		snprintf(s->check, sizeof(s->check), "%s", group);
	}
	rc = pen__run_data(r, err);
	if (!rc && !pen_spec_number(r->spec, "batch_tokens") &&
	    !pen_spec_number(r->spec, "pack") &&
	    r->shared->samples < (double)pen_spec_number(r->spec, "batch_size"))
		rc = pen__fail(
			err, P_TOO_FEW_SAMPLES, r->name,
			"%s do not fill one batch of %s; lower batch_size=",
			pen__show_counted((uint64_t)r->shared->samples,
					  "sample")
				.s,
			pen__show_grouped(
				pen_spec_number(r->spec, "batch_size"))
				.s);
	return rc;
}

static void facts_resume(struct pen_text *t, const struct pen_variants *a)
{
	pen__text_add(t,
		      "Exact: all compared batches have the samples%s and "
		      "content of the uninterrupted run.\n",
		      pen__variant_find(a, "on 2 ranks", NULL)
			      ? " (also on two ranks)"
			      : "");
}

static void words_resume(struct pen_text *t, const struct pen_variants *a)
{
	static const char *const between[] = { " of an epoch: ",
					       " from a saved state, ",
					       " by reading everything again" };
	const struct pen_variant *far = pen__variant_most(a, "batches_before");
	const char *group = far ? pen__line_text(far->row, "group") : "";
	const struct pen_variant *back =
		pen__variant_find(a, "restored", group);
	const struct pen_variant *again =
		pen__variant_find(a, "read again", group);

	if (far && back && again)
		put_two(t, a, back, "resume_s", between, again);
}

struct pen_experiment pen__exp_resume = {
	.kind = { .experiment = "resume",
		  .words = words_resume,
		  .facts = facts_resume },
	.prepare = prepare_resume,
	.run = run_resume,
};
