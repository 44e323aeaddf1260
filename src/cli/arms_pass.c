/*
 * Arms that are passes over a data set: the data they are over, made on the
 * spot when none are given, and what has to come of a pass.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/arms.h"
#include "engine/loader.h"
#include "engine/spec.h"
#include "engine/synth.h"

int arms_arg(struct arms *a, const struct args *arg, int kind)
{
	if (kind != ARG_FLAG)
		return bench_arg(&a->b, arg, kind);
	if (!strcmp(arg->key, "--shape"))
		a->shape = arg->value;
	else if (!strcmp(arg->key, "--dtype"))
		a->dtype = arg->value;
	else if (!strcmp(arg->key, "--dir"))
		a->dir = arg->value;
	else if (strcmp(arg->key, "--samples") != 0)
		return bench_arg(&a->b, arg, kind);
	else if (pen__parse_count(arg->value, &a->made.nsamples) ||
		 !a->made.nsamples || a->made.nsamples > (uint64_t)1 << 40)
		return complain_usage("%s: --samples: '%s' does not do",
				      a->cmd->name, arg->value);
	return -1;
}

/* ---- data made on the spot ---- */

static int make_data(struct bench *b, const struct trial *t, struct pen_text *j,
		     struct pen_err *err)
{
	const struct arms *a = t->arg;
	const struct pen_fresh_file file = { .path = b->spec->paths[0],
					     .format = "npy",
					     .n = a->made.nsamples };
	uint64_t sum = 0;
	char hex[24];
	int rc = pen__synth_space(a->folder, a->made.nsamples * a->made.row,
				  err);

	if (!rc)
		rc = pen__fresh_write(&a->made, &file, err);
	if (!rc)
		rc = pen__fresh_sum(&a->made, 0, a->made.nsamples, &sum, err);
	snprintf(hex, sizeof(hex), "%016llx", (unsigned long long)sum);
	pen__json_open(j, NULL, '{');
	pen__json_str(j, "sum", hex);
	pen__json_close(j, '}');
	return rc;
}

static int make_in_child(struct arms *a)
{
	const struct trial t = { .title = "making data",
				 .run = make_data,
				 .arg = a };
	struct pen_line row;
	const int rc = trial_row(&a->b, &t, &row);

	if (rc >= 0)
		return rc;
	snprintf(a->sum, sizeof(a->sum), "%s", pen__line_text(&row, "sum"));
	pen__line_fini(&row);
	return -1;
}

int arms_made(struct arms *a)
{
	struct pen_err err = { 0 };

	if (pen__fresh_init(&a->made, a->shape, a->dtype, &err))
		return complain(&err);
	if (a->made.nsamples > UINT64_MAX / 2 / a->made.row)
		return complain_usage("%s: --samples: too many", a->cmd->name);
	a->made.seed = a->b.spec->seed;
	a->is_made = true;
	return arms_folder(a);
}

static int make(struct arms *a)
{
	struct pen_err err = { 0 };
	char path[4096];
	const int rc = arms_made(a);

	if (rc >= 0)
		return rc;
	snprintf(path, sizeof(path), "%s/x.npy", a->folder);
	if (pen_spec_add_path(a->b.spec, path, &err))
		return complain(&err);
	return make_in_child(a);
}

int arms_open(struct arms *a)
{
	int rc = a->b.spec->npaths ? -1 : make(a);

	if (rc < 0)
		rc = bench_open(&a->b);
	/* another folder every time, but the same data */
	if (rc < 0 && a->is_made)
		snprintf(a->b.path, sizeof(a->b.path),
			 "made: %s samples of %.64s %.16s, seed %llu",
			 grouped(a->made.nsamples), a->shape, a->dtype,
			 (unsigned long long)a->made.seed);
	return rc;
}

/* ---- in a child ---- */

int arms_spec(const struct bench *b, const struct setting *set, size_t n,
	      struct pen_spec **out, struct pen_err *err)
{
	int rc = pen__spec_copy(out, b->spec, err);

	if (rc)
		return rc;
	for (size_t i = 0; !rc && i < n; i++)
		rc = pen_spec_set(*out, set[i].key, set[i].value, err);
	if (rc)
		pen_spec_free(*out);
	return rc;
}

int arms_path(struct pen_spec *s, const char *path, struct pen_err *err)
{
	char *copy = pen__strdup(path);

	if (!copy)
		return pen__fail_nomem(err, path, strlen(path));
	pen__free(s->paths[0]);
	s->paths[0] = copy;
	return 0;
}

/* Every sample of the data, once an epoch, as it is in the files? */
static bool is_whole(const struct pen_spec *s)
{
	static const char *const all[] = {
		"sequential", "shuffle",   "block",
		"census",     "scdataset", "annbatch"
	};
	const char *sampler = pen__spec_sampler(s);

	if (s->subset || s->drop_last || s->tail == PEN_TAIL_DROP ||
	    s->tail == PEN_TAIL_PAD || s->world > 1 || s->epoch_batches)
		return false;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!sampler || !strcmp(sampler, all[i]))
			return true;
	return false;
}

/* Samples in the first n batches (0: all): each epoch ends with a short one. */
static uint64_t in_batches(uint64_t samples, const struct pen_spec *s,
			   uint64_t n)
{
	const uint64_t each = (samples + s->batch_size - 1) / s->batch_size;
	const uint64_t whole = n && each ? n / each : s->epochs;
	const uint64_t rest = n && each ? n % each : 0;

	if (s->epochs && whole >= s->epochs)
		return s->epochs * samples;
	return whole * samples + rest * s->batch_size;
}

/* What has to come, by the data and not by the loader, where that is clear. */
static void put_expected(const struct arms *a, const struct pen_pass *p,
			 const struct arm *m, struct pen_text *j)
{
	const struct pen_spec *s = p->spec;
	const uint64_t samples = m->samples ? m->samples
					    : (uint64_t)a->b.samples;
	char hex[24];

	if (is_whole(s))
		pen__json_int(j, "expected_rows",
			      in_batches(samples, s, p->max_batches));
	else if (!p->max_batches)
		pen__json_int(j, "expected_rows",
			      atomic_load(&a->b.watch->total));
	if (!a->sum[0] || m->lossy || !is_whole(s) || p->max_batches ||
	    s->cast || s->take.n || !s->decode)
		return;
	snprintf(hex, sizeof(hex), "%016llx",
		 (unsigned long long)s->epochs * strtoull(a->sum, NULL, 16));
	pen__json_str(j, "expected_sum", hex);
}

int arms_pass(struct bench *b, const struct trial *t, struct pen_pass *p,
	      struct pen_text *j, struct pen_err *err)
{
	const struct arm *m = t->arg;
	const struct pen_spec *s = p->spec;
	double nbatches;
	int rc;

	p->content = true;
	p->done = &b->watch->done;
	p->total = &b->watch->total;
	if (p->temper == PEN_AS_IT_IS && !m->as_it_is)
		p->temper = t->cold ? PEN_COLD : PEN_WARM;
	rc = pen__pass_run(p, err);
	if (rc)
		return rc;
	nbatches = p->nbatches ? (double)p->nbatches : 1;
	pen__pass_json(j, p);
	put_expected(m->of, p, m, j);
	pen__json_int(j, "batch", s->batch_size);
	pen__json_num(j, "s_per_batch", p->seconds / nbatches);
	pen__json_num(j, "s_per_sample",
		      p->nsamples ? p->seconds / (double)p->nsamples : 0);
	pen__json_num(j, "wait_share",
		      p->seconds > 0 ? p->wait_s / p->seconds : 0);
	pen__json_num(j, "bytes_per_s",
		      p->seconds > 0
			      ? (double)p->stats.payload_bytes / p->seconds
			      : 0);
	return 0;
}

int arms_pass_with(struct bench *b, const struct trial *t,
		   const struct setting *set, size_t n, struct pen_text *j,
		   struct pen_err *err)
{
	struct pen_pass pass = { .max_batches = b->batches };
	struct pen_spec *s;
	int rc = arms_spec(b, set, n, &s, err);

	if (rc)
		return rc;
	pass.spec = s;
	rc = arms_pass(b, t, &pass, j, err);
	pen__pass_fini(&pass);
	pen_spec_free(s);
	return rc;
}
