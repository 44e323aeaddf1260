/*
 * A complete sequence job, as in the published guide: loads DNA and RNA files
 * of several sizes into a dictionary in memory, counts a vocabulary of 4-mers,
 * and trains a Doc2Vec model, with several numbers of loader threads and batch
 * sizes. Waiting for data and computing are measured separately. The training
 * is the example program, which uses the public API and fails on incomplete
 * epochs.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiment/harness.h"
#include "report/doc.h"

#define MOST_FILES (3 * PEN_MOST_VALUES) /* kinds x sizes */

/* A generated file, and the time to prepare it. */
struct seqs {
	char name[48]; /* "dna 1MB" */
	char path[4096], words[4096];
	double dict_s, dict_share, vocab_s, samples, bytes;
};

struct dna {
	struct seqs file[MOST_FILES];
	size_t nfiles;
};

/* ---- files ---- */

static int make_file(const struct pen_session *r, struct seqs *s,
		     const char *kind, const char *size, struct pen_err *err)
{
	char set[40];
	const char *gen[] = { "", "gen", kind, s->path, set, "--json", NULL };
	const char *dict[] = { "",	"ddict",	"load",
			       s->path, "format=lines", "--json",
			       NULL };
	const char *vocab[] = { "",	  "vocab",     s->path, "format=lines",
				"k=4",	  "pads=true", "-o",	s->words,
				"--json", NULL };
	struct pen_process p = { .stop = r->stop };
	struct pen_doc d = { .name = kind };
	struct pen_text out = { 0 };
	int rc;

	snprintf(set, sizeof(set), "size=%s", size);
	rc = pen__process_run(&p, gen, &out, err);
	if (!rc)
		rc = pen__process_doc(&p, dict, &d, err);
	pen__text_fini(&out);
	if (rc)
		return rc;
	s->dict_s = pen__doc_number(&d, 0, "seconds");
	s->dict_share = pen__doc_number(&d, 0, "bytes_per_byte");
	s->samples = pen__doc_number(&d, 0, "keys");
	s->bytes = pen__doc_number(&d, 0, "value_bytes");
	pen__jdoc_close(&d.j);
	rc = pen__process_run(&p, vocab, &out, err);
	pen__text_fini(&out);
	s->vocab_s = p.real_s;
	return rc;
}

/* Generates all sizes of a kind; files are named by the size as given. */
static int make_files(struct pen_session *r, const char *kind,
		      struct pen_err *err)
{
	struct dna *g = r->own;
	int rc = 0;

	for (const char *p = pen__value(r, "--sizes")->text; !rc && *p;) {
		const size_t len = strcspn(p, ",");
		struct seqs *s = &g->file[g->nfiles++];
		char size[32];

		snprintf(size, sizeof(size), "%.*s", (int)len, p);
		snprintf(s->name, sizeof(s->name), "%s %s", kind, size);
		snprintf(s->path, sizeof(s->path), "%s/%zu.txt", r->folder,
			 g->nfiles);
		snprintf(s->words, sizeof(s->words), "%s/%zu.words", r->folder,
			 g->nfiles);
		rc = make_file(r, s, kind, size, err);
		p += len + (p[len] == ',');
	}
	return rc;
}

/* ---- one variant ---- */

/* In the build tree, or where it is installed. */
static void find_program(char *path, size_t cap)
{
	static const char *const places[] = { "doc2vec",
					      "../../examples/doc2vec",
					      "../libexec/penstock/doc2vec",
					      NULL };
	const char *given = getenv("PENSTOCK_DOC2VEC");

	if (given && given[0])
		snprintf(path, cap, "%s", given);
	else
		pen__beside(places, path, cap);
}

static void put_figures(struct pen_text *j, const struct seqs *s,
			const struct pen_doc *d, const struct pen_process *c)
{
	uint32_t e = pen__jdoc_first(&d->j, pen__doc_at(d, 0, "epochs"));
	double n = 0, whole = 0, load = 0, model = 0, samples = 0;
	char sum[32];

	snprintf(sum, sizeof(sum), "%.0f", pen__doc_number(d, e, "content"));
	pen__json_str(j, "content_sum", sum);
	for (; e != PEN_JDOC_NONE; e = pen__jdoc_next(&d->j, e)) {
		whole += pen__doc_number(d, e, "seconds");
		load += pen__doc_number(d, e, "load_s");
		model += pen__doc_number(d, e, "model_s");
		samples += pen__doc_number(d, e, "samples");
		n++;
	}
	pen__json_num(j, "n_rows", samples);
	pen__json_num(j, "expected_rows", n * s->samples);
	pen__json_num(j, "epoch_s", whole / n);
	pen__json_num(j, "load_s", load / n);
	pen__json_num(j, "model_s", model / n);
	pen__json_num(j, "samples_per_s", samples / whole);
	pen__json_num(j, "open_s", pen__doc_number(d, 0, "open_s"));
	pen__json_num(j, "real_s", c->real_s);
	pen__json_num(j, "user_s", c->user_s);
	pen__json_num(j, "system_s", c->system_s);
	pen__json_num(j, "dict_s", s->dict_s);
	pen__json_num(j, "dict_bytes_per_byte", s->dict_share);
	pen__json_num(j, "vocab_s", s->vocab_s);
	pen__json_num(j, "overall_s", s->dict_s + s->vocab_s + c->real_s);
	pen__json_num(j, "n_sequences", s->samples);
	pen__json_num(j, "data_bytes", s->bytes);
	pen__json_int(j, "peak_memory_bytes", c->peak_bytes);
}

static int run(struct pen_session *r, const struct pen_trial *t,
	       struct pen_text *j, struct pen_err *err)
{
	const struct seqs *s = &((const struct dna *)r->own)->file[t->of->kind];
	char program[4096], words[4200], batch[40], threads[40], epochs[24];
	const char *argv[] = {
		program,
		s->path,
		words,
		batch,
		threads,
		"--json",
		"--epochs",
		epochs,
		"--model",
		pen__name(r, "--model", (size_t)pen__number(r, "--model")),
		"--update",
		pen__name(r, "--update", (size_t)pen__number(r, "--update")),
		NULL
	};
	struct pen_doc d = { .name = s->path };
	struct pen_process p = { .stop = r->stop };
	int rc;

	find_program(program, sizeof(program));
	snprintf(words, sizeof(words), "format.vocab=%s", s->words);
	snprintf(batch, sizeof(batch), "batch_size=%llu",
		 (unsigned long long)(t->of->value & 0xffffffff));
	snprintf(threads, sizeof(threads), "threads=%llu",
		 (unsigned long long)(t->of->value >> 32));
	snprintf(epochs, sizeof(epochs), "%llu",
		 (unsigned long long)pen_spec_number(r->spec, "epochs"));
	rc = pen__process_doc(&p, argv, &d, err);
	if (rc)
		return rc;
	put_figures(j, s, &d, &p);
	pen__jdoc_close(&d.j);
	return 0;
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
	if (key && !strcmp(key, "epochs"))
		return 1;
	return pen__fail(err, P_CONFLICT, r->name,
			 "'%s%s%s' does not apply: the data is generated, and "
			 "the only setting is epochs=",
			 key ? key : "", key ? "=" : "", value);
}

static int prepare(struct pen_session *r, struct pen_err *err)
{
	const struct dna *g = r->own;
	const char *kind;
	int rc;

	if (!pen_spec_number(r->spec, "epochs"))
		return pen__fail(err, P_BAD_VALUE, r->name,
				 "epochs=0 never ends; set a number of epochs");
	snprintf(r->path, sizeof(r->path), "doc2vec");
	rc = pen__run_rows_open(r, err);
	if (!rc)
		rc = pen__run_folder(r, err);
	for (size_t k = 0; !rc && (kind = pen__name(r, "--kinds", k)); k++)
		if (pen__chosen(r, "--kinds", k))
			rc = make_files(r, kind, err);
	for (size_t i = 0; !rc && i < g->nfiles; i++)
		add(r, i);
	return rc;
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

struct pen_experiment pen__exp_dna = {
	.kind = { .experiment = "dna", .words = words },
	.own = sizeof(struct dna),
	.take = take,
	.prepare = prepare,
	.run = run,
};
