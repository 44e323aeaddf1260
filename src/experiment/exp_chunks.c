/*
 * Cost of reading chunks of sparse rows and of converting them. Four readers
 * read the same rows in order, shuffled within chunks, and shuffled globally.
 * Rates are shown only if their checksums agree.
 */
#include <stdio.h>
#include <string.h>

#include "experiment/harness.h"

enum { NONE, INTRA, GLOBAL, NORDERS };
static const char *const orders[] = { "none", "intra-chunk", "global" };

#define NREADERS (PEN_READ_CSR + 1)

/* ---- runs ---- */

/* The kind of a setup is its order, its value the reader. */
static void head(struct pen_text *j, const struct pen_session *r,
		 const struct pen_setup *s)
{
	pen__json_num(j, "chunk_rows", pen__number(r, "-c"));
	pen__json_str(j, "shuffle", orders[s->kind]);
	pen__json_str(j, "reader", pen__readers[s->value]);
}

static void describe(struct pen_session *r, const struct pen_setup *s,
		     struct pen_trial *t)
{
	const char *order = orders[s->kind], *reader = pen__readers[s->value];

	snprintf(t->title, sizeof(t->title), "%s, %s, %s", order, reader,
		 t->cold ? "cold" : "warm");
	pen__setup_text(r, t, "rows=%.0f shuffle=%s reader=%s epochs=%llu",
			pen__number(r, "-c"), order, reader,
			(unsigned long long)pen_spec_number(r->spec, "epochs"));
}

static int run(struct pen_session *r, const struct pen_trial *t,
	       struct pen_text *j, struct pen_err *err)
{
	static const char *const sampler[] = { "sequential", "block",
					       "shuffle" };
	const bool intra = t->of->kind == INTRA;
	const uint64_t rows = (uint64_t)pen__number(r, "-c");
	const struct pen_spec_change set[] = {
		{ "sampler", sampler[t->of->kind], 0 },
		{ "batch_size", NULL, rows },
		{ "format.output", "csr", 0 },
		{ "sampler.chunk", NULL, intra ? rows : 0 },
		{ "sampler.chunks", NULL, intra },
		{ .key = NULL },
	};
	struct pen_sparse_reader c = { .reader =
					       (enum pen_reader)t->of->value };
	struct pen_pass pass = { .eat = pen__convert_batch, .arg = &c };
	int rc = pen__run_pass_with(r, t, &pass, set, j, err);

	if (!rc)
		pen__sums_json(j, &c.sums);
	pen__convert_fini(&c);
	return rc;
}

static int prepare(struct pen_session *r, struct pen_err *err)
{
	int rc = pen__run_data(r, err);

	if (!rc && !r->shared->has_output)
		rc = pen__fail(err, P_UNSUPPORTED_FEATURE, r->path,
			       "the format '%s' has no format.output=csr; "
			       "read-chunks needs sparse rows",
			       r->shared->format);
	for (size_t i = 0; !rc && i < NORDERS * NREADERS; i++)
		if (pen__chosen(r, "-s", i / NREADERS) &&
		    pen__chosen(r, "-R", i % NREADERS))
			pen__setup_add(r, "", "", i % NREADERS)->kind =
				(int)(i / NREADERS);
	return rc;
}

/* ---- the result ---- */

static bool is_whole(const struct pen_line *r)
{
	return pen__line_number(r, "n_rows") >= pen__line_number(r, "samples");
}

/* Readers of the same rows must agree. A part of the rows depends on the
 * order. */
static void same_rows(const struct pen_line *r, char *buf, size_t cap)
{
	snprintf(buf, cap, "%s %s %s", pen__line_text(r, "n_rows"),
		 is_whole(r) ? "" : pen__line_text(r, "shuffle"),
		 is_whole(r) ? "" : pen__line_text(r, "chunk_rows"));
}

static void name(struct pen_variant *m)
{
	static const char *const words[] = { "in order",
					     "shuffled inside chunks",
					     "in global random order" };
	const char *shuffle = pen__line_text(m->row, "shuffle");
	const char *reader = pen__line_text(m->row, "reader");

	snprintf(m->name, sizeof(m->name), "%.40s, %.40s", reader, shuffle);
	snprintf(m->brief, sizeof(m->brief), "%.30s", reader);
	for (size_t i = 0; i < NORDERS; i++)
		if (!strcmp(shuffle, orders[i]))
			snprintf(m->group, sizeof(m->group), "%s%s", words[i],
				 pen__line_true(m->row, "cold") ? ", cold"
								: "");
}

/* Prefers a warm run. */
static const struct pen_variant *find(const struct pen_variants *a, int shuffle,
				      const char *reader)
{
	char name[96];
	const struct pen_variant *cold = NULL;

	snprintf(name, sizeof(name), "%s, %s", reader, orders[shuffle]);
	for (size_t i = 0; i < a->n; i++) {
		const struct pen_variant *m = &a->v[i];

		if (!m->n || strcmp(m->name, name) != 0)
			continue;
		if (!pen__line_true(m->row, "cold"))
			return m;
		cold = cold ? cold : m;
	}
	return cold;
}

/* The time of one compared with another: "no difference" or "+12.3 %". */
static struct pen_shown more(const struct pen_variants *a,
			     const struct pen_variant *m,
			     const struct pen_variant *than)
{
	const struct pen_change c = pen__change_of(a, than, m, "seconds");

	return c.differs ? pen__show_change(c.share)
			 : (struct pen_shown){ "no difference" };
}

static void words(struct pen_text *t, const struct pen_variants *a)
{
	static const char *const made[] = { "csr", "coo", "table" };
	const struct pen_variant *raw = find(a, NONE, "raw"), *m;
	const struct pen_variant *global = find(a, GLOBAL, "raw");
	bool any = false;

	if (!raw)
		return;
	pen__text_add(t, "%s %s in order, not converted: %s, %s per second.",
		      pen__show_whole(pen__line_number(raw->row, "n_rows")).s,
		      pen__line_unit(raw->row),
		      pen__shown_of(a, raw, "seconds").s,
		      pen__shown_of(a, raw, "samples_per_s").s);
	if (global)
		pen__text_add(t, " In global random order: %s (%s).",
			      pen__shown_of(a, global, "seconds").s,
			      more(a, global, raw).s);
	pen__text_add(t, "\n");
	for (size_t i = 0; i < 3; i++)
		if ((m = find(a, NONE, made[i]))) {
			pen__text_add(t, "%s%s %s",
				      any ? ", "
					  : "Compared with the raw read: ",
				      made[i], more(a, m, raw).s);
			any = true;
		}
	pen__text_add(t, "%s", any ? ".\n" : "");
}

static void facts(struct pen_text *t, const struct pen_variants *a)
{
	const struct pen_line *first = a->row[0];

	for (size_t i = 0; i < a->nrows; i++)
		if (pen__line_true(a->row[i], "oom") || !is_whole(a->row[i]))
			return;
	pen__text_add(t, "All runs agree: %s non-zeros, content %s.\n",
		      pen__show_whole(pen__line_number(first, "nnz")).s,
		      pen__line_text(first, "content_sum"));
}

struct pen_experiment pen__exp_read_chunks = {
	.kind = { .experiment = "read-chunks",
		  .words = words,
		  .facts = facts,
		  .name = name,
		  .check = same_rows },
	.prepare = prepare,
	.head = head,
	.describe = describe,
	.run = run,
};
