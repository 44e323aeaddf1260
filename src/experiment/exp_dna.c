/*
 * A complete sequence job, as in the published guide: loads DNA and RNA files
 * of several sizes into a dictionary in memory, counts a vocabulary of 4-mers,
 * and trains a Doc2Vec model, with several numbers of loader threads and batch
 * sizes. Waiting for data and computing are measured separately. The ranks of a
 * job do all of it together. The training is the example program, which uses
 * the public API and fails on incomplete epochs.
 */
#include "experiment/exp_dna.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "make/synth_seqs.h"
#include "report/doc.h"

#define MOST_FILES (4 * PEN_MOST_VALUES) /* kinds x sizes */
#define MOST_LOSSES 8			 /* shown */

struct dna {
	struct pen_seqs file[MOST_FILES];
	size_t nfiles;
	uint32_t nshards; /* per rank */
};

/* ---- files ---- */

static int make(struct pen_session *r, const void *arg, struct pen_err *err)
{
	return pen__dna_make(r, arg, err);
}

/* Generates all sizes of a kind; files are named by the size as given. */
static int make_files(struct pen_session *r, const char *kind, int letters,
		      struct pen_err *err)
{
	const struct pen_taken *sizes = pen__value(r, "--sizes");
	struct dna *g = r->own;
	const char *p = sizes->text;
	int rc = 0;

	for (size_t i = 0; !rc && i < sizes->n; i++) {
		const size_t len = strcspn(p, ",");
		const bool alone = strspn(p, "0123456789.") == len;
		struct pen_seqs *s = &g->file[g->nfiles++];
		char title[80];

		snprintf(s->name, sizeof(s->name), "%s %.*s%s", kind, (int)len,
			 p, alone ? "GiB" : "");
		snprintf(s->path, sizeof(s->path), "%s/%zu.txt", r->folder,
			 g->nfiles);
		snprintf(s->words, sizeof(s->words), "%s/%zu.words", r->folder,
			 g->nfiles);
		if (letters == PEN_SYNTH_BOTH || letters == PEN_SYNTH_AT)
			snprintf(s->labels, sizeof(s->labels), "%s/%zu.labels",
				 r->folder, g->nfiles);
		s->letters = letters;
		s->bytes = sizes->v[i];
		snprintf(title, sizeof(title), "making %s", s->name);
		rc = pen__run_child(r, title, make, s, err);
		p += len + (p[len] == ',');
	}
	return rc;
}

/* ---- one variant ---- */

/* The loss over time, as "100: 1.37, 200: 1.36, ..." */
static void put_losses(struct pen_text *j, const struct pen_doc *d,
		       uint32_t epochs)
{
	struct pen_text t = { 0 };
	size_t n = 0, at = 0;

	for (uint32_t e = epochs; e != PEN_JDOC_NONE;
	     e = pen__jdoc_next(&d->j, e))
		for (uint32_t p = pen__jdoc_first(&d->j,
						  pen__doc_at(d, e, "losses"));
		     p != PEN_JDOC_NONE; p = pen__jdoc_next(&d->j, p))
			n++;
	for (uint32_t e = epochs; e != PEN_JDOC_NONE;
	     e = pen__jdoc_next(&d->j, e))
		for (uint32_t p = pen__jdoc_first(&d->j,
						  pen__doc_at(d, e, "losses"));
		     p != PEN_JDOC_NONE; p = pen__jdoc_next(&d->j, p), at++) {
			const uint32_t step = pen__jdoc_first(&d->j, p);
			const uint32_t loss = pen__jdoc_next(&d->j, step);

			if (at * MOST_LOSSES / n ==
				    (at + 1) * MOST_LOSSES / n &&
			    n > MOST_LOSSES)
				continue;
			pen__text_add(&t, "%s%.0f: %.4f", t.n ? ", " : "",
				      pen__doc_number(d, step, ""),
				      pen__doc_number(d, loss, ""));
		}
	if (t.n)
		pen__json_str(j, "losses", t.p);
	pen__text_fini(&t);
}

static void put_epochs(struct pen_text *j, const struct pen_doc *d,
		       uint64_t nsequences)
{
	const uint32_t first =
		pen__jdoc_first(&d->j, pen__doc_at(d, 0, "epochs"));
	double n = 0, whole = 0, load = 0, model = 0, samples = 0, loss = 0;
	char sum[32];

	snprintf(sum, sizeof(sum), "%.0f",
		 pen__doc_number(d, first, "content"));
	pen__json_str(j, "content_sum", sum);
	for (uint32_t e = first; e != PEN_JDOC_NONE;
	     e = pen__jdoc_next(&d->j, e)) {
		whole += pen__doc_number(d, e, "seconds");
		load += pen__doc_number(d, e, "load_s");
		model += pen__doc_number(d, e, "model_s");
		samples += pen__doc_number(d, e, "samples");
		loss = pen__doc_number(d, e, "loss");
		n++;
	}
	pen__json_num(j, "n_rows", samples);
	pen__json_num(j, "expected_rows", n * (double)nsequences);
	pen__json_num(j, "epoch_s", whole / n);
	pen__json_num(j, "load_s", load / n);
	pen__json_num(j, "model_s", model / n);
	pen__json_num(j, "samples_per_s", samples / whole);
	pen__json_num(j, "open_s", pen__doc_number(d, 0, "open_s"));
	if (strcmp(pen__doc_text(d, 0, "model"), "none") != 0)
		pen__json_num(j, "loss", loss);
	if (pen__doc_at(d, 0, "accuracy") != PEN_JDOC_NONE) {
		pen__json_num(j, "accuracy_share",
			      pen__doc_number(d, 0, "accuracy"));
		pen__json_num(j, "accuracy_shuffled_share",
			      pen__doc_number(d, 0, "accuracy_shuffled"));
	}
	put_losses(j, d, first);
}

static int put_figures(struct pen_text *j, struct pen_dna_result *c,
		       const struct pen_session *r, struct pen_err *err)
{
	struct pen_doc d = { .name = "doc2vec" };
	int rc = pen__jdoc_open(&d.j, c->report.p ? c->report.p : "",
				c->report.n, "doc2vec", err);

	if (rc)
		return rc;
	put_epochs(j, &d, c->nkeys);
	pen__jdoc_close(&d.j);
	pen__json_num(j, "real_s", c->real_s);
	pen__json_num(j, "user_s", c->user_s);
	pen__json_num(j, "system_s", c->system_s);
	pen__json_num(j, "dict_s", c->dict_s);
	pen__json_num(j, "vocab_s", c->vocab_s);
	pen__json_num(j, "overall_s", c->dict_s + c->vocab_s + c->real_s);
	pen__json_num(j, "dict_bytes_per_byte",
		      (double)c->used_bytes / (double)c->value_bytes);
	pen__json_int(j, "n_sequences", c->nkeys);
	pen__json_int(j, "n_words", c->nwords);
	pen__json_int(j, "dict_bytes", c->total_bytes);
	pen__json_int(j, "dict_used_bytes", c->used_bytes);
	pen__json_int(j, "n_shards", c->nshards);
	pen__json_int(j, "n_nodes", c->nnodes);
	pen__json_int(j, "n_ranks",
		      r->ranks ? (uint64_t)pen_ranks_size(r->ranks) : 1);
	pen__json_int(j, "data_bytes", c->value_bytes);
	pen__json_int(j, "peak_memory_bytes", (uint64_t)c->peak_bytes);
	pen__json_str(j, "shards", c->shards.p ? c->shards.p : "");
	return 0;
}

static int train(const struct pen_session *r, struct pen_ranks *ranks,
		 const struct pen_trial *t, struct pen_dna_result *out,
		 struct pen_err *err)
{
	const struct pen_seqs *s =
		&((const struct dna *)r->own)->file[t->of->kind];
	const unsigned local = (unsigned)ranks->comm->local_size;
	const size_t update = (size_t)pen__number(r, "--update");
	char words[3300], batch[40], threads[40];
	const char *settings[] = { s->path, words, batch, threads, NULL };
	struct options o;

	options_init(&o);
	o.json = o.quiet = true;
	o.none = !strcmp(
		pen__name(r, "--model", (size_t)pen__number(r, "--model")),
		"none");
	o.update = strcmp(pen__name(r, "--update", update), "adam") != 0
			   ? UPDATE_SPARSE
			   : UPDATE_ADAM;
	o.epochs = pen_spec_number(r->spec, "epochs");
	o.labels = s->labels[0] && !o.none ? s->labels : NULL;
	o.threads = o.threads > local ? o.threads / local : 1;
	snprintf(words, sizeof(words), "format.vocab=%s", s->words);
	snprintf(batch, sizeof(batch), "batch_size=%llu",
		 (unsigned long long)(t->of->value & 0xffffffff));
	snprintf(threads, sizeof(threads), "threads=%llu",
		 (unsigned long long)(t->of->value >> 32));
	return pen__dna_train(ranks, &o, settings, out, err);
}

static int run(struct pen_session *r, const struct pen_trial *t,
	       struct pen_text *j, struct pen_err *err)
{
	const struct dna *g = r->own;
	const struct pen_seqs *s = &g->file[t->of->kind];
	struct pen_ranks *ranks = r->ranks;
	struct pen_dna_result c = { 0 };
	int rc = ranks ? 0 : pen_ranks_open(&ranks, err);

	if (rc)
		return rc;
	rc = pen__dna_fill(ranks, s, g->nshards, &c, err);
	if (!rc)
		rc = pen__dna_vocab(ranks, s, &c, err);
	if (!rc)
		rc = train(r, ranks, t, &c, err);
	if (!rc && pen__run_first(r))
		rc = put_figures(j, &c, r, err);
	pen__text_fini(&c.shards);
	pen__text_fini(&c.report);
	if (!r->ranks)
		pen_ranks_close(ranks);
	return rc;
}

/* ---- all variants ---- */

static void add(struct pen_session *r, size_t file)
{
	const char *data = ((const struct dna *)r->own)->file[file].name;
	const struct pen_taken *workers = pen__value(r, "--workers");
	const struct pen_taken *batch = pen__value(r, "--batch");

	for (size_t i = 0; i < workers->n * batch->n; i++) {
		const uint64_t n = (uint64_t)workers->v[i / batch->n];
		const uint64_t b = (uint64_t)batch->v[i % batch->n];
		struct pen_setup *s;
		char name[48];

		snprintf(name, sizeof(name), "%.20s, batch %llu",
			 pen__show_counted(n, "thread").s,
			 (unsigned long long)b);
		s = pen__setup_add(r, name, data, n << 32 | b);
		s->kind = (int)file;
		s->as_it_is = true;
		snprintf(s->check, sizeof(s->check), "%s", data);
	}
}

static int take(struct pen_session *r, const char *key, const char *value,
		struct pen_err *err)
{
	struct dna *g = r->own;
	char *end;
	double n;

	if (key && !strcmp(key, "epochs"))
		return 1;
	if (key && !strcmp(key, "shards")) {
		n = strtod(value, &end);
		if (end == value || *end || !(n >= 1) || n > PEN_DNA_SHARDS ||
		    n != (double)(uint32_t)n)
			return pen__fail(err, P_BAD_VALUE, r->name,
					 "shards: '%s' is not a number from 1 "
					 "to %d",
					 value, PEN_DNA_SHARDS);
		g->nshards = (uint32_t)n;
		return 0;
	}
	return pen__fail(err, P_CONFLICT, r->name,
			 "'%s%s%s' does not apply: the data is generated, and "
			 "the only settings are epochs= and shards=",
			 key ? key : "", key ? "=" : "", value);
}

static int prepare(struct pen_session *r, struct pen_err *err)
{
	static const int letters[] = { PEN_SYNTH_DNA, PEN_SYNTH_RNA,
				       PEN_SYNTH_BOTH, PEN_SYNTH_AT };
	struct dna *g = r->own;
	const char *kind;
	int rc;

	if (!pen_spec_number(r->spec, "epochs"))
		return pen__fail(err, P_BAD_VALUE, r->name,
				 "epochs=0 never ends; set a number of epochs");
	if (!g->nshards)
		g->nshards = 1;
	snprintf(r->path, sizeof(r->path), "doc2vec, %d ranks, %u shards each",
		 r->ranks ? pen_ranks_size(r->ranks) : 1, g->nshards);
	rc = pen__run_rows_open(r, err);
	if (r->ranks)
		rc = pen_ranks_agree(r->ranks, rc, err);
	if (!rc)
		rc = pen__run_folder(r, err);
	for (size_t k = 0; !rc && (kind = pen__name(r, "--kinds", k)); k++)
		if (pen__chosen(r, "--kinds", k))
			rc = make_files(r, kind, letters[k], err);
	for (size_t i = 0; !rc && i < g->nfiles; i++)
		add(r, i);
	return rc;
}

/* The lines of a text in a row, as sentences. */
static void put_lines(struct pen_text *t, const char *p)
{
	while (*p) {
		const size_t n = strcspn(p, "\n");

		pen__text_add(t, "%.*s.\n", (int)n, p);
		p += n + (p[n] == '\n');
	}
}

static void words(struct pen_text *t, const struct pen_variants *a)
{
	const struct pen_variant *most = pen__variant_most(a, "n_sequences");
	struct pen_ranking shortest = { .what = "Shortest epoch",
					.key = "epoch_s",
					.with = "including a wait of",
					.also = "load_s" };
	if (!most)
		return;
	shortest.group = most->group;
	pen__text_add(t, "%s: %s loaded into the dictionary in %s.\n",
		      most->group,
		      pen__show_counted(
			      (uint64_t)pen__median_of(a, most, "n_sequences"),
			      "sequence")
			      .s,
		      pen__shown_of(a, most, "dict_s").s);
	pen__put_best(t, a, &shortest);
}

/* The loss over time, and the shards of the largest dictionary. */
static void facts(struct pen_text *t, const struct pen_variants *a)
{
	const struct pen_variant *most = pen__variant_most(a, "n_sequences");
	const char *losses;

	for (size_t i = 0; i < a->n; i++) {
		const struct pen_variant *v = pen__variant_at(a, i);

		losses = v->n ? pen__line_text(v->row, "losses") : "";
		if (losses[0])
			pen__text_add(t, "Loss by batch, %s, %s: %s.\n",
				      v->group, v->name, losses);
	}
	if (most)
		put_lines(t, pen__line_text(most->row, "shards"));
}

struct pen_experiment pen__exp_dna = {
	.kind = { .experiment = "dna", .words = words, .facts = facts },
	.ranks = true,
	.own = sizeof(struct dna),
	.take = take,
	.prepare = prepare,
	.run = run,
};
