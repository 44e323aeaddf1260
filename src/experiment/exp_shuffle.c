/*
 * Cost and quality of sample orders: none, a shuffled copy read in order,
 * blocks, and a global shuffle. Quality is measured by the neighbours in the
 * original data for all of them: a copy is well mixed, but in the same way
 * every epoch.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "experiment/harness.h"
#include "make/synth.h"

enum { NONE, COPY, BLOCK, GLOBAL, NORDERS };
static const char *const orders[] = { "none", "pre-shuffled", "block",
				      "global" };
static const char *const samplers[] = { "sequential", "sequential", "block",
					"shuffle" };

struct shuffle { /* of the copy */
	char raw[4096], ids[4096], dtype[32], shape[256];
	bool none;
	double copy_s;
};

/* ---- the copy ---- */

static int copy_batches(struct pen_loader *l, FILE *raw, FILE *ids,
			struct pen_err *err)
{
	struct pen_batch *b;
	int rc;

	while (!(rc = pen_loader_next(l, &b, err))) {
		fwrite(b->tensors[0].data, 1, b->tensors[0].nbytes, raw);
		fwrite(b->ids, sizeof(*b->ids), b->nsamples, ids);
		pen_batch_unref(b);
		if (ferror(raw) || ferror(ids))
			return pen__fail_sys(err, errno, "copy",
					     "cannot write the shuffled copy");
	}
	return rc == PEN_END ? 0 : rc;
}

static int copy_loaded(const struct pen_session *r, struct pen_loader *l,
		       struct pen_err *err)
{
	struct shuffle *g = r->own;
	const struct pen_field *f = pen_dataset_field(pen_loader_dataset(l), 0);
	struct pen_loader_info at;
	FILE *raw = fopen(g->raw, "we"), *ids = fopen(g->ids, "we");
	int rc;

	snprintf(g->dtype, sizeof(g->dtype), "%s", pen_dtype_name(f->dtype));
	pen__put_shape(f, g->shape, sizeof(g->shape));
	pen_loader_get_info(l, &at, sizeof(at));
	rc = pen__synth_space(r->folder, f->max_bytes * at.epoch_samples, err);
	if (!rc && (!raw || !ids))
		rc = pen__fail_sys(err, errno, r->folder,
				   "cannot create the shuffled copy");
	if (!rc)
		rc = copy_batches(l, raw, ids, err);
	if (((raw && fclose(raw)) | (ids && fclose(ids))) && !rc)
		rc = pen__fail_sys(err, errno, g->raw,
				   "cannot write the shuffled copy");
	return rc;
}

/* Settings that change samples would apply twice, also when the copy is read.
 */
static bool can_copy(const struct pen_loader *l, const struct pen_spec *s)
{
	const struct pen_dataset *ds = pen_loader_dataset(l);

	return pen_dataset_nfields(ds) == 1 &&
	       pen_dataset_field(ds, 0)->layout == PEN_DENSE &&
	       pen__spec_whole(s) && pen__spec_unchanged(s);
}

static int copy_data(struct pen_session *r, const void *arg,
		     struct pen_err *err)
{
	static const struct pen_spec_change set[] = { { "sampler", "shuffle",
							0 },
						      { "epochs", NULL, 1 },
						      { .key = NULL } };
	const uint64_t start = pen__now_ns();
	struct shuffle *g = r->own;
	struct pen_loader *l = NULL;
	struct pen_spec *s;
	int rc = pen__run_spec(r, set, &s, err);

	(void)arg;
	if (rc)
		return rc;
	rc = pen_loader_open(&l, s, err);
	g->none = !rc && !can_copy(l, s);
	if (!rc && !g->none)
		rc = copy_loaded(r, l, err);
	g->copy_s = (double)(pen__now_ns() - start) / 1e9;
	pen_loader_close(l);
	pen_spec_free(s);
	return rc;
}

/* Skips the order if the data cannot be copied. */
static int make_copy(struct pen_session *r, struct pen_err *err)
{
	struct shuffle *g = r->own;
	int rc = pen__run_folder(r, err);

	snprintf(g->raw, sizeof(g->raw), "%s/shuffled.raw", r->folder);
	snprintf(g->ids, sizeof(g->ids), "%s/shuffled.ids", r->folder);
	if (!rc)
		rc = pen__run_child(r, "shuffling a copy", copy_data, NULL,
				    err);
	if (!rc && g->none)
		pen__text_add(&r->warnings,
			      "penstock: pre-shuffled: skipped: a copy needs "
			      "data with one dense field, read completely and "
			      "unchanged\n");
	return rc;
}

/* ---- one variant ---- */

/* Mapped, so that it does not count as memory of the loader. */
static int map_names(const struct shuffle *g, const uint64_t **out,
		     struct pen_err *err)
{
	const int fd = open(g->ids, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p = MAP_FAILED;

	if (fd >= 0 && !fstat(fd, &st) && st.st_size > 0)
		p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd,
			 0);
	if (fd >= 0)
		close(fd);
	if (p == MAP_FAILED)
		return pen__fail_sys(err, errno, g->ids, "cannot map the file");
	*out = p;
	return 0;
}

static int run(struct pen_session *r, const struct pen_trial *t,
	       struct pen_text *j, struct pen_err *err)
{
	const int order = t->of->kind;
	const bool copy = order == COPY, block = order == BLOCK;
	const struct shuffle *g = r->own;
	const uint64_t chunk = (uint64_t)pen__number(r, "--chunk");
	const uint64_t chunks = (uint64_t)pen__number(r, "--chunks");
	const struct pen_spec_change set[] = {
		{ "sampler", samplers[order], 0 },
		{ "sampler.chunk", NULL, block ? chunk : 0 },
		{ "sampler.chunks", NULL, block ? chunks : 0 },
		{ "path", copy ? g->raw : NULL, 0 },
		{ "format.*", copy ? "" : NULL, 0 },
		{ "format", copy ? "raw" : NULL, 0 },
		{ "format.dtype", copy ? g->dtype : NULL, 0 },
		{ "format.shape", copy ? g->shape : NULL, 0 },
		{ .key = NULL },
	};
	struct pen_pass pass = { .content = true,
				 .quality = true,
				 .label = copy ? NULL
					       : pen__value(r, "--label")->text,
				 .quality_chunk = chunk };
	int rc = copy ? map_names(g, &pass.names, err) : 0;

	if (!rc)
		rc = pen__run_pass_with(r, t, &pass, set, j, err);
	if (!rc && copy)
		pen__json_num(j, "copy_s", g->copy_s);
	return rc;
}

static int prepare(struct pen_session *r, struct pen_err *err)
{
	const struct shuffle *g = r->own;
	int rc = pen__run_data(r, err);

	if (!rc && pen__chosen(r, "-s", COPY))
		rc = make_copy(r, err);
	for (int i = 0; !rc && i < NORDERS; i++) {
		struct pen_setup *s;

		if (!pen__chosen(r, "-s", (size_t)i) || (i == COPY && g->none))
			continue;
		s = pen__setup_add(r, orders[i], "", (uint64_t)i);
		s->kind = i;
		/* orders differ in the first batches of an epoch */
		if (r->batches)
			snprintf(s->check, sizeof(s->check), "%s", orders[i]);
		if (i == BLOCK)
			snprintf(s->group, sizeof(s->group), "%.0f x %.0f",
				 pen__number(r, "--chunks"),
				 pen__number(r, "--chunk"));
	}
	return rc;
}

/* ---- summary ---- */

static void put_mixing(struct pen_text *t, const struct pen_variants *a,
		       const struct pen_variant *m)
{
	pen__text_add(t, ", n_eff %s of %s",
		      pen__shown_of(a, m, "quality.n_eff").s,
		      pen__show_whole(pen__median_of(a, m, "batch")).s);
}

static void against(struct pen_text *t, const struct pen_variants *a,
		    const char *name, const struct pen_variant *none)
{
	const struct pen_variant *m = pen__variant_find(a, name, NULL);
	struct pen_change c;

	if (!m || m == none)
		return;
	c = pen__change_of(a, none, m, "samples_per_s");
	if (c.differs)
		pen__text_add(t, "%s: %s of that rate", name,
			      pen__show_share(1 + c.share).s);
	else
		pen__text_add(t, "%s: no difference in rate", name);
	put_mixing(t, a, m);
	if (pen__median_of(a, m, "quality.neighbours_kept") > 0.5)
		pen__text_add(t, ", but in the same order every epoch");
	pen__text_add(t, ".\n");
}

static void words(struct pen_text *t, const struct pen_variants *a)
{
	const struct pen_variant *none = pen__variant_find(a, "none", NULL);

	if (!none)
		none = pen__variant_most(a, "samples_per_s");
	if (!none)
		return;
	pen__text_add(t, "%s: %s samples/s", none->name,
		      pen__shown_of(a, none, "samples_per_s").s);
	put_mixing(t, a, none);
	pen__text_add(t, ".\n");
	for (int i = COPY; i < NORDERS; i++)
		against(t, a, orders[i], none);
}

struct pen_experiment pen__exp_shuffle = {
	.kind = { .experiment = "shuffle", .words = words },
	.own = sizeof(struct shuffle),
	.prepare = prepare,
	.run = run,
};
