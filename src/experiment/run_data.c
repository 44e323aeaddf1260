/*
 * The data of an experiment, generated if no PATH is given, and the expected
 * result of a pass over it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "experiment/harness.h"
#include "make/synth.h"

/* ---- generated data ---- */

static int make_data(struct pen_session *r, const void *arg,
		     struct pen_err *err)
{
	const struct pen_fresh *m = &r->made;
	const struct pen_fresh_file file = { .path = pen_spec_path(r->spec, 0),
					     .format = "npy",
					     .n = m->nsamples };
	int rc = pen__synth_space(r->folder, m->nsamples * m->row, err);

	(void)arg;
	if (!rc)
		rc = pen__fresh_write(m, &file, err);
	if (!rc)
		rc = pen__fresh_sum(m, 0, m->nsamples, &r->shared->sum, err);
	r->shared->has_sum = !rc;
	return rc;
}

int pen__run_made(struct pen_session *r, struct pen_err *err)
{
	int rc = pen__fresh_init(&r->made, r->shape, r->dtype, err);

	if (rc)
		return rc;
	if (r->made.nsamples > UINT64_MAX / 2 / r->made.row)
		return pen__fail(
			err, P_BAD_VALUE, r->name,
			"--samples: %s samples of %s bytes are too many",
			pen__show_grouped(r->made.nsamples).s,
			pen__show_grouped(r->made.row).s);
	r->made.seed = pen_spec_number(r->spec, "seed");
	r->is_made = true;
	return pen__run_folder(r, err);
}

static int make(struct pen_session *r, struct pen_err *err)
{
	char path[4096];
	int rc = pen__run_made(r, err);

	snprintf(path, sizeof(path), "%s/x.npy", r->folder);
	if (!rc)
		rc = pen_spec_add_path(r->spec, path, err);
	return rc ? rc : pen__run_child(r, "making data", make_data, NULL, err);
}

/* ---- opening ---- */

/* Numbers per sample in the largest field: the genes of a cell. */
static double columns(const struct pen_dataset *ds)
{
	const struct pen_field *f = NULL;
	double n = 1;

	for (uint32_t i = 0; i < pen_dataset_nfields(ds); i++)
		if (!f || pen_dataset_field(ds, i)->max_bytes > f->max_bytes)
			f = pen_dataset_field(ds, i);
	for (uint32_t i = 0; f && i < f->ndim; i++)
		n *= (double)f->shape[i];
	return f && n > 0 ? n : 0;
}

static bool has_csr(const char *format)
{
	struct pen_option o;

	for (uint32_t i = 0; !pen_option_at("format", format, i, &o, sizeof(o));
	     i++)
		if (!strcmp(o.name, "output"))
			for (size_t k = 0; o.choices && o.choices[k]; k++)
				if (!strcmp(o.choices[k], "csr"))
					return true;
	return false;
}

/* In a child, because indexing uses threads and memory. It also fills the index
 * cache, so that no run includes indexing. */
static int look(struct pen_session *r, const void *arg, struct pen_err *err)
{
	struct pen_shared *d = r->shared;
	struct pen_dataset *ds;
	int rc = pen_dataset_open(&ds, r->spec, err);

	(void)arg;
	if (rc)
		return rc;
	if (r->on_open)
		r->on_open(ds);
	snprintf(d->format, sizeof(d->format), "%s", pen_dataset_format(ds));
	d->bytes = (double)pen_dataset_nbytes(ds);
	d->objects = (double)pen_dataset_nobjects(ds);
	d->samples = (double)pen_dataset_nsamples(ds);
	d->ncols = columns(ds);
	d->has_output = has_csr(pen_dataset_format(ds));
	pen_dataset_close(ds);
	return 0;
}

static int check_paths(const struct pen_session *r, struct pen_err *err)
{
	if (!pen_spec_path(r->spec, 0))
		return pen__fail(err, P_MISSING_SETTING, "bench",
				 "no PATH given; name a file or directory");
	if (pen_spec_path(r->spec, 1))
		return pen__fail(err, P_BAD_VALUE, "bench",
				 "more than one PATH: '%s'; use a directory, a "
				 "quoted glob, or @LIST",
				 pen_spec_path(r->spec, 1));
	if (!pen_spec_number(r->spec, "epochs") && !r->batches)
		return pen__fail(err, P_MISSING_SETTING, "bench",
				 "epochs=0 never ends; set -n as well");
	return 0;
}

int pen__run_data(struct pen_session *r, struct pen_err *err)
{
	int rc = 0;

	if (!pen_spec_path(r->spec, 0) && pen__has_flag(r, "--samples"))
		rc = make(r, err);
	if (!rc)
		rc = check_paths(r, err);
	if (rc)
		return rc;
	if (!realpath(pen_spec_path(r->spec, 0), r->path))
		snprintf(r->path, sizeof(r->path), "%s",
			 pen_spec_path(r->spec, 0));
	rc = pen__run_child(r, "opening", look, NULL, err);
	if (!rc)
		rc = pen__run_rows_open(r, err);
	if (rc)
		return rc;
	pen__text_add(&r->notes, "%s: ", pen_spec_path(r->spec, 0));
	pen__text_add(
		&r->notes, "%s",
		pen__show_counted((uint64_t)r->shared->samples, "sample").s);
	if (r->shared->ncols > 0) /* else sample sizes differ */
		pen__text_add(&r->notes, " x %s",
			      pen__show_grouped((uint64_t)r->shared->ncols).s);
	pen__text_add(&r->notes, " in %s %s %s, ",
		      pen__show_grouped((uint64_t)r->shared->objects).s,
		      r->shared->format,
		      r->shared->objects > 1 ? "files" : "file");
	pen__text_add(&r->notes, "%s\n", pen__show_bytes(r->shared->bytes).s);
	/* the directory differs between runs, the data does not */
	if (r->is_made)
		snprintf(r->path, sizeof(r->path),
			 "generated: %s samples of %.64s %.16s, seed %llu",
			 pen__show_grouped(r->made.nsamples).s, r->shape,
			 r->dtype, (unsigned long long)r->made.seed);
	return 0;
}

/* ---- variants of one setting ---- */

void pen__run_vary(struct pen_session *r)
{
	const struct pen_taken *v = pen__value(r, r->of->vary.first);

	for (size_t i = 0; i < v->n; i++)
		pen__setup_add(
			r, v->v[i] > 0 ? pen__show_whole(v->v[i]).s : "auto",
			"", (uint64_t)v->v[i]);
}

int pen__run_prepare(struct pen_session *r, struct pen_err *err)
{
	if (r->of->prepare)
		return r->of->prepare(r, err);
	pen__run_vary(r);
	return pen__run_data(r, err);
}

/* ---- in a child ---- */

void pen__put_shape(const struct pen_field *f, char *buf, size_t cap)
{
	size_t at = 0;

	snprintf(buf, cap, "1");
	for (uint32_t i = 0; i < f->ndim && at < cap; i++)
		at += (size_t)snprintf(buf + at, cap - at, "%s%lld",
				       i ? "x" : "", (long long)f->shape[i]);
}

bool pen__spec_is(const struct pen_spec *s, const char *key, const char *value)
{
	char text[4096];

	return !pen_spec_get(s, key, text, sizeof(text)) &&
	       !strcmp(text, value);
}

bool pen__spec_has(const struct pen_spec *s, const char *key)
{
	return !pen__spec_is(s, key, "");
}

static int set_one(struct pen_spec *s, const struct pen_spec_change *set,
		   struct pen_err *err)
{
	const char *value = set->value;
	char number[24];

	if (!value && set->number) {
		snprintf(number, sizeof(number), "%llu",
			 (unsigned long long)set->number);
		value = number;
	}
	if (!value)
		return 0;
	if (!strcmp(set->key, "format.*"))
		return pen_spec_set(s, "format.", NULL, err);
	if (strcmp(set->key, "path") != 0)
		return pen_spec_set(s, set->key, value, err);
	pen_spec_clear_paths(s);
	return pen_spec_add_path(s, value, err);
}

int pen__run_spec(const struct pen_session *r,
		  const struct pen_spec_change *set, struct pen_spec **out,
		  struct pen_err *err)
{
	int rc = pen_spec_copy(out, r->spec, err);

	if (rc)
		return rc;
	for (; !rc && set && set->key; set++)
		rc = set_one(*out, set, err);
	if (rc)
		pen_spec_free(*out);
	return rc;
}

bool pen__spec_whole(const struct pen_spec *s)
{
	static const char *const all[] = {
		"sequential", "shuffle",   "block",
		"census",     "scdataset", "annbatch"
	};

	if (pen__spec_has(s, "subset") ||
	    pen__spec_is(s, "drop_last", "true") ||
	    pen__spec_is(s, "tail", "drop") || pen__spec_is(s, "tail", "pad") ||
	    pen_spec_number(s, "world") > 1 ||
	    pen_spec_number(s, "epoch_batches"))
		return false;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (pen__spec_is(s, "sampler", all[i]))
			return true;
	return false;
}

bool pen__spec_unchanged(const struct pen_spec *s)
{
	return !pen__spec_has(s, "cast") && !pen__spec_has(s, "take") &&
	       !pen__spec_is(s, "decode", "false");
}

/* Samples in the first n batches (0: all); an epoch may end with a short one.
 */
static uint64_t in_batches(uint64_t samples, const struct pen_spec *s,
			   uint64_t n)
{
	const uint64_t batch = pen_spec_number(s, "batch_size");
	const uint64_t epochs = pen_spec_number(s, "epochs");
	const uint64_t each = (samples + batch - 1) / batch;
	const uint64_t whole = n && each ? n / each : epochs;
	const uint64_t rest = n && each ? n % each : 0;

	if (epochs && whole >= epochs)
		return epochs * samples;
	return whole * samples + rest * batch;
}

/* Writes the expected result, known from the data and not from the loader. */
static void put_expected(const struct pen_session *r, const struct pen_pass *p,
			 const struct pen_setup *m, struct pen_text *j)
{
	const struct pen_spec *s = p->spec;
	const uint64_t samples = m->samples ? m->samples
					    : (uint64_t)r->shared->samples;
	const bool whole = pen__spec_whole(s);

	if (whole)
		pen__json_int(j, "expected_rows",
			      in_batches(samples, s, p->max_batches));
	else if (!p->max_batches)
		pen__json_int(j, "expected_rows",
			      atomic_load(&r->shared->total));
	if (r->shared->has_sum && !m->lossy && whole && !p->max_batches &&
	    pen__spec_unchanged(s))
		pen__json_hex(j, "expected_sum",
			      pen_spec_number(s, "epochs") * r->shared->sum);
}

static double over(double v, double s)
{
	return s > 0 ? v / s : 0;
}

static int run_pass(struct pen_session *r, const struct pen_trial *t,
		    struct pen_pass *p, struct pen_text *j, struct pen_err *err)
{
	int rc;

	p->done = &r->shared->done;
	p->total = &r->shared->total;
	if (p->temper == PEN_AS_IT_IS && !t->of->as_it_is)
		p->temper = t->cold ? PEN_COLD : PEN_WARM;
	rc = pen__pass_run(p, err);
	if (rc)
		return rc;
	pen__pass_json(j, p);
	if (!p->content)
		return 0;
	put_expected(r, p, t->of, j);
	pen__json_int(j, "batch", pen_spec_number(p->spec, "batch_size"));
	pen__json_num(j, "s_per_batch",
		      p->seconds / (p->nbatches ? (double)p->nbatches : 1));
	pen__json_num(j, "s_per_sample", over(p->seconds, (double)p->nsamples));
	pen__json_num(j, "wait_share", over(p->wait_s, p->seconds));
	pen__json_num(j, "bytes_per_s",
		      over((double)p->stats.payload_bytes, p->seconds));
	return 0;
}

int pen__run_pass_with(struct pen_session *r, const struct pen_trial *t,
		       struct pen_pass *p, const struct pen_spec_change *set,
		       struct pen_text *j, struct pen_err *err)
{
	const struct pen_spec_change vary[] = {
		{ r->of->vary.second, NULL, t->of->value }, { .key = NULL }
	};
	struct pen_pass plain = { .content = true };
	struct pen_spec *s;
	int rc = pen__run_spec(r, set ? set : vary, &s, err);

	if (rc)
		return rc;
	p = p ? p : &plain;
	p->spec = s;
	p->max_batches = p->max_batches ? p->max_batches : r->batches;
	rc = run_pass(r, t, p, j, err);
	pen__pass_fini(p);
	p->spec = NULL;
	pen_spec_free(s);
	return rc;
}
